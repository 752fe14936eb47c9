package main_test

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

	"reframe/internal/livetest"
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
		{"no section", binary, 0, "no stack map: it has no section .llvm_stackmaps"},
		{"text", write(t, "text.o", "this is not an object file\n"), 2, "not an object file"},
		{"empty", write(t, "empty.o", ""), 2, "not an object file"},
		{"three bytes", write(t, "three.o", "\x03\x00\x00"), 2, "not an object file"},
		{"zeros", write(t, "zeros.o", strings.Repeat("\x00", 4096)), 2, "not an object file"},
		{"a header alone", write(t, "head.o", "\x7fELF\x02\x01\x01\x00"), 2, "it ends inside its header"},
		{"directory", dir, 2, "not a regular file"},
		{"device", "/dev/zero", 2, "not a regular file"},
		{"pipe", pipe, 2, "not a regular file"},
		{"missing", filepath.Join(dir, "missing.o"), 2, "no such file or directory"},
		{"an archive without members", write(t, "none.a", "!<arch>\n"), 0, "no stack map"},
		{"an archive cut short", write(t, "cut.a", "!<arch>\nmember.o/       0"), 2, "it ends inside the header of a member"},
		{"cut short", changed(t, object, "cut.o", func(b []byte, _ int) []byte { return b[:100] }), 2, "lies outside of it"},
		{"cut before the section ends", changed(t, object, "cut.o", func(b []byte, at int) []byte { return b[:at+20] }), 2, "lies outside of it"},
		{"escapes", write(t, "\x1b[31mred.o", "text"), 2, "[31mred.o"},
		// Bytes of the section alone: version, three reserved bytes, then the numbers of functions, constants and records (LLVM, "Stack Map
		// Format").
		{"bare, a header of 4 bytes", write(t, "b", section[:4]), 2, ".llvm_stackmaps+0x0: a header in 4 bytes"},
		{"bare, a header alone", write(t, "b", section[:16]), 2, "1 functions in 0 bytes"},
		{"bare, cut in a location", write(t, "b", section[:100]), 2, "the section ends inside a map"},
		{"bare, cut before its end", write(t, "b", section[:len(section)-8]), 2, "the section ends inside a map"},
		{"bare, 2³²-1 functions", write(t, "b", "\x03\x00\x00\x00\xff\xff\xff\xff"+section[8:]), 2, "4294967295 functions in "},
		{"bare, 2³²-1 constants", write(t, "b", section[:8]+"\xff\xff\xff\xff"+section[12:]), 2, "4294967295 constants in "},
		{"bare, 2³²-1 of all", write(t, "b", "\x03\x00\x00\x00"+strings.Repeat("\xff", 12)), 2, "4294967295 functions in 0 bytes"},
		{"bare, version 9", write(t, "b", "\x09"+section[1:]), 2, "1, 2 and 3 are"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, more := range [][]string{nil, {"--json"}, {"--check"}, {"--format", "llvm"}} {
				r := reframe(t, append([]string{"maps", c.path}, more...)...)
				r.fails(t, c.code, c.want)
				require.Equal(t, c.code == 0 && slices.Equal(more, []string{"--json"}), r.stdout != "", r.stdout)
				require.NotContains(t, r.stderr, escape)
			}
		})
	}
}

// A section that cannot be read at all is a failure, and a broken rule for --check.
func TestMapsCannotBeRead(t *testing.T) {
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
		{"version 9", set(0, "\x09"), nil, []string{"version 9 is not known", "1, 2 and 3 are"}},
		{"version 0", set(0, "\x00\x00\x00\x07"), nil, []string{".llvm_stackmaps+0x"}},
		{"version 9 as v3", set(0, "\x09"), []string{"--dialect", "v3"}, []string{"version 9 is not known", "1, 2 and 3 are"}},
		{"2³²-1 functions", set(4, "\xff\xff\xff\xff"), nil, []string{"4294967295 functions in "}},
		{"2³²-1 constants", set(8, "\xff\xff\xff\xff"), nil, []string{"4294967295 constants in "}},
		{"2³²-1 records", set(12, "\xff\xff\xff\xff"), nil, []string{"4294967295"}},
		{"2⁶⁴-1 records of a function", set(16+16, "\xff\xff\xff\xff\xff\xff\xff\xff"), nil, []string{"18446744073709551615"}},
		{"65535 locations", set(16+24+8+14, "\xff\xff"), nil, []string{"65535 locations in "}},
		{"65535 live-outs", set(16+24+8+16+16*12+2, "\xff\xff"), nil, []string{"65535 live-outs in "}},
		{"kind 9", set(16+24+8+16, "\x09"), nil, []string{"unknown kind 9"}},
		{"as yk", set(0, ""), []string{"--dialect", "yk"}, []string{"as layout yk", "layout v3 fits"}},
		{"as yk-old", set(0, ""), []string{"--dialect", "yk-old"}, []string{"as layout yk-old", "layout v3 fits"}},
		{"as v1", set(0, ""), []string{"--dialect", "v1"}, []string{"layout v1 does not carry version 3", "layout v3 fits"}},
		{"as v2", set(0, ""), []string{"--dialect", "v2"}, []string{"layout v2 does not carry version 3", "layout v3 fits"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := changed(t, object, "bad.o", c.change)
			for _, more := range [][]string{nil, {"--json"}, {"--format", "llvm"}, {"--record", "2001"}} {
				r := reframe(t, append(append([]string{"maps", path}, c.args...), more...)...)
				r.failsEmpty(t, 2, append(c.want, path)...)
			}
			r := reframe(t, append([]string{"maps", path, "--check"}, c.args...)...)
			require.Equal(t, 1, r.code, r.stderr)
			require.Empty(t, r.stderr)
			require.Contains(t, r.stdout, c.want[0])
			require.NotContains(t, r.stdout, "kept")
			_, checked, errors := verdict(t, reframe(t, append([]string{"maps", path, "--check", "--json"}, c.args...)...))
			require.Empty(t, checked)
			require.Len(t, errors, 1)
			for _, want := range c.want {
				require.Contains(t, errors[0], want)
			}
		})
	}
}

// For a section with a broken map after a complete one, maps shows the complete one and the error of the other, and the status is that of a partial
// answer.
func TestMapsPartlyRead(t *testing.T) {
	t.Parallel()
	first := livetest.Object(t, 19, "sm_spill.ll", "-relocation-model=pic")
	linked := livetest.Link(t, "part", links["no-pie"], first, livetest.Object(t, 19, "sp_push.ll", "-relocation-model=pic"))
	size := sectionSize(t, first)
	path := changed(t, linked, "part", func(b []byte, at int) []byte { b[at+size] = 9; return b })
	want := readobj(t, first)

	r := reframe(t, "maps", path)
	require.Equal(t, 1, r.code)
	require.Empty(t, r.stderr)
	what := fmt.Sprintf(".llvm_stackmaps+%#x: version 9 is not known; 1, 2 and 3 are", size)
	require.Equal(t, 1, strings.Count(r.stdout, what), r.stdout)
	require.Equal(t, want.records, strings.Count(r.stdout, "    record "))

	r = reframe(t, "maps", path, "--json")
	require.Equal(t, 1, r.code)
	require.Empty(t, r.stderr)
	images := list(t, r.object(t)["images"])
	require.Len(t, images, 1)
	require.Contains(t, images[0]["error"], what)
	delete(images[0], "error")
	require.Equal(t, want, recount(t, images))
	valid(t, "maps.schema.json", r.stdout)

	r = reframe(t, "maps", path, "--check")
	require.Equal(t, 1, r.code)
	require.Empty(t, r.stderr)
	require.Contains(t, r.stdout, what)
	require.NotContains(t, r.stdout, "BROKEN")
	require.Contains(t, r.stdout, "kept    record counts add up  1\n")

	r = reframe(t, "maps", path, "--format", "llvm")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, what)
	require.Equal(t, want.records, strings.Count(r.stdout, "  Record ID: "))
}

// The error names the layout that fits, also for a section alone.
func TestMapsWrongDialect(t *testing.T) {
	t.Parallel()
	section := write(t, "section", string(bare(t, livetest.Object(t, 19, "jit_pp.ll"))))
	for _, dialect := range []string{"v1", "v2", "yk", "yk-old"} {
		r := reframe(t, "maps", section, "--dialect", dialect)
		r.failsEmpty(t, 2, "as layout "+dialect+": ", "layout v3 fits")
	}
	require.Equal(t, 0, reframe(t, "maps", section, "--dialect", "v3").code)
	// In a section of the other byte order the counts exceed the section.
	reframe(t, "maps", section, "--arch", "s390x").failsEmpty(t, 2, "16777216 functions in ")
	// An object file states its own architecture.
	r := reframe(t, "maps", livetest.Object(t, 19, "jit_pp.ll"), "--arch", "s390x")
	r.failsEmpty(t, 2, "an object file tells its architecture", "--arch is for the bytes of a section alone")
}

// An unreadable file is reported as such.
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
	finish(t, asNobody(t, command(t, "maps", secret))).failsEmpty(t, 2, secret, "permission denied")
}

// --core accepts only cores, and cores are accepted only there.
func TestMapsOfWrongCore(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	core := livetest.Gcore(t, p)
	object := livetest.Object(t, 19, "jit_pp.ll")
	text, err := os.ReadFile(core)
	require.NoError(t, err)
	machine := func(name string, m elf.Machine) string {
		b := bytes.Clone(text)
		b[18], b[19] = byte(m), byte(m>>8) // e_machine
		return write(t, name, string(b))
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
		{"as a file, cut short", []string{write(t, "cut", string(text[:4096]))}, 2, []string{"no stack map", "the core is cut short: it has 4096 of its "}},
		{"without maps", []string{"--core", core}, 0, []string{core, "no stack map"}},
		{"cut short", []string{"--core", write(t, "cut", string(text[:4096]))}, 2, []string{"no stack map", "the core is cut short: it has 4096 of its "}},
		{"of 32 bits", []string{"--core", write(t, "narrow", string(narrow))}, 2, []string{"a 32-bit core"}},
		{"an object", []string{"--core", object}, 2, []string{object, "not an ELF core", "reframe maps FILE"}},
		{"text", []string{"--core", write(t, "text", "text\n")}, 2, []string{"not an ELF core"}},
		{"empty", []string{"--core", write(t, "empty", "")}, 2, []string{"not an ELF core: it is empty"}},
		{"missing", []string{"--core", filepath.Join(dir, "missing")}, 2, []string{"no such file or directory"}},
		{"directory", []string{"--core", dir}, 2, []string{"not an ELF core: a directory"}},
		{"device", []string{"--core", "/dev/zero"}, 2, []string{"not an ELF core: a device"}},
		{"pipe", []string{"--core", pipe}, 2, []string{"not an ELF core: a pipe"}},
		{"escapes", []string{"--core", write(t, "\x1b[31mred", "text\n")}, 2, []string{"[31mred"}},
		{"no process", []string{"-p", "4194305"}, 2, []string{"4194305", "no such process"}}, // above PID_MAX_LIMIT
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, more := range [][]string{nil, {"--json"}, {"--check"}, {"--format", "llvm"}} {
				r := reframe(t, append(append([]string{"maps"}, c.args...), more...)...)
				r.fails(t, c.code, c.want...)
				require.Equal(t, c.code == 0 && slices.Equal(more, []string{"--json"}), r.stdout != "", r.stdout)
				require.NotContains(t, r.stderr, escape)
			}
		})
	}
}

// A module that cannot be read ends maps before it opens the file.
func TestMapsBrokenModule(t *testing.T) {
	t.Parallel()
	object := livetest.Object(t, 19, "jit_pp.ll")
	dir := t.TempDir()
	for _, c := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "missing.ll"), "no such file or directory"},
		{"directory", dir, "no file *.ll or *.bc is in it"},
		{"an object", object, "an ELF object, and no IR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reframe(t, "maps", object, "--ir", c.path)
			require.Equal(t, 2, r.code, r.stderr)
			require.Empty(t, r.stdout)
			line, _, _ := strings.Cut(r.stderr, "\n")
			require.Contains(t, line, c.want)
			require.NotContains(t, r.stderr, "\x7f")
		})
	}
}

// A file of the other kinds that is cut anywhere is rejected, or read up to what is missing, which is reported.
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
			_, want := textRecord(t, reframe(t, "maps", object).stdout, "61")
			path := filepath.Join(t.TempDir(), "cut.o")
			for n := 0; n < len(whole); n += 1 + len(whole)/40 {
				require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
				r := reframe(t, "maps", path)
				if r.code == 0 { // the map was before the cut, and is whole
					_, locations := textRecord(t, r.stdout, "61")
					require.Equal(t, want, locations, n)
				} else {
					r.failsEmpty(t, 2, path)
				}
			}
		})
	}
}
