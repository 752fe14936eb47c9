package fidelity_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// engines are interpreters of languages that implement errors with setjmp and longjmp. They are built in the same way as their packages.
var engines = map[string]source{
	"lua": sources["lua"],
	// mujs negates the lowest int (js_itoa), which is undefined in C, except with clang's flag -fwrapv.
	"mujs": {pack: "mujs", files: []string{"main.c", "one.c"}, flags: []string{"-fwrapv"}},
	"duktape": {
		pack:  "duktape",
		files: []string{"src/duktape.c", "examples/cmdline/duk_cmdline.c", "extras/print-alert/duk_print_alert.c"},
		flags: []string{"-DDUK_CMDLINE_PRINTALERT_SUPPORT", "-fno-strict-float-cast-overflow"},
	},
}

// engineVariants returns the builds that run the scripts. Without FIDELITY=all each engine has one build, because compiling takes long.
func engineVariants(engine string) []variant {
	if all {
		return []variant{{14, "-O0"}, {14, "-O2"}, {19, "-O0"}, {19, "-O2"}}
	}
	return map[string][]variant{"lua": {{19, "-O2"}}, "mujs": {{19, "-O1"}}, "duktape": {{14, "-O0"}}}[engine]
}

// scripted runs a script as native code and in the interpreter, and requires the same output, errors and exit status.
func scripted(t *testing.T, engine string, v variant, script []byte, args ...string) outcome {
	t.Helper()
	s := engines[engine]
	if s.pack == "duktape" {
		dir := livetest.DebianSource(t, s.pack)
		s.flags = append(slices.Clone(s.flags), "-I"+dir+"/src", "-I"+dir+"/examples/cmdline", "-I"+dir+"/extras/print-alert")
	}
	module := s.module(t, v)
	program := livetest.ModuleBinary(t, v.release, module)
	want := native(t, script, program, args...)
	require.Equal(t, want, interpreted(t, module, script, append([]string{program}, args...)...))
	return want
}

// TestLuaErrorsAreAsNative requires that unmodified Lua, interpreted and native, has the same output for testdata/luaerrors/coroutines.lua.
func TestLuaErrorsAreAsNative(t *testing.T) {
	for _, v := range engineVariants("lua") {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/luaerrors/coroutines.lua")
			require.NoError(t, err)
			if all {
				text = append([]byte("F, STEPS = 190, 20000\n"), text...)
			}
			require.Zero(t, scripted(t, "lua", v, text, "-").Status)
		})
	}
}

// TestLuaTestsAreAsNative requires that Lua, interpreted and native, has the same output for Lua 5.1's test scripts. Lua 5.4 rejects some of them
// with an error, and the interpreter's run must give the same error. The test omits fib.lua and printf.lua, which print the time, and life.lua, which
// draws 2,000 pictures and is slow.
func TestLuaTestsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	scripts, err := filepath.Glob(filepath.Join(livetest.DebianSource(t, "lua5.1"), "test", "*.lua"))
	require.NoError(t, err)
	require.Len(t, scripts, 19)
	failed := 0
	for _, v := range engineVariants("lua") {
		for _, script := range scripts {
			name := filepath.Base(script)
			if slices.Contains([]string{"fib.lua", "printf.lua", "life.lua"}, name) {
				continue
			}
			t.Run(name+"/"+v.String(), func(t *testing.T) {
				text, err := os.ReadFile(script)
				require.NoError(t, err)
				if scripted(t, "lua", v, text, "-").Status != 0 {
					failed++
				}
			})
		}
	}
	require.NotZero(t, failed)
}

// TestJavaScriptIsAsNative requires that both JavaScript engines, interpreted and native, have the same output for the scripts of testdata/js.
// Duktape also runs its own scripts, with its polyfills.
func TestJavaScriptIsAsNative(t *testing.T) {
	livetest.Slow(t)
	for _, engine := range []string{"mujs", "duktape"} {
		for _, v := range engineVariants(engine) {
			for _, name := range []string{"errors", "values"} {
				t.Run(engine+"/"+name+"/"+v.String(), func(t *testing.T) {
					t.Parallel()
					text, err := os.ReadFile("testdata/js/" + name + ".js")
					require.NoError(t, err)
					if engine == "duktape" {
						scripted(t, engine, v, nil, "-e", string(text))
						return
					}
					scripted(t, engine, v, text)
				})
			}
		}
	}
	dir := livetest.DebianSource(t, "duktape")
	own := []string{"examples/guide/fib.js"}
	if all {
		own = append(own, "mandel.js")
	}
	for _, v := range engineVariants("duktape") {
		for _, name := range own {
			t.Run("duktape/"+filepath.Base(name)+"/"+v.String(), func(t *testing.T) {
				t.Parallel()
				var text strings.Builder
				for _, file := range []string{"polyfills/console-minimal.js", "polyfills/object-assign.js", "polyfills/promise.js", name} {
					part, err := os.ReadFile(filepath.Join(dir, file))
					require.NoError(t, err)
					text.Write(part)
					text.WriteByte('\n')
				}
				require.Zero(t, scripted(t, "duktape", v, nil, "-e", text.String()).Status)
			})
		}
	}
}
