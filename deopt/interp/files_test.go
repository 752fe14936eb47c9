package interp_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/internal/livetest"
)

// givenFile is the content of the file "given" for the programs of testdata/files.
const givenFile = "first\n12 rest\nlast line"

// filesBelow reads the files in a directory, in the form of Interp.Files.
func filesBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		name := strings.TrimPrefix(path, dir)
		if err != nil || e.IsDir() {
			return err
		}
		files[name], err = os.ReadFile(path)
		return err
	}))
	return files
}

// TestFilesAreAsNative runs the programs of testdata/files here and as native code, and compares their output and the files they leave.
func TestFilesAreAsNative(t *testing.T) {
	livetest.Slow(t)
	programs, err := filepath.Glob("testdata/files/*.c")
	require.NoError(t, err)
	require.Len(t, programs, 2)
	for _, file := range programs {
		for _, build := range []struct {
			name, version, level string
			flags                []string
		}{{"14-O2", "14", "-O2", nil}, {"19-O0", "19", "-O0", nil}, {"i686", "19", "-O1", livetest.I686},
			{"i686 with large files", "19", "-O1", append([]string{"-D_FILE_OFFSET_BITS=64"}, livetest.I686...)}} {
			t.Run(filepath.Base(file)+"/"+build.name, func(t *testing.T) {
				dir, work := t.TempDir(), t.TempDir()
				program, module := filepath.Join(dir, "program"), filepath.Join(dir, "program.ll")
				flags := append(slices.Clone(build.flags), "-w", build.level, file, "-o")
				clang(t, build.version, append(flags, program)...)
				clang(t, build.version, append(flags, module, "-S", "-emit-llvm")...)
				command := []string{program}
				if build.flags != nil {
					command = livetest.RunI686(t, program)
				}
				require.NoError(t, os.WriteFile(filepath.Join(work, "given"), []byte(givenFile), 0o644))
				t.Chdir(work)
				want := native(t, nil, command[0], command[1:]...)

				text, err := os.ReadFile(module)
				require.NoError(t, err)
				m, err := ir.Parse("program.ll", text)
				require.NoError(t, err)
				given := []byte(givenFile)
				in, err := interp.New(m, interp.Options{Files: map[string][]byte{"given": given}})
				require.NoError(t, err)
				res, err := in.Main(context.Background(), []string{program})
				require.NoError(t, err, "%s", res.Output)
				v, ok := res.Value.Uint()
				require.True(t, ok)
				same(t, want, ran{res.Output, res.Errors, int(v)})
				left := in.Files()
				require.Contains(t, left, "/tmp/")
				delete(left, "/tmp/")
				require.Equal(t, filesBelow(t, work), left)
				require.Equal(t, givenFile, string(given))
			})
		}
	}
}

// TestFilesAreBounded runs programs that exceed the bounds, or that use closed files.
func TestFilesAreBounded(t *testing.T) {
	livetest.Slow(t)
	const head = "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/stat.h>\n#include <unistd.h>\nint main(void) { char name[30]; long n = 0; int fd; FILE *f; "
	for _, c := range []struct {
		name, body string
		kind       interp.Kind // 0 of those that return 7
	}{
		{"a file without end", `f = fopen("f", "w"); for (;;) fprintf(f, "%60000d", 1);`, interp.KindMemory},
		{"a file of a terabyte", `fd = open("f", O_RDWR | O_CREAT, 0600); ftruncate(fd, 1L << 40);`, interp.KindMemory},
		{"a hole of a terabyte", `fd = open("f", O_RDWR | O_CREAT, 0600); pwrite(fd, "x", 1, 1L << 40);`, interp.KindMemory},
		{"the end of what can be", `fd = open("f", O_RDWR | O_CREAT, 0600); pwrite(fd, "xyz", 3, 0x7fffffffffffffff);`, interp.KindMemory},
		{"files without end", `for (;;) { sprintf(name, "%ld", n++); close(open(name, O_CREAT | O_RDWR, 0600)); }`, interp.KindMemory},
		{"directories without end", `for (;;) { sprintf(name, "%ld", n++); mkdir(name, 0700); }`, interp.KindMemory},
		{"streams without end", `for (;;) fclose(fopen("given", "r"));`, interp.KindMemory},
		{"renames without end", `for (;;) { rename("given", "a"); rename("a", "given"); }`, interp.KindSteps},
		{"no more descriptors", `while (open("given", O_RDONLY) >= 0) n++; return n == 1021 && dup(3) < 0 ? 7 : 1;`, 0},
		{"memory that comes back", `for (; n < 300; n++) { fd = open("f", O_CREAT | O_RDWR, 0600); ftruncate(fd, 100000); unlink("f"); close(fd); } return 7;`, 0},
		{"a file that another stands in for", `fd = open("f", O_CREAT | O_RDWR, 0600); write(fd, "old", 3); rename("given", "f"); read(fd, name, 3); lseek(fd, 0, 0);
			read(fd, name, 3); return name[0] == 'o' ? 7 : 1;`, 0},
		{"a stream that is closed", `f = fopen("given", "r"); fclose(f); fgetc(f);`, interp.KindFault},
		{"a stream whose descriptor is closed", `f = fopen("given", "r"); close(fileno(f)); return fgetc(f) == EOF && fseek(f, 0, 0) && fclose(f) ? 7 : 1;`, 0},
		{"a read into nothing", `read(open("given", O_RDONLY), (void *)8, 5);`, interp.KindFault},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := interp.New(compiled(t, head+c.body+" return 0; }\n"), interp.Options{MaxSteps: 3e6, MaxMemory: 1 << 20, Files: map[string][]byte{"given": []byte("bytes")}})
			require.NoError(t, err)
			res, err := in.Main(context.Background(), []string{"prog"})
			var run *interp.RunError
			if c.kind != 0 {
				require.ErrorAs(t, err, &run)
				require.Equal(t, c.kind, run.Kind, "%v", err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "7", res.Value.Format())
		})
	}
}

// TestFilesHaveTheirNames requires that Options.Files has files by their names, and that Files returns them so.
func TestFilesHaveTheirNames(t *testing.T) {
	m := compiled(t, `#include <stdio.h>
#include <unistd.h>
int main(void) { fclose(fopen("a/b/new", "w")); unlink("x"); truncate("cut", 1); return chdir("empty/below"); }
`)
	given := map[string][]byte{"a/b/c": []byte("c"), "/x": nil, "empty/below/": nil, "cut": []byte("cut"), "../up": []byte("up")}
	in, err := interp.New(m, interp.Options{Files: given})
	require.NoError(t, err)
	res, err := in.Main(context.Background(), []string{"prog"})
	require.NoError(t, err)
	require.Equal(t, "0", res.Value.Format())
	require.Equal(t, map[string][]byte{"/a/b/c": []byte("c"), "/a/b/new": nil, "/empty/below/": nil, "/cut": []byte("c"), "/up": []byte("up"), "/tmp/": nil}, in.Files())
	require.Equal(t, "cut", string(given["cut"]))

	none, err := interp.New(m, interp.Options{})
	require.NoError(t, err)
	require.Nil(t, none.Files())
}
