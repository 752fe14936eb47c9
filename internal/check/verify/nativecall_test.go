package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestVerifyCrossesNativeCalls requires no difference at an exit after which native code prints, allocates, stores and calls back, and that every
// exit can be compared, including those in functions that native code calls back.
func TestVerifyCrossesNativeCalls(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 19, 22} {
		for _, level := range livetest.ShareOf([]string{"-O0", "-O1", "-O2", "-O3"}, "crossing", version) {
			object := livetest.PICObject(t, version, "crossing.ll", level)
			command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
			summary, all := verified(t, command, Options{Options: frametest.ModuleOptions(t, version, "crossing.ll")})
			about := fmt.Sprintf("LLVM %d %s", version, level)
			for _, v := range all {
				require.Equal(t, Same, v.Status, "%s: exit %d of record %d: %s %+v", about, v.Number, v.Exit.Frame.Record.ID, v.Why, v.Report())
			}
			require.Equal(t, uint64(2*(3+5+1+2)), summary.Same, about)
			calls := map[uint64]uint64{}
			for _, v := range all {
				calls[v.Exit.Frame.Record.ID] += v.Calls
			}
			// A call of the function has three exits. The first one covers all three rounds, with ten native calls each.
			require.Equal(t, map[uint64]uint64{90: 2 * 10 * (3 + 2 + 1), 91: 0}, calls, about)
		}
	}
}

// changedModule returns options with a module of testdata in which one line is changed.
func changedModule(t *testing.T, program, old, new string) deopt.Options {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "programs", program))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), old), old)
	_, m := frametest.Written(t, program, strings.Replace(string(text), old, new, 1))
	o := frametest.ModuleOptions(t, 19, program)
	o.Modules = o.Modules[:0:0]
	o.Modules = append(o.Modules, m)
	return o
}

// TestVerifyFindsOtherCalls requires that changed arguments of a native call in the module are found at the call. A call that only one side makes
// must also be found.
func TestVerifyFindsOtherCalls(t *testing.T) {
	object := livetest.PICObject(t, 19, "crossing.ll", "-O1")
	command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	for _, c := range []struct {
		old, new string
		want     CallDifference
	}{
		{"double %s, ptr %spelled", "double %d, ptr %spelled", CallDifference{Callee: "@printf", Argument: 4, Type: "double", Register: "xmm0"}},
		{"i32 %narrow, i64 %swapped", "i32 %e, i64 %swapped", CallDifference{Callee: "@printf", Argument: 2, Type: "i32", Register: "rsi"}},
		{"store i64 %acc, ptr %room", "store i64 %i, ptr %room", CallDifference{Callee: "@swab", Argument: 1, Type: "ptr", Register: "rdi", At: "+0"}},
		{"call void @free(ptr %text)", "call void @free(ptr %copy)", CallDifference{Callee: "@free", Argument: 1, Type: "ptr", Register: "rdi"}},
		{"%f = call ptr @memfrob(ptr %at, i64 8)", "%f = call ptr @memfrob(ptr %at, i64 %i)", CallDifference{Callee: "@memfrob", Argument: 2, Type: "i64", Register: "rsi"}},
		{"  call void @free(ptr %copy)\n", "", CallDifference{Callee: "@free", Only: "native"}},
	} {
		_, all := verified(t, command, Options{Options: changedModule(t, "crossing.ll", c.old, c.new), Limit: 1})
		require.Equal(t, Different, all[0].Status, "%s: %s", c.new, all[0].Why)
		got := *all[0].Call
		if c.want.Only == "" && c.want.At == "" {
			require.NotEqual(t, got.Interpreter, got.Native)
		}
		got.Interpreter, got.Native, got.Line = "", "", 0
		require.Equal(t, c.want, got)
	}

	// A constant that the code does not have is reported before any code runs, because another module was compiled, or the code is wrong.
	_, refused := verified(t, command, Options{Options: changedModule(t, "crossing.ll", "%f = call ptr @memfrob(ptr %at, i64 8)", "%f = call ptr @memfrob(ptr %at, i64 7)"), Limit: 1})
	require.Equal(t, NotComparable, refused[0].Status)
	require.Contains(t, refused[0].Why, "crossing.ll defines @entry with 7 for @memfrob, in line 80, where the code has 8")

	// A call that native code does not make is found if all code that native code calls is known.
	object = livetest.PICObject(t, 19, "tick.ll", "-O1")
	command = livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	o := frametest.ModuleOptions(t, 19, "tick.ll")
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "programs", "tick.ll"))
	require.NoError(t, err)
	for callee, want := range map[string]string{"memfrob(ptr null, i64 0)": Different, "free(ptr null)": NotComparable} { // compilers may omit free
		name, _, _ := strings.Cut(callee, "(")
		call := map[string]string{"memfrob": "  %late = call ptr @", "free": "  call void @"}[name] + callee + "\n"
		changed := strings.Replace(string(text), "define i64 @entry(", "declare void @free(ptr)\ndeclare ptr @memfrob(ptr, i64)\ndefine i64 @entry(", 1)
		changed = strings.ReplaceAll(changed, "  ret i64", call+"  ret i64")
		_, m := frametest.Written(t, "tick.ll", changed)
		o.Modules[0] = m
		_, all := verified(t, command, Options{Options: o, Limit: 1})
		require.Equal(t, want, all[0].Status, "%s: %s", callee, all[0].Why)
		if want == Different {
			require.Equal(t, "@memfrob", all[0].Call.Callee)
			require.Equal(t, "interpreter", all[0].Call.Only)
		} else {
			require.Equal(t, "native code returned without the call of @free, or made the call unseen", all[0].Why)
		}
	}
}

// TestCallDifferenceSays requires that the text of a call difference names the side that makes the call, and the argument or memory that differs.
func TestCallDifferenceSays(t *testing.T) {
	for text, d := range map[string]CallDifference{
		"native code calls @free, and the interpreter does not":                  {Callee: "@free", Only: "native"},
		"the interpreter calls @free, and native code returns without it":        {Callee: "@free", Only: "interpreter"},
		"argument 2 of @write, i64 in rsi":                                       {Callee: "@write", Argument: 2, Type: "i64", Register: "rsi"},
		"argument 1 of @puts, ptr in rdi: the memory it points to differs at +8": {Callee: "@puts", Argument: 1, Type: "ptr", Register: "rdi", At: "+8"},
	} {
		require.Equal(t, text, d.String())
	}
}
