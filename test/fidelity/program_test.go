package fidelity_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/test/livetest"
)

// hosted is the part of a program that replaces functions which the interpreter does not model: it implements files in memory, sscanf and random
// numbers.
var hosted = source{own: []string{"testdata/host/files.c"}, flags: []string{"-include", "testdata/host/host.h"}}

// hosts adds hosted to a program.
func (s source) hosts() source {
	s.own, s.flags = append(slices.Clone(s.own), hosted.own...), append(slices.Clone(s.flags), hosted.flags...)
	return s
}

// filePrograms are programs that work on files. All except snappy use the files in memory of testdata/host.
var filePrograms = map[string]source{
	"tcc": source{
		pack:  "tcc",
		files: []string{"tcc.c"},
		flags: []string{"-DONE_SOURCE=1", "-Itestdata/tcc"},
	}.hosts(),
	"mawk": source{
		pack: "mawk",
		files: []string{"parse.c", "scan.c", "memory.c", "main.c", "hash.c", "execute.c", "code.c", "da.c", "error.c", "init.c", "bi_vars.c", "cast.c",
			"print.c", "bi_funct.c", "kw.c", "jmp.c", "array.c", "field.c", "split.c", "re_cmpl.c", "regexp.c", "zmalloc.c", "fin.c", "files.c", "matherr.c",
			"fcall.c", "version.c"},
		own:   []string{"testdata/mawk/scancode.c"},
		flags: []string{"-DHAVE_CONFIG_H", "-DLOCAL_REGEXP", "-D_DEFAULT_SOURCE", "-D_XOPEN_SOURCE=500", "-Itestdata/mawk"},
	}.hosts(),
	"libtommath": source{
		pack:  "libtommath",
		files: []string{"bn_*.c", "demo/shared.c", "demo/test.c"},
		flags: []string{"-include", "testdata/libtommath/fixed.h"},
	}.hosts(),
	"snappy": {
		pack:  "snappy",
		files: []string{"snappy.cc", "snappy-sinksource.cc", "snappy-stubs-internal.cc"},
		own:   []string{"testdata/snappy/trip.cc"},
		// Before C++20, std::string is compiled in libstdc++ instead of the module.
		flags: []string{"-std=c++20", "-DHAVE_CONFIG_H", "-Itestdata/snappy"},
	},
}

// gifTool returns a program of giflib.
func gifTool(name string) source {
	return source{
		pack: "giflib",
		files: []string{"dgif_lib.c", "egif_lib.c", "gifalloc.c", "gif_err.c", "gif_font.c", "gif_hash.c", "quantize.c", "openbsd-reallocarray.c",
			"getarg.c", "qprintf.c", name + ".c"},
	}.hosts()
}

// programVariants returns the ways to compile programs whose compilation is slow. Without FIDELITY=all these are few, possibly none.
func programVariants(few ...variant) []variant {
	if !all {
		return few
	}
	return []variant{{14, "-O0"}, {14, "-O2"}, {19, "-O1"}, {19, "-O2"}}
}

// task holds the arguments and the input of a program.
type task struct {
	args  []string
	stdin []byte
	files map[string][]byte // by names in the working directory
}

// filed runs a program of filePrograms as native code and in the interpreter. It requires the same output, errors, exit status and files, and returns
// the files that the program wrote.
func filed(t *testing.T, module string, v variant, k task) (outcome, map[string][]byte) {
	t.Helper()
	program := livetest.ModuleBinary(t, v.release, module)
	var input bytes.Buffer
	for _, name := range inOrder(k.files) {
		fmt.Fprintf(&input, "%d %s\n%s", len(k.files[name]), name, k.files[name])
	}
	input.WriteByte('\n')
	input.Write(k.stdin)
	begin := time.Now()
	want := native(t, input.Bytes(), program, k.args...)
	middle := time.Now()
	require.Equal(t, want, interpreted(t, module, input.Bytes(), append([]string{program}, k.args...)...))
	t.Logf("native %v, here with reading the module %v", middle.Sub(begin), time.Since(middle)) // logged only: no result depends on the time
	output, files, ok := strings.Cut(want.Output, "files\n")
	require.True(t, ok, "%s", want.Output)
	want.Output = output
	return want, written(t, files)
}

// written parses the files as testdata/host/files.c prints them.
func written(t *testing.T, text string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for text != "" {
		head, rest, ok := strings.Cut(text, "\n")
		require.True(t, ok)
		number, name, _ := strings.Cut(head, " ")
		size, err := strconv.Atoi(number)
		require.NoError(t, err)
		require.LessOrEqual(t, size, len(rest))
		files[name], text = []byte(rest[:size]), rest[size:]
	}
	return files
}

// packaged reads files of a source package. It returns them by their base names.
func packaged(t *testing.T, pack string, patterns ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(livetest.DebianSource(t, pack), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths, pattern)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			files[filepath.Base(path)] = text
		}
	}
	return files
}

// inOrder returns the sorted names of files.
func inOrder(files map[string][]byte) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestSQLiteIsAsNative requires that interpreted SQLite has the same output as native SQLite for testdata/sqlite/statements.sql, with databases in
// memory.
func TestSQLiteIsAsNative(t *testing.T) {
	if !all {
		return // compiling takes half a minute
	}
	statements, err := os.ReadFile("testdata/sqlite/statements.sql")
	require.NoError(t, err)
	dir := livetest.Amalgamation(t)
	for _, v := range []variant{{14, "-O0"}, {19, "-O1"}} {
		flags := append([]string{v.level, "-w", "-DSQLITE_THREADSAFE=0", "-DSQLITE_TEMP_STORE=3", "-I" + dir}, hosted.flags...)
		module := livetest.CModule(t, v.release, flags, append([]string{filepath.Join(dir, "sqlite3.c"), "testdata/sqlite/shell.c"}, hosted.own...)...)
		t.Run(v.String(), func(t *testing.T) {
			got, _ := filed(t, module, v, task{stdin: statements})
			require.Equal(t, 2, strings.Count(got.Output, "integrity_check=ok"), "%s", got.Output)
		})
	}
}

// TestGifIsAsNative requires that giflib's programs, interpreted and native, have the same results when they read, split, repair and write the
// pictures of the package.
func TestGifIsAsNative(t *testing.T) {
	pictures := packaged(t, "giflib", "pic/*.gif")
	icon := packaged(t, "giflib", "pic/sample.ico")["sample.ico"]
	grid := packaged(t, "giflib", "tests/gifgrid.rgb")["gifgrid.rgb"]
	broken := pictures["treescap.gif"][:len(pictures["treescap.gif"])-20]
	tasks := map[string][]task{
		"giftext":   {{args: []string{"-c", "-e", "picture.gif"}}},
		"gifbuild":  {{args: []string{"-d"}}, {stdin: icon}},
		"gif2rgb":   {{args: []string{"-o", "colors", "picture.gif"}}, {args: []string{"-1", "-o", "pixels", "picture.gif"}}, {args: []string{"-c", "3", "-s", "100", "100"}, stdin: grid}},
		"gifclrmp":  {{args: []string{"picture.gif"}}, {args: []string{"-i", "1", "-g", "1.5"}}},
		"giffix":    {{stdin: broken}},
		"gifecho":   {{args: []string{"-t", "foobar"}}},
		"giffilter": {{}},
	}
	names, programs := []string{"gifgrid.gif", "treescap-interlaced.gif", "x-trans.gif"}, []string{"giftext"}
	if all {
		names, programs = inOrder(pictures), nil
		for name := range tasks {
			programs = append(programs, name)
		}
	}
	for _, name := range programs {
		for _, v := range programVariants(variant{19, "-O1"}) {
			module := gifTool(name).module(t, v)
			for _, k := range tasks[name] {
				for _, picture := range names {
					fed := k
					if k.stdin == nil {
						fed.stdin = pictures[picture]
					}
					fed.files = map[string][]byte{"picture.gif": pictures[picture]}
					t.Run(strings.Join(append([]string{name, v.String(), picture}, k.args...), "/"), func(t *testing.T) { filed(t, module, v, fed) })
					if k.stdin != nil {
						break // these commands do not depend on the picture
					}
				}
			}
		}
	}
}

// TestGiflibBranchesOnWhatWasNeverStored requires that the interpreter reports a bug in a program of giflib: without its option -i, gifclrmp compares
// an uninitialized number (gifclrmp.c:159). MemorySanitizer of clang 19 reports the same line.
func TestGiflibBranchesOnWhatWasNeverStored(t *testing.T) {
	picture := packaged(t, "giflib", "pic/gifgrid.gif")["gifgrid.gif"]
	module := gifTool("gifclrmp").module(t, variant{19, "-O0"})
	_, err := run(t, module, append([]byte("\n"), picture...), 1e9, "program", "-g", "1.5")
	var stopped *interp.RunError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, interp.KindUndef, stopped.Kind)
	require.Equal(t, "main", stopped.Func)
}

// TestTCCIsAsNative compiles with tcc. The objects of tcc's tests and examples must have the same bytes, and a program that tcc links must run. Where
// tcc's headers lack declarations, native and interpreted tcc must report the same errors.
func TestTCCIsAsNative(t *testing.T) {
	livetest.Slow(t)
	headers := map[string][]byte{}
	for name, text := range packaged(t, "tcc", "include/*.h") {
		headers["include/"+name] = text
	}
	headers["include/tcclib.h"] = packaged(t, "tcc", "tcclib.h")["tcclib.h"]
	for _, name := range []string{"stdio.h", "stdlib.h", "string.h"} {
		headers["include/"+name] = []byte("#include <tcclib.h>\n")
	}
	patterns := []string{"examples/ex1.c", "tests/tests2/0[13]_*.c"}
	if all {
		patterns = []string{"examples/*.c", "tests/tests2/*.c"}
	}
	texts := packaged(t, "tcc", patterns...)
	for _, v := range programVariants(variant{19, "-O0"}) {
		module := filePrograms["tcc"].module(t, v)
		with := func(name string, text []byte) map[string][]byte {
			files := map[string][]byte{name: text}
			for header, text := range headers {
				files[header] = text
			}
			return files
		}
		t.Run("link/"+v.String(), func(t *testing.T) {
			text, err := os.ReadFile("testdata/tcc/start.c")
			require.NoError(t, err)
			got, left := filed(t, module, v, task{args: []string{"-nostdinc", "-Iinclude", "-nostdlib", "-static", "-o", "program", "start.c"}, files: with("start.c", text)})
			require.Equal(t, outcome{}, got)
			program := filepath.Join(t.TempDir(), "program")
			require.NoError(t, os.WriteFile(program, left["program"], 0o755))
			require.Equal(t, outcome{Output: "6765\n", Status: 10}, native(t, nil, program))
		})
		objects := 0
		for _, name := range inOrder(texts) {
			t.Run(name+"/"+v.String(), func(t *testing.T) {
				_, left := filed(t, module, v, task{args: []string{"-nostdinc", "-Iinclude", "-c", name, "-o", "out.o"}, files: with(name, texts[name])})
				if left["out.o"] != nil {
					objects++
				}
			})
		}
		require.GreaterOrEqual(t, 4*objects, 3*len(texts))
	}
}

// TestMawkIsAsNative requires that interpreted mawk has the same output as native mawk for the scripts of mawk's own tests and examples.
func TestMawkIsAsNative(t *testing.T) {
	livetest.Slow(t)
	files := packaged(t, "mawk", "test/*.awk", "test/*.dat", "examples/*.awk")
	scripts := [][]string{
		{"-f", "wfrq0.awk", "mawktest.dat"},
		{"-f", "nextfile.awk", "full-awk.dat", "mawktest.dat"},
		{`BEGIN { while ((getline line < "reg0.awk") > 0) print n++, line > "copy"; close("copy"); srand(3); printf "%d %s %.4f\n", getline < "copy", $2, rand() }`},
		{`BEGIN { print substr("interpreter", 3, 5), index("frames", "me"), 2^0.5, toupper("x") "y"; print length > "/dev/stderr"; exit 3 }`},
		{`{ print $1 | "sort" `}, // a syntax error
		{"-f", "wc.awk", "mawktest.dat"}, {"-f", "null-rs.awk", "null-rs.dat"}, {"-F", `(a?)*b`, "-f", "wc.awk", "mawktest.dat"},
		{"-F", `[[#a-zA-Z0-9/*!=<>+,;.&_%(){}" -]`, "-f", "wc.awk", "mawktest.dat"}, {"-F", `[\`, "1"}, {"-F", `(^)?)`, "-f", "wc.awk", "mawktest.dat"},
		{"-F", `\000`, "-f", "nulls0.awk", "mawknull.dat"}, {"-F", `[\000 ]`, "-f", "nulls0.awk", "mawknull.dat"},
		{"-f", "reg0.awk", "mawktest.dat"}, {"-f", "reg1.awk", "mawktest.dat"}, {"-f", "reg2.awk", "mawktest.dat"}, {"-f", "reg3.awk", "mawktest.dat"},
		{"-f", "reg4.awk", "mawktest.dat"}, {"-f", "reg5.awk", "mawktest.dat"}, {"-f", "reg6.awk", "mawktest.dat"}, {"-f", "reg7.awk", "mawktest.dat"},
		{"-f", "noloop.awk"}, {`!/^[^]]*$/`, "mawktest.dat"}, {`/[a[]/`, "mawktest.dat"}, {"-f", "fpetest1.awk"}, {"-f", "fpetest2.awk"}, {"-f", "fpetest3.awk"},
		{"-f", "decl.awk", "mawktest.dat"}, {"-f", "primes.awk", "2", "2000"}, {"-f", "qsort.awk", "mawktest.dat"}, {"-f", "ct_length.awk", "wc.awk", "reg0.awk"},
		{"-W", "version"},
	}
	if !all {
		scripts = scripts[:5]
	}
	for _, v := range programVariants(variant{14, "-O0"}) {
		module := filePrograms["mawk"].module(t, v)
		for _, args := range scripts {
			t.Run(v.String()+"/"+strings.Join(args, " "), func(t *testing.T) { filed(t, module, v, task{args: args, files: files}) })
		}
	}
}

// TestTomMathIsAsNative requires that the test program of libtommath has the same output in the interpreter as in native code. It omits the parts
// that take a second or more as native code: primes, roots, and Montgomery reduction.
func TestTomMathIsAsNative(t *testing.T) {
	if !all {
		return // it has 160 files to compile
	}
	tests := []string{"trivial", "mp_get", "mp_set", "mp_and", "mp_or", "mp_xor", "mp_cnt", "mp_compl", "mp_decr", "mp_incr", "mp_pack", "mp_fread", "mp_log", "mp_invmod",
		"mp_is_square", "mp_kronecker", "mp_rand", "mp_read", "mp_reduce", "mp_signed", "mp_sqrt", "karatsuba", "toom", "balance"}
	for _, v := range []variant{{14, "-O1"}, {19, "-O2"}} { // it does not link at -O0
		t.Run(v.String(), func(t *testing.T) {
			got, _ := filed(t, filePrograms["libtommath"].module(t, v), v, task{args: tests})
			require.Zero(t, got.Status, "%s", got.Output)
			require.Contains(t, got.Output, "Tests OK/NOP/FAIL: 34/0/0\n")
		})
	}
}

// TestSnappyIsAsNative requires that Snappy has the same results in the interpreter as in native code, for the data of its own tests and for
// corrupted data.
func TestSnappyIsAsNative(t *testing.T) {
	files := packaged(t, "snappy", "testdata/*")
	require.Len(t, files, 14)
	if !all {
		for name, text := range files {
			if len(text) > 30<<10 {
				files[name] = text[:30<<10]
			}
		}
	}
	for _, v := range programVariants(variant{19, "-O1"}) {
		t.Run(v.String(), func(t *testing.T) {
			module, right := filePrograms["snappy"].module(t, v), 0
			program := livetest.ModuleBinary(t, v.release, module, "-lstdc++")
			for _, name := range inOrder(files) {
				want := native(t, files[name], program, name)
				require.Equal(t, want, interpreted(t, module, files[name], program, name))
				right += strings.Count(want.Output, " 1 1 1 1 0\n")
			}
			require.Equal(t, 11, right)
		})
	}
}
