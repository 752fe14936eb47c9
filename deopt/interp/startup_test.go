package interp_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// TestCxxProgramsAreAsNative is like TestCProgramsAreAsNative, for C++ without exceptions.
func TestCxxProgramsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	files, err := filepath.Glob("testdata/cxx/*.cc")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cc")
		for _, version := range []string{"14", "19"} {
			for _, level := range []string{"-O0", "-O2"} {
				t.Run(name+"/"+version+level, func(t *testing.T) {
					dir := t.TempDir()
					program, module := filepath.Join(dir, name), filepath.Join(dir, name+".ll")
					standard := "-std=c++17"
					if name == "strings" {
						standard = "-std=c++20" // with an earlier standard, only the library contains the code of std::string
					}
					clang(t, version, standard, "-fno-exceptions", level, "-o", program, file, "-lstdc++", "-lm")
					clang(t, version, standard, "-fno-exceptions", level, "-S", "-emit-llvm", "-o", module, file)
					same(t, native(t, nil, program), interpretedC(t, module, nil, program))
				})
			}
		}
	}
}

// startup returns a module with a list of constructors. Each constructor prints its letter.
func startup(list string) string {
	return `@text = constant [4 x i8] c"abc\00"
@there = global i8 1
@elsewhere = external global i8
` + list + `
declare i32 @putchar(i32)
declare void @exit(i32)
declare void @native()
define void @a() { %x = call i32 @putchar(i32 97) ret void }
define void @b() { %x = call i32 @putchar(i32 98) ret void }
define i32 @c() { %x = call i32 @putchar(i32 99) ret i32 7 }
define void @leave() { call void @exit(i32 5) ret void }
define i32 @main() {
entry:
  %x = call i32 @putchar(i32 109)
  ret i32 3
}`
}

func TestConstructors(t *testing.T) {
	for _, x := range []struct {
		name, list, output string
		status             int
	}{
		{"by priority", `@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 9, ptr @a, ptr null }, { i32, ptr, ptr } { i32 8, ptr @b, ptr null }]`, "bam", 3},
		{"two fields", `@llvm.global_ctors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 65535, ptr @b }]`, "bm", 3},
		{"a result is ignored", `@llvm.global_ctors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 65535, ptr @c }]`, "cm", 3},
		{"none", `@llvm.global_ctors = appending global [0 x { i32, ptr }] zeroinitializer`, "m", 3},
		{"all null", `@llvm.global_ctors = appending global [2 x { i32, ptr }] zeroinitializer`, "m", 3},
		{"null ends the list", `@llvm.global_ctors = appending global [3 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @a }, { i32, ptr } zeroinitializer, { i32, ptr } { i32 1, ptr @b }]`, "am", 3},
		{"of data that is elsewhere", `@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @a, ptr @elsewhere }, { i32, ptr, ptr } { i32 1, ptr @b, ptr @there }]`, "bm", 3},
		{"exit in a constructor", `@llvm.global_ctors = appending global [2 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @a }, { i32, ptr } { i32 1, ptr @leave }]
@llvm.global_dtors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @b }]`, "ab", 5},
		{"destructors from the end", `@llvm.global_dtors = appending global [2 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @a }, { i32, ptr } { i32 1, ptr @b }]`, "mba", 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			require.Equal(t, outcome{x.output, x.status}, interpreted(t, startup(x.list)))
		})
	}
}

func TestConstructorsThatCannotRun(t *testing.T) {
	for _, x := range []struct{ list, message string }{
		{`@llvm.global_ctors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @native }]`, "the constructor @native is not supported"},
		{`@llvm.global_ctors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @text }]`, "is not a function of the module"},
		{`@llvm.global_ctors = appending global [1 x { i32 }] [{ i32 } { i32 1 }]`, "@llvm.global_ctors has an element of type { i32 }"},
		{`@llvm.global_ctors = appending global [1 x i64] [i64 3]`, "@llvm.global_ctors has an element of type i64"},
		{`@llvm.global_ctors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 undef, ptr @a }]`, "@llvm.global_ctors has an element of type { i32, ptr }"},
	} {
		t.Run(x.message, func(t *testing.T) {
			in, _ := machineOf(t, startup(x.list))
			_, err := in.Main(context.Background(), nil)
			require.ErrorContains(t, err, x.message)
		})
	}
}

// TestStepsThroughConstructors requires that a debugger can step through the constructors and stop at the start of main.
func TestStepsThroughConstructors(t *testing.T) {
	const list = `@llvm.global_ctors = appending global [2 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @a }, { i32, ptr } { i32 1, ptr @b }]`
	in, m := machineOf(t, startup(list))
	x, err := in.StartMain(nil)
	require.NoError(t, err)
	var seen []string
	var res *interp.Result
	for res == nil {
		seen = append(seen, x.At(0).Block.Func.Name+" "+x.At(0).Op.String())
		res, err = x.Step(context.Background())
		require.NoError(t, err)
	}
	require.Equal(t, []string{"a call", "a ret", "b call", "b ret", "main call", "main ret"}, seen)
	require.Equal(t, "abm", res.Output)

	x, err = in.StartMain(nil)
	require.NoError(t, err)
	blocks, err := m.Func("main").Body()
	require.NoError(t, err)
	require.NoError(t, x.StopAt(blocks[0], true))
	res, err = x.Run(context.Background())
	require.NoError(t, err)
	require.Nil(t, res)
	require.Equal(t, "main", x.At(0).Block.Func.Name)
	require.EqualValues(t, 4, x.Steps())
	res, err = x.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, "3", res.Value.Format())

	in, m = machineOf(t, startup(""))
	x, err = in.StartMain(nil)
	require.NoError(t, err)
	blocks, err = m.Func("main").Body()
	require.NoError(t, err)
	require.NoError(t, x.StopAt(blocks[0], true))
	for _, ends := range []bool{false, true} {
		res, err = x.Run(context.Background())
		require.NoError(t, err)
		require.Equal(t, ends, res != nil)
	}
}

// TestCallRunsNoConstructors requires that Call, which may start in the middle of a program, runs no constructors.
func TestCallRunsNoConstructors(t *testing.T) {
	in, m := machineOf(t, startup(`@llvm.global_ctors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @a }]`))
	res, err := in.Call(context.Background(), m.Func("b"), nil)
	require.NoError(t, err)
	require.Equal(t, "b", res.Output)
}

func TestConstructorsOfSeveralModules(t *testing.T) {
	other, err := ir.Parse("other.ll", []byte(`@llvm.global_ctors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr @own }]
declare i32 @putchar(i32)
define internal void @own() { %x = call i32 @putchar(i32 111) ret void }`))
	require.NoError(t, err)
	m := parse(t, startup(`@llvm.global_ctors = appending global [1 x { i32, ptr }] [{ i32, ptr } { i32 2, ptr @a }]`))
	in, err := interp.New(m, interp.Options{Modules: []*ir.Module{other}})
	require.NoError(t, err)
	res, err := in.Main(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, "oam", res.Output)
}

func TestNewOfTooMuchThrows(t *testing.T) {
	in, _ := machineOf(t, `declare ptr @_Znwm(i64)
define i32 @main() {
  %p = call ptr @_Znwm(i64 -1)
  ret i32 0
}`)
	_, err := in.Main(context.Background(), nil)
	require.ErrorContains(t, err, "an exception of type 'std::bad_alloc' ended the program")
}
