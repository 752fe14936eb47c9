package deopt_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

var gdbWord = regexp.MustCompile(`\t(0x[0-9a-f]{16})`)

// TestStackThroughPatchedCode requires that a stack through a call that the program wrote into its code contains the function that made the call.
// The stack must be the same for all kinds of target.
func TestStackThroughPatchedCode(t *testing.T) {
	livetest.Slow(t)
	for n, kind := range []string{"text", "mem", "rwx", "relocated", "anonymous", "anonymousrwx", "memfd", "memfdcopy", "shared", "sharedcopy", "file"} {
		if livetest.Out(2, n) {
			continue // the tests of ptrace cover each kind
		}
		t.Run(kind, func(t *testing.T) {
			p := livetest.C(t, filepath.Join("..", "ptrace", "testdata", "patched.c"), []string{"-pie", "-fPIE", "-Wl,-z,notext"}, kind)
			p.AwaitPause(t)
			var code uint64
			_, err := fmt.Sscanf(p.Output(), "code 0x%x", &code)
			require.NoError(t, err)
			start := code
			code += 21 // the address after the call that patched.c writes
			if kind == "relocated" {
				code -= 4
			}
			var want string
			same := func(how string, v *deopt.View) {
				t.Helper()
				var b strings.Builder
				require.Len(t, v.Threads, 1, how)
				for _, f := range v.Threads[0].Frames {
					fmt.Fprintf(&b, "%s %s\n", f.PC, f.Title())
				}
				fmt.Fprintf(&b, "end %s\n", v.Threads[0].End.Reason)
				if want == "" {
					want = b.String()
				}
				require.Equal(t, want, b.String(), how)
			}
			inCore := func(how, path string) {
				t.Helper()
				core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
				require.NoError(t, err)
				defer core.Close()
				v, err := deopt.Frames(core, deopt.Options{})
				require.NoError(t, err)
				same(how, v)
			}
			v := frametest.Look(t, p, false, deopt.Options{})
			frames := v.Threads[0].Frames
			require.Greater(t, len(frames), 3)
			require.Equal(t, fmt.Sprintf("%#x", code), string(frames[2].PC))
			require.Equal(t, []string{"callee", "main"}, []string{frames[1].Function, frames[3].Function})
			same("let go", v)
			answer := livetest.GDB(t, p.PID, "bt", fmt.Sprintf("x/8xg %#x", start))
			for i, f := range frames {
				// Compare the frames with gdb's only for these kinds: in other kinds the code is in memory without CFI, where gdb guesses.
				if slices.Contains([]string{"text", "mem", "rwx", "relocated"}, kind) && i < 4 {
					require.Regexp(t, fmt.Sprintf(`(?m)^#%d +0x0*%s in `, i, strings.TrimPrefix(string(f.PC), "0x")), answer)
				}
			}
			var theirs []byte
			for _, m := range gdbWord.FindAllStringSubmatch(answer, -1) {
				n, err := strconv.ParseUint(m[1], 0, 64)
				require.NoError(t, err)
				theirs = binary.LittleEndian.AppendUint64(theirs, n)
			}
			ours := make([]byte, 64)
			require.NoError(t, v.Target().ReadMemory(ours, machine.Addr(start)))
			require.Equal(t, theirs, ours)
			p.Quiet(t, 0) // also before each later capture: a resumed thread restarts its system call
			held, err := ptrace.Capture(p.PID, ptrace.Options{Hold: true})
			require.NoError(t, err)
			v, err = deopt.Frames(held, deopt.Options{})
			require.NoError(t, err)
			same("held", v)
			held.Close()
			for how, o := range map[string]ptrace.Options{"recorded": {Record: true}, "held, recorded": {Record: true, Hold: true}} {
				p.Quiet(t, 0)
				target, err := ptrace.Capture(p.PID, o)
				require.NoError(t, err)
				path := filepath.Join(t.TempDir(), "core")
				_, err = target.WriteCore(context.Background(), path, ptrace.RecordOptions{Memory: ptrace.Minimal})
				require.NoError(t, err)
				target.Close()
				inCore(how, path)
			}
			// A large core is written by gcore or by the kernel. Each case uses only one of them, except with FIDELITY=all.
			for _, how := range livetest.ShareOf([]string{"gcore", "kernel"}, "large core", kind) {
				p.Quiet(t, 0)
				path, can := "", true
				if how == "gcore" {
					path = livetest.Gcore(t, p)
				} else {
					path, can = livetest.KernelCore(t, p)
				}
				if can {
					inCore(how, path)
				}
			}
		})
	}
}

// TestPatchedSitesForAll requires the same frames of threads in patched sites, also through stubs, from a resumed process, a held one, and a
// core.
func TestPatchedSitesForAll(t *testing.T) {
	livetest.Slow(t)
	for h, how := range []string{"aot", "aot-large", "mcjit", "orc"} {
		p := livetest.StartPatches(t, 19, how, 4)
		o := frametest.Known(t, p.Process)
		for k, kind := range []string{"rel32", "mem", "reg", "stub", "push", "indirect"} {
			if livetest.Out(3, k+h) { // make test runs only a share, in which each kind of both lists occurs several times
				continue
			}
			// Patch the sites s16, p16 and g16, by their numbers in the table. The other thread waits in a call that LLVM emitted.
			p.Do(t, fmt.Sprintf("patch 3 %s n 1 18 %s n 3 25 %s n 2", kind, kind, kind))
			p.Do(t, "land 0 3 p", "land 1 18 p", "land 2 25 p", "land 3 7 o", "wait")
			var want any
			same := func(what string, target *ptrace.Target) {
				t.Helper()
				v, err := deopt.Frames(target, o)
				require.NoError(t, err)
				if want == nil {
					want = reports(v)
				}
				require.True(t, reflect.DeepEqual(want, reports(v)), "%s, %s: %s", how, kind, what)
			}
			path := filepath.Join(t.TempDir(), "core")
			for what, o := range map[string]ptrace.Options{"held": {Hold: true}, "let go": {}, "recorded": {Record: true}} {
				p.Quiet(t, 0) // before each capture, because threads that the last one resumed restart their system calls
				target, err := ptrace.Capture(p.PID, o)
				require.NoError(t, err)
				same(what, target)
				if o.Record {
					_, err := target.WriteCore(context.Background(), path, ptrace.RecordOptions{Memory: ptrace.Minimal})
					require.NoError(t, err)
				}
				target.Close()
			}
			core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
			require.NoError(t, err)
			same("core", core)
			core.Close()
			p.Do(t, "release", "restore")
		}
		require.Regexp(t, ` wrong 0$`, p.Do(t, "quit")[0])
	}
}
