package vmframes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// verified runs a program, and verifies every exit and every activation with tinyvm's own interpreter or that of the options, in another process. It
// passes no modules or layouts, because the process describes itself.
func verified(t *testing.T, w way, file string, o verify.Options, each func(*verify.Verified)) (*verify.Summary, tinyvmtest.Result) {
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
	if o.With == "" {
		o.With = binary + " --serve " + file
	}
	o.Errors, o.Describe, o.Wait, o.Time = os.Stderr, describer(t), true, livetest.Patience
	o.Warn = func(text string) { t.Errorf("%v %s: %s", w, file, text) }
	sum, err := verify.Run(ctx, s, o, func(v *verify.Verified) error {
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

// TestVerifyWithFindsFaults requires that each fault planted in tinyvm's compiler is found in the first hundred programs, and that its report names
// the method.
func TestVerifyWithFindsFaults(t *testing.T) {
	livetest.Slow(t)
	for n, fault := range []string{"constant", "guard", "swap", "field", "position", "mode", "stack", "class", "stale", "object"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := way{llvm: tinyvmtest.Versions[n%3], opt: "2", fault: fault}
			for seed := range uint64(100) {
				file := tinyvmtest.File(t, seed)
				var first *verify.Report
				verified(t, w, file, verify.Options{Limit: 300}, func(v *verify.Verified) {
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

// said formats a report as one line of text.
func said(r *verify.Report) string {
	switch {
	case r.Interpreter.Failed != "":
		return r.Interpreter.Failed
	case len(r.Result) > 0 && !r.Result[0].Same:
		return fmt.Sprintf("the interpreter returns %s, native code %s", r.Result[0].Interpreter, r.Result[0].Native)
	}
	return fmt.Sprintf("%d words of memory differ, the first at %s", r.Words, r.Memory[0].Address)
}

// TestVerifyWithFromEntry requires that the frames of each exit equal those of a run of tinyvm's own interpreter from the entry of the activation.
func TestVerifyWithFromEntry(t *testing.T) {
	livetest.Slow(t)
	compared := 0
	for seed := range livetest.Times(6, 60) {
		w := way{llvm: tinyvmtest.Versions[seed%3], opt: "2"}
		file := tinyvmtest.File(t, uint64(seed))
		sum, _ := verified(t, w, file, verify.Options{Limit: 150, FromEntry: true}, func(v *verify.Verified) {
			if v.Status == verify.Different {
				require.Fail(t, "an exit differs", "%v %s: %+v", w, file, v.Report())
			}
			if v.VMState != nil && v.VMState.Why == "" {
				compared++
			}
		})
		t.Logf("seed %d: %d exits, %d same, compared only after the exit: %v; %v", seed, sum.Exits, sum.Same, sum.ExitOnly, sum.Reasons)
	}
	require.Positive(t, compared)
	t.Logf("the frames of %d exits were compared with a run from the entry", compared)
}
