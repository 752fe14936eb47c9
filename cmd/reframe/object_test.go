package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// copiedTo says where a process of copied.c has the code.
func copiedTo(t *testing.T, p *livetest.Process) uint64 {
	t.Helper()
	_, rest, found := strings.Cut(p.Output(), "code at 0x")
	require.True(t, found, p.Output())
	line, _, _ := strings.Cut(rest, "\n")
	addr, err := strconv.ParseUint(line, 16, 64)
	require.NoError(t, err)
	return addr
}

// Code that a runtime copied behind a prologue of its own, and registered nowhere, has names, records and unwind information when its
// object is given. jf was called with 1000, 7 and 2.5.
func TestGivenObject(t *testing.T) {
	t.Parallel()
	include := "-I" + filepath.Join(filepath.Dir(livetest.Testdata(t)), "demo", "target")
	for _, version := range []int{14, 19, 22} {
		t.Run(fmt.Sprintf("llc-%d", version), func(t *testing.T) {
			object, module := livetest.Object(t, version, "host_mod.ll"), livetest.IR(t, version, "host_mod.ll")
			p := livetest.C(t, "copied.c", []string{include}, object)
			addr := copiedTo(t, p)
			at := func(spelling string, addr uint64) string { return fmt.Sprintf("%s@%s%#x", object, spelling, addr) }

			require.NotContains(t, reframe(t, "frames", "-p", pid(p)).stdout, "jf+", "nothing says what code this is")
			core := livetest.Gcore(t, p)
			for _, given := range []string{at("", addr), at(".text=", addr), at("jf=", addr), object} {
				for _, target := range [][]string{{"-p", pid(p)}, {"--core", core}} {
					r := reframe(t, append(target, "frames", "--object", given, "--ir", module)...)
					require.Equal(t, 1, r.code, r.stderr) // %d is in a register that the call may use
					require.Regexp(t, `jit +jf\+0x[0-9a-f]+ .*record 31, patchpoint, in call`, r.stdout, given)
					require.Regexp(t, `%x +i64 +1007 `, r.stdout)
					require.Regexp(t, `%y +i64 +7000 `, r.stdout)
					require.Regexp(t, `%d +double unavailable: xmm0 is caller-saved`, r.stdout)
					require.Regexp(t, `(?m)#\d+ +native +main\+`, r.stdout, "the frame behind it was found by the object's unwind information")
					require.NotContains(t, r.stdout, "by code")
				}
			}
			r := reframe(t, "maps", "-p", pid(p), "--object", object)
			require.Equal(t, 0, r.code, r.stderr)
			require.Contains(t, r.stdout, fmt.Sprintf("jf at %#x", addr))
			r = reframe(t, "explain", "-p", pid(p), "--object", object, "--ir", module)
			require.Equal(t, 1, r.code, r.stderr)
			require.Contains(t, r.stdout, object)
			r = reframe(t, "resume", "-p", pid(p), "--object", object, "--ir", module, "--result", "5")
			require.Equal(t, 0, r.code, r.stderr)
			require.Contains(t, r.stdout, "8012", "5 + 1007 + 7000")

			// Where it does not lie there, it is refused, with the first byte that differs.
			r = reframe(t, "frames", "-p", pid(p), "--object", at("", addr+1))
			r.failsEmpty(t, 2, fmt.Sprintf(".text is not what lies at %#x: at offset 0x0 there is", addr+1))
			reframe(t, "frames", "--core", core, "--object", at("", addr-16)).failsEmpty(t, 2, "at offset 0x0 there is 90")
			reframe(t, "frames", "-p", pid(p), "--object", at("", 0x1000)).failsEmpty(t, 2, "no code lies at 0x1000")
			reframe(t, "frames", "-p", pid(p), "--object", at("nosuch=", addr)).failsEmpty(t, 2, "no section or symbol of code nosuch")
			other := livetest.Object(t, 19, "deoptimize.ll")
			reframe(t, "frames", "-p", pid(p), "--object", other).failsEmpty(t, 2, ".text is nowhere in the")
		})
	}
}

// Of two copies none is chosen.
func TestGivenObjectTwice(t *testing.T) {
	t.Parallel()
	include := "-I" + filepath.Join(filepath.Dir(livetest.Testdata(t)), "demo", "target")
	object := livetest.Object(t, 19, "host_mod.ll")
	p := livetest.C(t, "copied.c", []string{include}, object, "2")
	reframe(t, "frames", "-p", pid(p), "--object", object).failsEmpty(t, 2, ".text is in memory at 0x", fmt.Sprintf(" at %#x and maybe more places", copiedTo(t, p)))
	r := reframe(t, "frames", "-p", pid(p), "--object", fmt.Sprintf("%s@%#x", object, copiedTo(t, p)))
	require.Contains(t, r.stdout, "jf+0x", r.stderr)

	for spelled, want := range map[string]string{
		object + "@nowhere": "is no address",
		object + "@=0x10":   "the name before = is empty",
		object + "@0":       "is no address",
	} {
		reframe(t, "frames", "-p", pid(p), "--object", spelled).failsEmpty(t, 64, want)
	}
	text := write(t, "text.o", "no object")
	reframe(t, "frames", "-p", pid(p), "--object", text).failsEmpty(t, 2, text, "not an object file")
	reframe(t, "frames", "-p", pid(p), "--object", "/nosuch.o").failsEmpty(t, 2, "/nosuch.o: no such file")
	reframe(t, "frames", "-p", pid(p), "--object", t.TempDir()).failsEmpty(t, 2, "a directory")
	self, err := os.Executable()
	require.NoError(t, err)
	reframe(t, "frames", "-p", pid(p), "--object", self).failsEmpty(t, 2, "it is linked")
	reframe(t, "maps", object, "--object", object).failsEmpty(t, 64, "--object says where code of a process lies")
}
