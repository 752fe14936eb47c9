package vmframes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/trace"
	"reframe/deopt/verify"
	"reframe/internal/livetest"
	"reframe/internal/tinyvmtest"
	"reframe/ptrace"
)

// verified runs a program, every exit and every activation of which is held against tinyvm's own interpreter, in another process. It is given nothing:
// the machine describes itself.
func verified(t *testing.T, w way, file string, limit uint64, each func(*verify.Verified)) (*verify.Summary, tinyvmtest.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	dir, binary := t.TempDir(), tinyvmtest.Binary(t, w.llvm)
	out, errors := filepath.Join(dir, "stdout"), filepath.Join(dir, "stderr")
	command := append([]string{binary, "--fuel", tinyvmtest.Fuel}, w.flags("--entries", "--exits", file)...)
	s, err := ptrace.LaunchWith(ctx, command, ptrace.LaunchOptions{Stdin: os.DevNull, Stdout: out, Stderr: errors, Bound: true})
	require.NoError(t, err)
	ended := false
	defer func() { require.NoError(t, s.Kill(ended)) }()
	sum, err := verify.Run(ctx, s, verify.Options{With: binary + " --serve " + file, Errors: os.Stderr, Describe: describer(t), Wait: true, Limit: limit, Time: livetest.Patience,
		Warn: func(text string) { t.Errorf("%v %s: %s", w, file, text) }}, func(v *verify.Verified) error {
		each(v)
		return nil
	})
	require.NoError(t, err, "%v %s", w, file)
	if ended = sum.End.Kind == trace.EndExited; !ended {
		return sum, tinyvmtest.Result{}
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	return sum, tinyvmtest.Told(sum.End.ExitCode, read(out), read(errors))
}

// From each exit, each call and each entry of compiled code, tinyvm's own interpreter comes to what native code comes to: to the same result, and what it
// stores is stored, objects that both made among it, wherever they lie.
func TestVerifyWithItsOwnInterpreter(t *testing.T) {
	livetest.Slow(t)
	var exits, left [3]uint64
	t.Run("all", func(t *testing.T) {
		for n, llvm := range tinyvmtest.Versions {
			t.Run(fmt.Sprint("llvm", llvm), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(seeds) {
					// Of the third, activations of compiled code return to a place at which an outer one is waited for: the tracer let that pass.
					if seed != 2 && !livetest.Share(211, "with", llvm, seed) {
						continue
					}
					file := tinyvmtest.File(t, seed)
					want := tinyvmtest.Run(t, tinyvmtest.Binary(t, llvm), "--interpret", file)
					for _, opt := range livetest.ShareOf([]string{"0", "2"}, "with", llvm, seed) {
						w := way{llvm: llvm, opt: opt}
						sum, r := verified(t, w, file, 0, func(v *verify.Verified) {
							if v.Status == verify.NotComparable { // the machine has compiled a method on the way
								require.Equal(t, "native code did not come to the return: code was registered or loaded meanwhile", v.Why, "seed %d, %v", seed, w)
								return
							}
							require.Equal(t, verify.Same, v.Status, "seed %d, %v: exit %d: %+v", seed, w, v.Number, v.Report())
						})
						require.Equal(t, want.Output, r.Output, "seed %d, %v", seed, w)
						require.Equal(t, want.Status, r.Status, "seed %d, %v", seed, w)
						require.Zero(t, sum.Different)
						exits[n] += sum.Same
						left[n] += sum.NotComparable
					}
				}
			})
		}
	})
	t.Logf("exits that were the same, with LLVM 14, 19, 22: %d; and that were left, as a method was compiled on the way: %d", exits, left)
	for _, n := range exits {
		require.GreaterOrEqual(t, n, uint64(livetest.Times(20, 10_000)))
	}
}

// Each fault that can be planted in tinyvm's compiler is found, in the first hundred programs, and its report says which method is wrong.
func TestVerifyWithFindsFaults(t *testing.T) {
	livetest.Slow(t)
	for n, fault := range []string{"constant", "guard", "swap", "field", "position", "mode", "stack", "class", "stale", "object"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := way{llvm: tinyvmtest.Versions[n%3], opt: "2", fault: fault}
			for seed := range uint64(100) {
				file := tinyvmtest.File(t, seed)
				var first *verify.Report
				verified(t, w, file, 300, func(v *verify.Verified) {
					if v.Status == verify.Different && first == nil {
						first = v.Report()
					}
				})
				if first != nil {
					require.NotEmpty(t, first.VM.Frames)
					t.Logf("seed %d, exit %d of %s: %s", seed, first.Number, first.Function, said(first))
					return
				}
			}
			require.Fail(t, "it is not found")
		})
	}
}

// said is what a report says in a line.
func said(r *verify.Report) string {
	switch {
	case r.Interpreter.Failed != "":
		return r.Interpreter.Failed
	case len(r.Result) > 0 && !r.Result[0].Same:
		return fmt.Sprintf("the interpreter returns %s, native code %s", r.Result[0].Interpreter, r.Result[0].Native)
	}
	return fmt.Sprintf("%d words of memory differ, the first at %s", r.Words, r.Memory[0].Address)
}
