package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// C builds a C program of testdata with gcc and the given flags, runs it with args, and returns after it has printed "ready" and its main thread
// waits in the kernel. testdata/README.md describes each program.
func C(t testing.TB, source string, cflags []string, args ...string) *Process {
	t.Helper()
	return start(t, exec.Command(CBinary(t, source, cflags...), args...), inKernel)
}

// CBinary builds a C program of testdata with gcc and returns the path of the executable.
func CBinary(t testing.TB, source string, cflags ...string) string {
	t.Helper()
	path := Testdata(t, source)
	args := append([]string{"-O1", "-pthread", "-Wall", "-Wextra", "-Werror", path}, cflags...)
	return build(t, recipe{
		output: strings.TrimSuffix(filepath.Base(source), ".c"),
		tool:   Tool(t, "gcc"),
		args:   args,
		inputs: dependencies(t, args),
	})
}

// Compiled compiles a C or C++ source, given by its path, with a compiler and its flags: to a program or, with -c or -shared, to an object. It
// returns the path of the result.
func Compiled(t testing.TB, compiler, source string, flags ...string) string {
	t.Helper()
	path, err := filepath.Abs(source)
	require.NoError(t, err)
	name := filepath.Base(source)
	return build(t, recipe{
		output: strings.TrimSuffix(name, filepath.Ext(name)),
		tool:   Tool(t, compiler),
		args:   append([]string{path}, flags...),
		inputs: dependencies(t, []string{path}),
	})
}

// dependencies returns the files among the arguments, and the files that they include from their own directories and from directories given by -I.
// Having gcc list them would take longer than checking whether the output is cached.
func dependencies(t testing.TB, args []string) []string {
	t.Helper()
	var dirs, files []string
	seen := map[string]bool{}
	var add func(path string) bool
	add = func(path string) bool {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return false
		}
		if path = filepath.Clean(path); seen[path] {
			return true
		}
		seen[path] = true
		files = append(files, path)
		if !slices.Contains([]string{".c", ".cc", ".cpp", ".h", ".hpp", ".inc", ".def"}, filepath.Ext(path)) {
			return true
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range included.FindAllSubmatch(text, -1) {
			for _, dir := range append([]string{filepath.Dir(path)}, dirs...) {
				if add(filepath.Join(dir, string(m[1]))) {
					break
				}
			}
		}
		return true
	}
	for i, a := range args {
		if a == "-I" {
			dirs = append(dirs, args[i+1])
		} else if dir, ok := strings.CutPrefix(a, "-I"); ok {
			dirs = append(dirs, dir)
		}
	}
	for _, a := range args {
		add(a)
	}
	return files
}

// included matches an include line. It also matches lines of system headers, which are not found in our directories.
var included = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]`)

// Object compiles a program of testdata/programs, or any .ll file given by its absolute path, to a relocatable object with llc of an LLVM release,
// and returns its path. Flags are passed to llc.
func Object(t testing.TB, version int, program string, flags ...string) string {
	t.Helper()
	return build(t, objectRecipe(t, version, IR(t, version, program), flags))
}

// TryObject is like Object, for a target that may not accept the program, because llc fails or crashes on many. In that case, or if llc would run for
// minutes, it returns "".
func TryObject(t testing.TB, version int, program string, flags ...string) string {
	t.Helper()
	ir, failure := module(t, version, program)
	if failure != "" || oddShadow(t, ir) && slices.ContainsFunc(flags, ofFourBytes) {
		return ""
	}
	output, failure := objectRecipe(t, version, ir, flags).make(t)
	if failure != "" {
		return ""
	}
	return output
}

// shadow matches a stackmap, with the size of its shadow.
var shadow = regexp.MustCompile(`@llvm\.experimental\.stackmap\(i64 -?\d+, i32 (\d+)`)

// oddShadow reports whether a stackmap's shadow is not a multiple of 4. For aarch64, llc then writes nops until the object has 4 GiB, or never ends.
func oddShadow(t testing.TB, ir string) bool {
	t.Helper()
	text, err := os.ReadFile(ir)
	require.NoError(t, err)
	return slices.ContainsFunc(shadow.FindAllSubmatch(text, -1), func(m [][]byte) bool {
		bytes, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		return bytes%4 != 0
	})
}

// ofFourBytes reports whether a flag names a target whose instructions have four bytes.
func ofFourBytes(flag string) bool {
	return strings.HasPrefix(flag, "-mtriple=") && !strings.HasPrefix(flag, "-mtriple=x86_64")
}

func objectRecipe(t testing.TB, version int, ir string, flags []string) recipe {
	t.Helper()
	args := []string{"-filetype=obj"}
	if version == 14 && usesOpaquePointers(t, ir) {
		args = append(args, "-opaque-pointers")
	}
	return recipe{
		output: strings.TrimSuffix(filepath.Base(ir), ".ll") + ".o",
		tool:   LLVM(t, version, "llc"),
		args:   append(append(args, flags...), ir),
		inputs: []string{ir},
	}
}

// Link links objects with gcc and returns the path of the result.
func Link(t testing.TB, output string, args []string, objects ...string) string {
	t.Helper()
	return build(t, recipe{output: output, tool: Tool(t, "gcc"), args: append(args[:len(args):len(args)], objects...), inputs: objects})
}

// ManyObjects runs manyobjects.c with n registered JIT objects and further arguments, and returns when the program waits in pause.
func ManyObjects(t testing.TB, n int, more ...string) *Process {
	t.Helper()
	include := "-I" + filepath.Join(moduleRoot(t), "internal", "demo", "target")
	program := CBinary(t, "manyobjects.c", include)
	return start(t, exec.Command(program, append([]string{Object(t, 19, "host_mod.ll"), fmt.Sprint(n)}, more...)...), inPause)
}

// Linked compiles a program of testdata/programs ahead of time with llc of an LLVM release, links it with gcc and the given flags (-pie, -no-pie),
// runs it, and returns when it waits in pause.
func Linked(t testing.TB, version int, program string, flags ...string) *Process {
	t.Helper()
	object := Object(t, version, program, "-relocation-model=pic")
	path := build(t, recipe{
		output: strings.TrimSuffix(filepath.Base(object), ".o"),
		tool:   Tool(t, "gcc"),
		args:   append([]string{object}, flags...),
		inputs: []string{object},
	})
	p := start(t, exec.Command(path), inPause)
	p.IR = IR(t, version, program)
	return p
}

// CProgram builds a program of C sources, given by their paths, with a compiler and its flags, and returns its path.
func CProgram(t testing.TB, compiler string, flags []string, sources ...string) string {
	t.Helper()
	args := slices.Concat(sources, flags)
	return build(t, recipe{output: "program", tool: Tool(t, compiler), args: args, inputs: dependencies(t, args)})
}

// Amalgamation returns a directory with sqlite3.c and sqlite3.h: SQLite in one file, as its own Makefile builds it from the files of the Debian
// source package.
func Amalgamation(t testing.TB) string {
	t.Helper()
	script := Testdata(t, "amalgamation.sh")
	version := filepath.Join(DebianSource(t, "sqlite3"), "manifest.uuid")
	return filepath.Dir(build(t, recipe{output: "sqlite3.c", tool: Tool(t, "sh"), args: []string{script, filepath.Dir(version)}, inputs: []string{script, version}}))
}

// Runs32Bit reports whether the kernel runs 32-bit programs. The kernels of some virtual machines do not, whatever their configuration.
func Runs32Bit(t testing.TB) bool {
	t.Helper()
	cmd := exec.Command(CBinary(t, "bits32.c", "-m32", "-nostdlib", "-static"))
	if err := cmd.Start(); err != nil {
		require.ErrorIs(t, err, syscall.ENOEXEC)
		return false
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // an error means that it was killed
	return true
}

// DebugRegisters reports whether breakpoints in debug registers are hit on this machine. On some virtual machines they are not.
func DebugRegisters(t testing.TB) bool {
	t.Helper()
	out, err := exec.Command(CBinary(t, "debugregister.c")).Output()
	require.NoError(t, err)
	require.Contains(t, []string{"0\n", "20\n"}, string(out))
	return string(out) == "20\n"
}

// HeldPlaces returns the number of breakpoints that debug registers can hold on this machine.
func HeldPlaces(t testing.TB) int {
	t.Helper()
	if !DebugRegisters(t) {
		return 0
	}
	return 4
}
