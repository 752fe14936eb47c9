package replay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/replay"
	"example.com/reframe/test/livetest"
)

// programs returns environment variables for the programs that scripts launch. $HOST runs the objects $GUARDS, $TICK and so on, whose modules are
// $GUARDS_IR and so on.
func programs(t *testing.T) []string { return programsOf(t, 19) }

// programsOf returns these variables for a release of LLVM. For 14, deoptimize.ll is omitted.
func programsOf(t *testing.T, version int) []string {
	t.Helper()
	env := []string{"IR=" + filepath.Dir(livetest.Testdata(t, "programs", "tick.ll"))}
	if version > 14 {
		env = append(env, "JITDUMPDIR="+t.TempDir(), "LLI="+livetest.LLVM(t, version, "lli"), "LLI_IR="+livetest.IR(t, version, "deoptimize.ll"), "VM_IR="+livetest.IR(t, version, "vmsimple.ll"))
	}
	for name, program := range map[string]string{"TICK": "tick.ll", "GUARDS": "guards.ll", "STATE": "state.ll"} {
		object := livetest.PICObject(t, version, program, "-O2")
		env = append(env, name+"="+object, name+"_IR="+livetest.IR(t, version, program), "HOST="+livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})[0])
	}
	return append(env, "WRONG="+wrong(t, version))
}

// wrong returns an object whose @tick differs from that of the module.
func wrong(t *testing.T, version int) string {
	t.Helper()
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "tick.ll"))
	require.NoError(t, err)
	module := filepath.Join(t.TempDir(), "wrong.ll")
	other := strings.Replace(string(text), "mul i64 %acc, 31", "mul i64 %acc, 17", 1)
	require.NotEqual(t, string(text), other)
	require.NoError(t, os.WriteFile(module, []byte(other), 0o644))
	return livetest.PICObject(t, version, module, "-O2")
}

// within runs a script with a long time limit.
func within(t *testing.T, s *replay.Scripts, path string) replay.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	return s.Run(ctx, path)
}

// script writes a script and runs it.
func script(t *testing.T, s *replay.Scripts, text string) (path string, r replay.Result) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "test.txtar")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path, within(t, s, path)
}

// TestScripts requires that the scripts of testdata pass for each release of LLVM. Their expectations are computed from the sources of the programs.
func TestScripts(t *testing.T) {
	livetest.Slow(t)
	variables := map[string]string{"guards": "SUM=" + sum(t, "guards.ll", 40), "tick": fmt.Sprintf("RESULT=%d", tick(0)), "state": "SUM=" + sum(t, "state.ll", 4)}
	paths, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.Len(t, paths, 9)
	for _, version := range []int{14, 19, 22} {
		env := programsOf(t, version)
		for _, path := range paths {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar")
			if version == 14 && strings.Contains("lli patchpoint vm with", name) {
				continue
			}
			t.Run(fmt.Sprint(name, version), func(t *testing.T) {
				s := &replay.Scripts{Env: append([]string{variables[name]}, env...)}
				r := within(t, s, path)
				require.Equal(t, replay.Result{Kind: replay.Script, Path: path, Outcome: replay.OK}, r)
			})
		}
	}
}

// tick returns the result of @tick in tick.ll.
func tick(seed uint64) int64 {
	acc, x, y := seed, uint64(12345), uint64(1)
	for i := range uint64(1000) {
		next := acc*31 + x
		acc, x, y = next, x^acc>>7, (y+i)^next
	}
	return int64((acc + x) ^ y)
}

// sum returns the output of twins.c for a program that the host runs for the given number of rounds.
func sum(t *testing.T, program string, rounds int) string {
	t.Helper()
	line, _ := livetest.CVersion(t, program, livetest.ObjectHostOptions{Rounds: rounds})
	return strings.TrimPrefix(line, "checksum ")
}
