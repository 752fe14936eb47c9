package deopt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

var (
	pauseCall  = regexp.MustCompile(`(?m)^ +(%\S+) = (?:tail )?call i32 @pause\(\)[^!\n]*(, !dbg !\d+)$`)
	definition = regexp.MustCompile(`(?m)^  (%\S+) = (phi|mul|add|select i1 \S+) .*?(i64)`)
)

// recording makes a module of variables.c in which the call of pause is a patchpoint that records the parameters and integers of work.
func recording(t *testing.T, version int) string {
	t.Helper()
	text, err := os.ReadFile(livetest.Compiled(t, fmt.Sprintf("clang-%d", version), "../internal/machine/lines/testdata/variables.c",
		"-S", "-emit-llvm", "-O1", "-g", "-fno-discard-value-names"))
	require.NoError(t, err)
	module, pointer, callee := string(text), "ptr", "ptr @pause"
	if version < 15 {
		pointer, callee = "i8*", "i8* bitcast (i32 ()* @pause to i8*)"
	}
	live := []string{"i64 %n", strings.Replace(pointer, "i8*", "i64*", 1) + " %p"}
	before, _, found := strings.Cut(module, "call i32 @pause()")
	require.True(t, found)
	_, loop, found := strings.Cut(before, "for.body:")
	require.True(t, found)
	for _, m := range definition.FindAllStringSubmatch(loop, -1) {
		live = append(live, "i64 "+m[1])
	}
	require.Greater(t, len(live), 6)
	module = pauseCall.ReplaceAllString(module, fmt.Sprintf("  ${1} = call i64 (i64, i32, %s, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 16, %s, i32 0, %s)$2",
		pointer, callee, strings.Join(live, ", ")))
	module += fmt.Sprintf(`
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, %s, i32, ...)
define i32 @main() {
  %%a = alloca i64, i64 16
  %%r = call i64 @work(i64 16, %s %%a)
  ret i32 0
}
`, pointer, strings.Replace(pointer, "i8*", "i64*", 1))
	path := filepath.Join(t.TempDir(), "recording.ll")
	require.NoError(t, os.WriteFile(path, []byte(module), 0o600))
	return path
}

var gdbVariable = regexp.MustCompile(`(?m)^(\w+) = (-?\d+|0x[0-9a-f]+)$`)

// TestVariablesAgainstGDB requires that a slot with a variable's name holds the value that gdb shows for the variable. Phis that held the
// variables earlier must not have the variables' names. Clang 14 writes debug intrinsics, and clang 19 debug records.
func TestVariablesAgainstGDB(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct{ clang, lli int }{{14, 16}, {19, 19}, {19, 22}} {
		t.Run(fmt.Sprintf("clang %d, lli %d", c.clang, c.lli), func(t *testing.T) {
			t.Parallel()
			p := livetest.Lli(t, c.lli, recording(t, c.clang), "mcjit")
			m, err := ir.ParseFile(p.IR)
			require.NoError(t, err)
			v := frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{m}})
			v.Sources(deopt.QuickSources)
			f := frametest.One(t, v, "work")
			require.Equal(t, "variables.c:18", filepath.Base(deopt.SourceText(f.Source[0])))
			theirs := map[string]string{}
			for _, m := range gdbVariable.FindAllStringSubmatch(livetest.GDB(t, p.PID, "frame function work", "info args", "info locals"), -1) {
				theirs[m[1]] = m[2]
			}
			read := 0
			names := map[string]string{}
			for _, s := range f.Slots {
				if s.Variable == "" {
					continue
				}
				names[s.Variable] = s.Name
				if want, known := theirs[s.Variable]; known && s.Status == frame.OK {
					require.Equal(t, want, s.Value, s.Variable)
					read++
				}
			}
			require.GreaterOrEqual(t, read, 4, "%v %v", names, theirs)
			for _, name := range []string{"n", "p", "acc", "other", "idx", "sq"} {
				require.Contains(t, names, name)
			}
			require.Len(t, names, 6)
			// If the object has no DWARF, its module has the same lines in !dbg.
			site := f.Match().Site.Instr
			require.Equal(t, f.Source[0].Line, deopt.SourceOf(site)[0].Line)
		})
	}
}
