package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// storing returns deoptimize.ll with a @sum that also stores a number, and a main that prints it and the result of @sum_opt.
func storing(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	text := string(source)
	for _, r := range [][2]string{
		{"%r = call i64 @sum_opt(i64 1000, i64 5000)\n", "%r = call i64 @sum_opt(i64 1000, i64 5000)\n  %m = load i64, ptr @mark\n" +
			"  %p = call i32 (ptr, ...) @printf(ptr @text, i64 %r, i64 %m)\n"},
		// of the two blocks of this name the second is @sum's
		{"done:\n  ret i64 %acc1\n}\ndefine i32", "done:\n  store i64 770, ptr @mark\n  ret i64 %acc1\n}\ndefine i32"},
	} {
		require.Equal(t, 1, strings.Count(text, r[0]), r[0])
		text = strings.Replace(text, r[0], r[1], 1)
	}
	text += "declare i32 @printf(ptr, ...)\n@mark = global i64 5, align 64\n@text = private constant [13 x i8] c\"sum %ld %ld\\0A\\00\"\n"
	path := filepath.Join(t.TempDir(), "storing.ll")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// A dry run reports what a commit then writes, as text and as JSON; the process ends by itself.
func TestResumeCommit(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	path := storing(t)
	layout := livetest.Testdata(t, "programs", "deoptimize.layout.json")
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, path, "mcjit")
		args := []string{"resume", "-p", pid(p), "--ir", p.IR, "--layout", layout, "--commit"}
		r := reframe(t, append(args, "--dry-run")...)
		require.Equal(t, 0, r.code, r.stderr)
		require.Regexp(t, `(?m)^sum returned i64 332833500 after \d+ instructions
it would write: 2 bytes in 1 place, 9 registers
  0x[0-9a-f]+  0500 -> 0203
  rax   0x[0-9a-f]+ -> 0x13d6a2dc
(  (rbx|rbp|r1[2-5])   0x[0-9a-f]+ (-> 0x[0-9a-f]+|as it is)
|  rsp   0x[0-9a-f]+ -> 0x[0-9a-f]+
){7}  rip   0x[0-9a-f]+ -> 0x[0-9a-f]+
result i64 332833500 in rax
frames #0 to #\d+ are left, and the thread goes on at main\+0x[0-9a-f]+, frame #\d+
\z`, r.stdout)
		require.Regexp(t, `^pid \d+ was stopped for \d+\.\d+ ms and is running again\n\z`, r.stderr)

		r = reframe(t, append(args, "--dry-run", "--json")...)
		require.Equal(t, 0, r.code, r.stderr)
		dry := r.object(t)["committed"].(map[string]any)
		require.Equal(t, false, dry["written"])
		unharmed(t, p)
		p.AwaitPause(t)

		r = reframe(t, append(args, "--json")...)
		require.Equal(t, 0, r.code, r.stderr)
		done := r.object(t)["committed"].(map[string]any)
		require.Equal(t, true, done["written"])
		require.NoError(t, p.Wait())
		require.Equal(t, "ready\nsum 332833500 770\n", p.Output())

		dry["written"] = true
		require.Equal(t, dry, done)
		require.Equal(t, []any{map[string]any{"type": "i64", "value": "332833500", "register": "rax"}}, done["result"])
		require.Equal(t, json.Number("2"), done["bytes"])
		memory := list(t, done["memory"])
		require.Len(t, memory, 1)
		require.Equal(t, json.Number("2"), memory[0]["size"])
		require.Equal(t, []any{"0500", "0203"}, []any{memory[0]["old"], memory[0]["new"]})
		registers := list(t, done["registers"])
		require.Len(t, registers, 9)
		to := done["continues"].(map[string]any)
		require.Equal(t, []any{"main", registers[8]["new"]}, []any{to["function"], to["pc"]})
		require.Equal(t, "rip", registers[8]["name"])
	}

	p := livetest.Lli(t, 19, path, "mcjit")
	r := reframe(t, "resume", "-p", pid(p), "--ir", p.IR, "--layout", layout, "--commit")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "\nwritten: 2 bytes in 1 place, 9 registers\nresult i64 332833500 in rax\nframes #0 to #")
	require.NoError(t, p.Wait())
	require.Equal(t, "ready\nsum 332833500 770\n", p.Output())
}

// A commit that is refused says why, and leaves the process unchanged.
func TestResumeCommitRefuses(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	reframe(t, "resume", "-p", pid(p), "--ir", p.IR, "--dry-run").failsEmpty(t, 64, "--dry-run says what --commit would write; give both")
	reframe(t, "resume", "-p", pid(p), "--ir", p.IR, "--commit", "--result", "7", "--to-frame", "all").failsEmpty(t, 2,
		"nothing is committed: the interpreter called @printf, whose effect would be lost", "ms and is running again)")
	reframe(t, "resume", "-p", pid(p), "--ir", p.IR, "--commit", "-f", "99").failsEmpty(t, 2, "no frame to resume: there is no frame 99")
	r := reframe(t, "resume", "-p", pid(p), "--ir", p.IR, "--commit")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "nothing is committed: frame #")
	require.Contains(t, r.stderr, "--result says what it is to return")
	unharmed(t, p)
	p.AwaitPause(t)
	r = reframe(t, "resume", "-p", pid(p), "--ir", p.IR, "--commit", "--result", "7")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "\nresult i64 7 in rax\n")
	require.NoError(t, p.Wait())
	require.Equal(t, "ready\nsum 7123\n", p.Output())
}

// If reframe is killed at any moment, it has committed all or nothing.
func TestResumeCommitKilled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	path := storing(t)
	random := rand.New(rand.NewPCG(6, 3))
	for range livetest.Times(7, 20) {
		p := livetest.Lli(t, 19, path, "mcjit")
		c := command(t, "resume", "-p", pid(p), "--ir", p.IR, "--layout", livetest.Testdata(t, "programs", "deoptimize.layout.json"), "--commit")
		require.NoError(t, c.Start())
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond) // any moment, on a slow machine an earlier one
		_ = c.Process.Signal(syscall.SIGKILL)                         // it may be done
		_ = c.Wait()
		// The tracer detaches from the process before it ends.
		var r result
		require.Eventually(t, func() bool {
			if !p.Alive() {
				return true
			}
			r = reframe(t, "resume", "-p", pid(p), "--ir", p.IR, "--layout", livetest.Testdata(t, "programs", "deoptimize.layout.json"), "--commit")
			return r.code == 0
		}, livetest.Patience, 20*time.Millisecond, &r)
		require.NoError(t, p.Wait())
		require.Equal(t, "ready\nsum 332833500 770\n", p.Output(), fmt.Sprint(r))
	}
}
