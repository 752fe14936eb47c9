package maps_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// bare returns only the section of an object, as llvm-objcopy extracts it.
func bare(t *testing.T, object string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "section.bin")
	out, err := exec.Command(livetest.LLVM(t, 19, "llvm-objcopy"), "--dump-section", ".llvm_stackmaps="+path, object, "/dev/null").CombinedOutput()
	require.NoError(t, err, "%s", out)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

func TestMapsOfWrongFile(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	object := livetest.Object(t, 19, "jit_pp.ll")
	section := string(bare(t, object))
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, c := range []struct {
		name, path string
		code       int
		want       string
	}{
		{"no section", clitest.Binary(), 0, "no stack map: it has no section .llvm_stackmaps"},
		{"text", clitest.TempFile(t, "text.o", "this is not an object file\n"), 2, "not an object file"},
		{"empty", clitest.TempFile(t, "empty.o", ""), 2, "not an object file"},
		{"three bytes", clitest.TempFile(t, "three.o", "\x03\x00\x00"), 2, "not an object file"},
		{"zeros", clitest.TempFile(t, "zeros.o", strings.Repeat("\x00", 4096)), 2, "not an object file"},
		{"a header alone", clitest.TempFile(t, "head.o", "\x7fELF\x02\x01\x01\x00"), 2, "it ends inside its header"},
		{"directory", dir, 2, "not a regular file"},
		{"device", "/dev/zero", 2, "not a regular file"},
		{"pipe", pipe, 2, "not a regular file"},
		{"missing", filepath.Join(dir, "missing.o"), 2, "no such file or directory"},
		{"an archive without members", clitest.TempFile(t, "none.a", "!<arch>\n"), 0, "no stack map"},
		{"an archive cut short", clitest.TempFile(t, "cut.a", "!<arch>\nmember.o/       0"), 2, "it ends inside the header of a member"},
		{"cut short", clitest.ChangedObject(t, object, "cut.o", func(b []byte, _ int) []byte { return b[:100] }), 2, "it is cut short or damaged: section header"},
		{"cut before the section ends", clitest.ChangedObject(t, object, "cut.o", func(b []byte, at int) []byte { return b[:at+20] }), 2, "it is cut short or damaged: section header"},
		{"escapes", clitest.TempFile(t, "\x1b[31mred.o", "text"), 2, "[31mred.o"},
		// Bytes of the section alone: the version, three reserved bytes, and the numbers of functions, constants and records (LLVM, "Stack Map
		// Format").
		{"bare, a header of 4 bytes", clitest.TempFile(t, "b", section[:4]), 2, ".llvm_stackmaps+0x0: a header in 4 bytes"},
		{"bare, a header alone", clitest.TempFile(t, "b", section[:16]), 2, "1 functions in 0 bytes"},
		{"bare, cut in a location", clitest.TempFile(t, "b", section[:100]), 2, "the section ends inside a map"},
		{"bare, cut before its end", clitest.TempFile(t, "b", section[:len(section)-8]), 2, "the section ends inside a map"},
		{"bare, 2³²-1 functions", clitest.TempFile(t, "b", "\x03\x00\x00\x00\xff\xff\xff\xff"+section[8:]), 2, "4294967295 functions in "},
		{"bare, 2³²-1 constants", clitest.TempFile(t, "b", section[:8]+"\xff\xff\xff\xff"+section[12:]), 2, "4294967295 constants in "},
		{"bare, 2³²-1 of all", clitest.TempFile(t, "b", "\x03\x00\x00\x00"+strings.Repeat("\xff", 12)), 2, "4294967295 functions in 0 bytes"},
		{"bare, version 9", clitest.TempFile(t, "b", "\x09"+section[1:]), 2, "expected 1, 2 or 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, more := range [][]string{nil, {"--json"}, {"--check"}, {"--format", "llvm"}} {
				r := clitest.Run(t, append([]string{"maps", c.path}, more...)...)
				r.Fails(t, c.code, c.want)
				require.Equal(t, c.code == 0 && slices.Equal(more, []string{"--json"}), r.Stdout != "", r.Stdout)
				require.NotContains(t, r.Stderr, clitest.Escape)
			}
		})
	}
}

// TestMapsCannotBeRead requires that a section which cannot be read at all is an error, and for --check a broken rule.
func TestMapsCannotBeRead(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object := livetest.Object(t, 19, "jit_pp.ll")
	set := func(off int, text string) func([]byte, int) []byte {
		return func(b []byte, at int) []byte { copy(b[at+off:], text); return b }
	}
	for _, c := range []struct {
		name   string
		change func(b []byte, at int) []byte
		args   []string
		want   []string
	}{
		{"version 9", set(0, "\x09"), nil, []string{"version 9 is not supported", "expected 1, 2 or 3"}},
		{"version 0", set(0, "\x00\x00\x00\x07"), nil, []string{".llvm_stackmaps+0x"}},
		{"version 9 as v3", set(0, "\x09"), []string{"--dialect", "v3"}, []string{"version 9 is not supported", "expected 1, 2 or 3"}},
		{"2³²-1 functions", set(4, "\xff\xff\xff\xff"), nil, []string{"4294967295 functions in "}},
		{"2³²-1 constants", set(8, "\xff\xff\xff\xff"), nil, []string{"4294967295 constants in "}},
		{"2³²-1 records", set(12, "\xff\xff\xff\xff"), nil, []string{"4294967295"}},
		{"2⁶⁴-1 records of a function", set(16+16, "\xff\xff\xff\xff\xff\xff\xff\xff"), nil, []string{"18446744073709551615"}},
		{"65535 locations", set(16+24+8+14, "\xff\xff"), nil, []string{"65535 locations in "}},
		{"65535 live-outs", set(16+24+8+16+16*12+2, "\xff\xff"), nil, []string{"65535 live-outs in "}},
		{"kind 9", set(16+24+8+16, "\x09"), nil, []string{"unknown location kind 9"}},
		{"as yk", set(0, ""), []string{"--dialect", "yk"}, []string{"as layout yk", "layout v3 fits"}},
		{"as yk-old", set(0, ""), []string{"--dialect", "yk-old"}, []string{"as layout yk-old", "layout v3 fits"}},
		{"as v1", set(0, ""), []string{"--dialect", "v1"}, []string{"layout v1 has no version 3", "layout v3 fits"}},
		{"as v2", set(0, ""), []string{"--dialect", "v2"}, []string{"layout v2 has no version 3", "layout v3 fits"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := clitest.ChangedObject(t, object, "bad.o", c.change)
			for _, more := range [][]string{nil, {"--json"}, {"--format", "llvm"}, {"--record", "2001"}} {
				r := clitest.Run(t, append(append([]string{"maps", path}, c.args...), more...)...)
				r.FailsEmpty(t, 2, append(c.want, path)...)
			}
			r := clitest.Run(t, append([]string{"maps", path, "--check"}, c.args...)...)
			require.Equal(t, 1, r.Code, r.Stderr)
			require.Empty(t, r.Stderr)
			require.Contains(t, r.Stdout, c.want[0])
			require.NotContains(t, r.Stdout, "kept")
			_, checked, errors := verdict(t, clitest.Run(t, append([]string{"maps", path, "--check", "--json"}, c.args...)...))
			require.Empty(t, checked)
			require.Len(t, errors, 1)
			for _, want := range c.want {
				require.Contains(t, errors[0], want)
			}
		})
	}
}

// TestMapsPartlyRead requires that, for a section with a broken map after a complete one, maps shows the complete map and the error of the other, and
// exits with the status of a partial answer.
func TestMapsPartlyRead(t *testing.T) {
	t.Parallel()
	first := livetest.Object(t, 19, "sm_spill.ll", "-relocation-model=pic")
	linked := livetest.Link(t, "part", links["no-pie"], first, livetest.Object(t, 19, "sp_push.ll", "-relocation-model=pic"))
	size := sectionSize(t, first)
	path := clitest.ChangedObject(t, linked, "part", func(b []byte, at int) []byte { b[at+size] = 9; return b })
	want := readobj(t, first)

	r := clitest.Run(t, "maps", path)
	require.Equal(t, 1, r.Code)
	require.Empty(t, r.Stderr)
	what := fmt.Sprintf(".llvm_stackmaps+%#x: version 9 is not supported; expected 1, 2 or 3", size)
	require.Equal(t, 1, strings.Count(r.Stdout, what), r.Stdout)
	require.Equal(t, want.records, strings.Count(r.Stdout, "    record "))

	r = clitest.Run(t, "maps", path, "--json")
	require.Equal(t, 1, r.Code)
	require.Empty(t, r.Stderr)
	images := clitest.Objects(t, r.Object(t)["images"])
	require.Len(t, images, 1)
	require.Contains(t, images[0]["error"], what)
	delete(images[0], "error")
	require.Equal(t, want, recount(t, images))
	clitest.RequireValid(t, "maps.schema.json", r.Stdout)

	r = clitest.Run(t, "maps", path, "--check")
	require.Equal(t, 1, r.Code)
	require.Empty(t, r.Stderr)
	require.Contains(t, r.Stdout, what)
	require.NotContains(t, r.Stdout, "BROKEN")
	require.Contains(t, r.Stdout, "kept    record counts add up  1\n")

	r = clitest.Run(t, "maps", path, "--format", "llvm")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stderr, what)
	require.Equal(t, want.records, strings.Count(r.Stdout, "  Record ID: "))
}

// TestMapsWrongDialect requires that the error names the layout that fits, also for a section alone.
func TestMapsWrongDialect(t *testing.T) {
	t.Parallel()
	section := clitest.TempFile(t, "section", string(bare(t, livetest.Object(t, 19, "jit_pp.ll"))))
	for _, dialect := range []string{"v1", "v2", "yk", "yk-old"} {
		r := clitest.Run(t, "maps", section, "--dialect", dialect)
		r.FailsEmpty(t, 2, "as layout "+dialect+": ", "layout v3 fits")
	}
	require.Equal(t, 0, clitest.Run(t, "maps", section, "--dialect", "v3").Code)
	// In the other byte order the section's counts exceed its size.
	clitest.Run(t, "maps", section, "--arch", "s390x").FailsEmpty(t, 2, "16777216 functions in ")
	// An object file states its own architecture.
	r := clitest.Run(t, "maps", livetest.Object(t, 19, "jit_pp.ll"), "--arch", "s390x")
	r.FailsEmpty(t, 2, "an object file states its architecture", "--arch requires a file with the raw bytes of a section")
}

// TestMapsUnreadable requires that the error for an unreadable file gives the reason.
func TestMapsUnreadable(t *testing.T) {
	t.Parallel()
	path := livetest.Object(t, 19, "jit_pp.ll")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "reframe-unreadable-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	secret := filepath.Join(dir, "secret.o")
	require.NoError(t, os.WriteFile(secret, b, 0o600))
	clitest.Finish(t, clitest.AsNobody(t, clitest.Command(t, "maps", secret))).FailsEmpty(t, 2, secret, "permission denied")
}

// TestMapsOfWrongCore requires that --core accepts only cores, and that cores are accepted only with --core.
func TestMapsOfWrongCore(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	core := livetest.Gcore(t, p)
	object := livetest.Object(t, 19, "jit_pp.ll")
	text, err := os.ReadFile(core)
	require.NoError(t, err)
	machine := func(name string, m elf.Machine) string {
		b := bytes.Clone(text)
		b[18], b[19] = byte(m), byte(m>>8) // e_machine
		return clitest.TempFile(t, name, string(b))
	}
	narrow := bytes.Clone(text)
	narrow[elf.EI_CLASS] = byte(elf.ELFCLASS32)
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"as a file", []string{core}, 0, []string{core, "no stack map"}},
		{"as a file, another machine's", []string{machine("arm", elf.EM_AARCH64)}, 0, []string{"no stack map"}},
		{"as a file, cut short", []string{clitest.TempFile(t, "cut", string(text[:4096]))}, 2, []string{"no stack map", "the core is cut short: it has 4096 of its "}},
		{"without maps", []string{"--core", core}, 0, []string{core, "no stack map"}},
		{"cut short", []string{"--core", clitest.TempFile(t, "cut", string(text[:4096]))}, 2, []string{"no stack map", "the core is cut short: it has 4096 of its "}},
		{"of 32 bits", []string{"--core", clitest.TempFile(t, "narrow", string(narrow))}, 2, []string{"a 32-bit core"}},
		{"an object", []string{"--core", object}, 2, []string{object, "not an ELF core", "reframe maps FILE"}},
		{"text", []string{"--core", clitest.TempFile(t, "text", "text\n")}, 2, []string{"not an ELF core"}},
		{"empty", []string{"--core", clitest.TempFile(t, "empty", "")}, 2, []string{"not an ELF core: it is empty"}},
		{"missing", []string{"--core", filepath.Join(dir, "missing")}, 2, []string{"no such file or directory"}},
		{"directory", []string{"--core", dir}, 2, []string{"not an ELF core: a directory"}},
		{"device", []string{"--core", "/dev/zero"}, 2, []string{"not an ELF core: a device"}},
		{"pipe", []string{"--core", pipe}, 2, []string{"not an ELF core: a pipe"}},
		{"escapes", []string{"--core", clitest.TempFile(t, "\x1b[31mred", "text\n")}, 2, []string{"[31mred"}},
		{"no process", []string{"-p", "4194305"}, 2, []string{"4194305", "no such process"}}, // above PID_MAX_LIMIT
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, more := range [][]string{nil, {"--json"}, {"--check"}, {"--format", "llvm"}} {
				r := clitest.Run(t, append(append([]string{"maps"}, c.args...), more...)...)
				r.Fails(t, c.code, c.want...)
				require.Equal(t, c.code == 0 && slices.Equal(more, []string{"--json"}), r.Stdout != "", r.Stdout)
				require.NotContains(t, r.Stderr, clitest.Escape)
			}
		})
	}
}

// TestMapsBrokenModule requires that maps reports an unreadable module before it opens the file.
func TestMapsBrokenModule(t *testing.T) {
	t.Parallel()
	object := livetest.Object(t, 19, "jit_pp.ll")
	dir := t.TempDir()
	for _, c := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "missing.ll"), "no such file or directory"},
		{"directory", dir, "contains no *.ll or *.bc file"},
		{"an object", object, "expected IR, got an ELF object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := clitest.Run(t, "maps", object, "--ir", c.path)
			require.Equal(t, 2, r.Code, r.Stderr)
			require.Empty(t, r.Stdout)
			line, _, _ := strings.Cut(r.Stderr, "\n")
			require.Contains(t, line, c.want)
			require.NotContains(t, r.Stderr, "\x7f")
		})
	}
}

// TestMapsOfCutFiles requires that maps rejects a truncated file of each format, unless the complete map precedes the cut.
func TestMapsOfCutFiles(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for name, object := range map[string]string{
		"ELF":    livetest.Object(t, 19, "sp_push.ll"),
		"Mach-O": livetest.Object(t, 19, "sp_push.ll", "-mtriple=arm64-apple-macosx11"),
		"COFF":   livetest.Object(t, 19, "sp_push.ll", "-mtriple=x86_64-pc-windows-msvc"),
	} {
		t.Run(name, func(t *testing.T) {
			whole, err := os.ReadFile(object)
			require.NoError(t, err)
			_, want := textRecord(t, clitest.Run(t, "maps", object).Stdout, "61")
			path := filepath.Join(t.TempDir(), "cut.o")
			for n := 0; n < len(whole); n += 1 + len(whole)/40 {
				require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
				r := clitest.Run(t, "maps", path)
				if r.Code == 0 { // the map is complete, because it precedes the cut
					_, locations := textRecord(t, r.Stdout, "61")
					require.Equal(t, want, locations, n)
				} else {
					r.FailsEmpty(t, 2, path)
				}
			}
		})
	}
}
