package resume_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestResumeCommit requires that a dry run reports what a commit then writes, as text and as JSON, and that the process then ends normally.
func TestResumeCommit(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	path := clitest.StoringModule(t)
	layout := livetest.Testdata(t, "programs", "deoptimize.layout.json")
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, path, "mcjit")
		args := []string{"resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", layout, "--commit"}
		r := clitest.Run(t, append(args, "--dry-run")...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Regexp(t, `(?m)^sum returned i64 332833500 after \d+ instructions
it would write: 2 bytes in 1 place, 9 registers
  0x[0-9a-f]+  0500 -> 0203
  rax   0x[0-9a-f]+ -> 0x13d6a2dc
(  (rbx|rbp|r1[2-5])   0x[0-9a-f]+ (-> 0x[0-9a-f]+|unchanged)
|  rsp   0x[0-9a-f]+ -> 0x[0-9a-f]+
){7}  rip   0x[0-9a-f]+ -> 0x[0-9a-f]+
result i64 332833500 in rax
frames #0 to #\d+ are discarded, and the thread continues at main\+0x[0-9a-f]+, frame #\d+
\z`, r.Stdout)
		require.Regexp(t, `^pid \d+ was stopped for \d+\.\d+ ms and is running again\n\z`, r.Stderr)

		r = clitest.Run(t, append(args, "--dry-run", "--json")...)
		require.Equal(t, 0, r.Code, r.Stderr)
		dry := r.Object(t)["committed"].(map[string]any)
		require.Equal(t, false, dry["written"])
		clitest.RequireUnharmed(t, p)
		p.AwaitPause(t)

		r = clitest.Run(t, append(args, "--json")...)
		require.Equal(t, 0, r.Code, r.Stderr)
		done := r.Object(t)["committed"].(map[string]any)
		require.Equal(t, true, done["written"])
		require.NoError(t, p.Wait())
		require.Equal(t, "ready\nsum 332833500 770\n", p.Output())

		dry["written"] = true
		require.Equal(t, dry, done)
		require.Equal(t, []any{map[string]any{"type": "i64", "value": "332833500", "register": "rax"}}, done["result"])
		require.Equal(t, json.Number("2"), done["bytes"])
		memory := clitest.Objects(t, done["memory"])
		require.Len(t, memory, 1)
		require.Equal(t, json.Number("2"), memory[0]["size"])
		require.Equal(t, []any{"0500", "0203"}, []any{memory[0]["old"], memory[0]["new"]})
		registers := clitest.Objects(t, done["registers"])
		require.Len(t, registers, 9)
		to := done["continues"].(map[string]any)
		require.Equal(t, []any{"main", registers[8]["new"]}, []any{to["function"], to["pc"]})
		require.Equal(t, "rip", registers[8]["name"])
	}

	p := livetest.Lli(t, 19, path, "mcjit")
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", layout, "--commit")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "\nwritten: 2 bytes in 1 place, 9 registers\nresult i64 332833500 in rax\nframes #0 to #")
	require.NoError(t, p.Wait())
	require.Equal(t, "ready\nsum 332833500 770\n", p.Output())
}

// TestResumeCommitRefuses requires that a refused commit reports the reason, and leaves the process unchanged.
func TestResumeCommitRefuses(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--dry-run").FailsEmpty(t, 64, "--dry-run requires --commit")
	clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--commit", "--result", "7", "--to-frame", "all").FailsEmpty(t, 2,
		"nothing is committed: the interpreter called @printf, whose effect would be lost", "ms and is running again)")
	clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--commit", "-f", "99").FailsEmpty(t, 2, "no frame to resume: there is no frame 99")
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--commit")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "nothing is committed: frame #")
	require.Contains(t, r.Stderr, "give it with --result")
	clitest.RequireUnharmed(t, p)
	p.AwaitPause(t)
	r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--commit", "--result", "7")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "\nresult i64 7 in rax\n")
	require.NoError(t, p.Wait())
	require.Equal(t, "ready\nsum 7123\n", p.Output())
}

// TestResumeCommitKilled requires that, if reframe is killed at any moment, the commit is complete or has not happened.
func TestResumeCommitKilled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	path := clitest.StoringModule(t)
	random := rand.New(rand.NewPCG(6, 3))
	for range livetest.Times(7, 20) {
		p := livetest.Lli(t, 19, path, "mcjit")
		c := clitest.Command(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", livetest.Testdata(t, "programs", "deoptimize.layout.json"), "--commit")
		require.NoError(t, c.Start())
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond) // on a slow machine this is an earlier moment of the run
		_ = c.Process.Signal(syscall.SIGKILL)                         // the commit may already be complete
		_ = c.Wait()
		// Repeat the command until the tracer has detached from the process.
		var r clitest.Result
		require.Eventually(t, func() bool {
			if !p.Alive() {
				return true
			}
			r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", livetest.Testdata(t, "programs", "deoptimize.layout.json"), "--commit")
			return r.Code == 0
		}, livetest.Patience, 20*time.Millisecond, &r)
		require.NoError(t, p.Wait())
		require.Equal(t, "ready\nsum 332833500 770\n", p.Output(), fmt.Sprint(r))
	}
}

// TestResumeCommitInAProgramWithSourceLines requires that the source line of the code that calls the resumed function can be read after the process
// has continued.
func TestResumeCommitInAProgramWithSourceLines(t *testing.T) {
	t.Parallel()
	path := clitest.TempFile(t, "work.ll", `
declare i32 @pause()
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
define i64 @work(i64 %n) noinline {
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 7, i32 16, ptr @pause, i32 0, i64 %n)
  %s = add i64 %n, 1
  ret i64 %s
}
`)
	source := clitest.TempFile(t, "host.c", "#include <stdio.h>\nlong work(long);\nint main(void) { puts(\"ready\"); fflush(stdout); return work(41) != 42; }\n")
	program := livetest.CProgram(t, "gcc", []string{"-g", "-Wl,-z,notext"}, source, livetest.PICObject(t, 19, path, "-O2"))
	p := livetest.Program(t, program)
	for _, flags := range [][]string{{"--dry-run"}, {}} {
		r := clitest.Run(t, append([]string{"resume", "-p", clitest.PID(p), "--ir", path, "--function", "work", "--result", "0", "--commit"}, flags...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.NotContains(t, r.Stdout+r.Stderr, "closed")
	}
	require.NoError(t, p.Wait())
}
