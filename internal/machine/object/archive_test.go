package object

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// listed opens all images of a file and returns their names and the errors.
func listed(t *testing.T, name string, data []byte) (names []string, failures []string) {
	t.Helper()
	for img, err := range Images(name, bytes.NewReader(data), int64(len(data))) {
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			failures = append(failures, err.Error())
			continue
		}
		names = append(names, img.Name)
	}
	return names, failures
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// memberFiles writes the members of the archives below: objects under short and long names, and a file that is not an object.
func memberFiles(t *testing.T) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	long := strings.Repeat("long_", 20) + "name.o"
	for name, data := range map[string][]byte{
		"a.o":     readFile(t, livetest.Object(t, 22, "dup.ll")),
		long:      readFile(t, elfTargets[2].object(t, 22, "dup.ll")),
		"b b.obj": readFile(t, coffTargets[0].object(t, 22, "dup.ll")),
		"text":    []byte("odd"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	return dir, []string{filepath.Join(dir, "a.o"), filepath.Join(dir, "text"), filepath.Join(dir, long), filepath.Join(dir, "b b.obj")}
}

// TestArchives requires that archives in each format of llvm-ar and GNU ar have the original members, and that each member has the object's stack maps.
func TestArchives(t *testing.T) {
	dir, files := memberFiles(t)
	for _, c := range []struct {
		tool string
		args []string
	}{
		{"ar", []string{"rcs"}}, {"ar", []string{"rcS"}},
		{"llvm-ar-22", []string{"--format=gnu", "rcs"}}, {"llvm-ar-22", []string{"--format=bsd", "rcs"}},
		{"llvm-ar-22", []string{"--format=darwin", "rcs"}}, {"llvm-ar-22", []string{"--format=coff", "rcs"}},
		{"llvm-ar-14", []string{"--format=gnu", "rcs"}}, {"llvm-ar-14", []string{"--format=bsd", "rcs"}},
	} {
		lib := filepath.Join(dir, "lib.a")
		_ = os.Remove(lib)
		run(t, livetest.Tool(t, c.tool), append(append(c.args[:len(c.args):len(c.args)], lib), files...)...)
		data := readFile(t, lib)
		var want []string
		for _, n := range []int{0, 2, 3} {
			want = append(want, "lib.a("+filepath.Base(files[n])+")")
		}
		got, failures := listed(t, "lib.a", data)
		require.Equal(t, want, got, "%v", c)
		require.Empty(t, failures)
		for img, err := range Images("lib.a", bytes.NewReader(data), int64(len(data))) {
			require.NoError(t, err)
			name := strings.TrimSuffix(strings.TrimPrefix(img.Name, "lib.a("), ")")
			alone := openFile(t, filepath.Join(dir, name))
			a, _, err := alone.StackMaps()[0].Relocated()
			require.NoError(t, err)
			b, _, err := img.StackMaps()[0].Relocated()
			require.NoError(t, err)
			require.Equal(t, a, b)
		}
		count := 0
		for range Images("lib.a", bytes.NewReader(data), int64(len(data))) {
			count++
			break
		}
		require.Equal(t, 1, count)
	}
}

func TestPlainImages(t *testing.T) {
	names, failures := listed(t, "x.o", seed(t, 22, "dup.ll"))
	require.Equal(t, []string{"x.o"}, names)
	require.Empty(t, failures)
	for _, text := range []string{"", "!<arch>", "text"} {
		for _, err := range Images("x", strings.NewReader(text), int64(len(text))) {
			require.ErrorIs(t, err, ErrNotObject)
		}
	}
	names, failures = listed(t, "empty.a", []byte(archiveMagic))
	require.Empty(t, names)
	require.Empty(t, failures)
}

// TestThinArchive requires that the members of a thin archive are named but not opened: a hostile archive must not choose which files of this machine
// are read.
func TestThinArchive(t *testing.T) {
	dir, files := memberFiles(t)
	lib := filepath.Join(dir, "lib.a")
	run(t, livetest.Tool(t, "llvm-ar-22"), append([]string{"rcs", "--thin", lib}, files...)...)
	names, failures := listed(t, "lib.a", readFile(t, lib))
	require.Empty(t, names)
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], `a thin archive, which has no contents: give its members instead; the first is "`)
	require.Contains(t, failures[0], `a.o"`)
}

// TestImportLibrary requires that the library that lld-link writes with a DLL is readable. It contains an index and stubs.
func TestImportLibrary(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, "x.lib")
	run(t, livetest.Tool(t, "lld-link-19"), "-dll", "-noentry", "-nodefaultlib", "-export:a", "-implib:"+lib, "-out:"+filepath.Join(dir, "x.dll"),
		coffTargets[0].object(t, 22, "dup.ll"))
	names, failures := listed(t, "x.lib", readFile(t, lib))
	require.Empty(t, failures)
	require.Equal(t, []string{"x.lib(x.dll)", "x.lib(x.dll)", "x.lib(x.dll)"}, names, "what builds the import table; no stub")
}

// TestImagesOfUniversal reads universal files of objects and archives, and an archive with universal members.
func TestImagesOfUniversal(t *testing.T) {
	dir := t.TempDir()
	var objects, archives []string
	for _, arch := range []string{"x86_64", "arm64"} {
		object, archive := livetest.Object(t, 22, "dup.ll", "-mtriple="+arch+"-apple-macosx11.0.0"), filepath.Join(dir, arch+".a")
		run(t, livetest.Tool(t, "llvm-ar-22"), "--format=darwin", "rcs", archive, object)
		objects, archives = append(objects, object), append(archives, archive)
	}
	lipo := livetest.LLVM(t, 22, "llvm-lipo")
	fat, fatArchive, lib := filepath.Join(dir, "fat.o"), filepath.Join(dir, "fat.a"), filepath.Join(dir, "lib.a")
	run(t, lipo, append([]string{"-create", "-output", fat}, objects...)...)
	run(t, lipo, append([]string{"-create", "-output", fatArchive}, archives...)...)
	run(t, livetest.Tool(t, "llvm-ar-22"), "--format=gnu", "rcS", lib, fat)
	for path, want := range map[string][]string{
		fat:        {"f (x86_64)", "f (arm64)"},
		fatArchive: {"f (x86_64)(dup.o)", "f (arm64)(dup.o)"},
		lib:        {"f(fat.o) (x86_64)", "f(fat.o) (arm64)"},
	} {
		names, failures := listed(t, "f", readFile(t, path))
		require.Equal(t, want, names)
		require.Empty(t, failures)
	}
}

// header returns the header of a member.
func header(name string, size any) string {
	return fmt.Sprintf("%-16s%-12s%-6s%-6s%-8s%-10v`\n", name, "0", "0", "0", "644", size)
}

func TestBrokenArchives(t *testing.T) {
	object := string(seed(t, 22, "dup.ll"))
	broken := object[:16] + "\xff\xff\xff\xff" + object[20:len(object)-100]
	pad := func(s string) string { return s + strings.Repeat("\n", len(s)&1) }
	for _, c := range []struct {
		name, data string
		images     []string
		failures   []string
	}{
		{"a member that is cut", pad(header("a/", len(broken))+broken) + header("b/", len(object)) + object, []string{"x(b)"}, []string{"x(a): "}},
		{"a header that is cut", pad(header("a/", len(object))+object) + "b", []string{"x(a)"}, []string{"it ends inside the header of a member"}},
		{"no header", strings.Repeat("x", 60), nil, []string{"x+0x8: malformed member header"}},
		{"a size past the end", header("a/", 5) + "1234", nil, []string{"a member of 5 bytes, but only 4 are left"}},
		{"a size that is none", header("a/", "-1"), nil, []string{`"-1" is not a valid member size`}},
		{"a name past the end", header("//", 2) + "a\n" + header("/2", 0), nil, []string{`"/2" is not a valid member name`}},
		{"a name without names", header("/0", 0), nil, []string{`"/0" is not a valid member name`}},
		{"a name longer than its member", header("#1/9", 8) + "12345678", nil, []string{`"#1/9" is not a valid name length in a member of 8 bytes`}},
		{"an archive in it", header("a/", 8) + archiveMagic, nil, []string{"x(a): an archive in an archive is not supported"}},
	} {
		names, failures := listed(t, "x", []byte(archiveMagic+c.data))
		require.Equal(t, c.images, names, c.name)
		require.Len(t, failures, len(c.failures), c.name)
		for n, want := range c.failures {
			require.Contains(t, failures[n], want, c.name)
		}
	}
}

func surveyImages(t testing.TB, data []byte) {
	for img, err := range Images("lib", bytes.NewReader(data), int64(len(data))) {
		var e *Error
		if err != nil && !errors.As(err, &e) {
			require.ErrorAs(t, err, &e)
		}
		if err == nil {
			for _, s := range img.StackMaps() {
				_, _, _ = s.Relocated()
			}
		}
	}
}

// archiveOf returns a small archive of objects in three formats.
func archiveOf(t testing.TB, format string) []byte {
	t.Helper()
	dir := t.TempDir()
	lib := filepath.Join(dir, "lib.a")
	run(t, livetest.Tool(t, "llvm-ar-22"), "--format="+format, "rcs", lib,
		livetest.Object(t, 22, "dup.ll"), coffTargets[1].object(t, 22, "dup.ll"))
	return readFile(t, lib)
}

func TestEveryByteOfArchiveChanged(t *testing.T) {
	for _, format := range []string{"gnu", "bsd"} {
		data := archiveOf(t, format)
		usual := livetest.Allocated(func() { surveyImages(t, data) })
		// Mark the bytes of the members: other tests change the bytes of objects.
		inside := make([]bool, len(data))
		for m, err := range members("lib", bytes.NewReader(data), int64(len(data))) {
			require.NoError(t, err)
			object := make([]byte, m.data.Size())
			_, err = m.data.ReadAt(object, 0)
			require.NoError(t, err)
			at := bytes.Index(data, object)
			require.Positive(t, at)
			for n := range object[16:] {
				inside[at+16+n] = true
			}
		}
		for at := range data {
			if inside[at] {
				continue
			}
			was := data[at]
			spent := livetest.Allocated(func() {
				for _, v := range []byte{0, '0', '9', '/', was + 1, was ^ 0x40, 0xff} {
					data[at] = v
					surveyImages(t, data[:len(data):len(data)])
				}
			})
			data[at] = was
			require.LessOrEqual(t, spent, 7*(4*usual+64*uint64(len(data)))+32<<20, "byte %#x", at)
		}
		for n := range data {
			if inside[n] && n%16 != 0 {
				continue
			}
			surveyImages(t, data[:n:n])
		}
	}
}

func FuzzArchive(f *testing.F) {
	for _, format := range []string{"gnu", "bsd", "coff", "darwin"} {
		f.Add(archiveOf(f, format))
	}
	f.Fuzz(func(t *testing.T, data []byte) { surveyImages(t, data) })
}
