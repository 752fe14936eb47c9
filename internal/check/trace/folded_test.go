package trace

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// foldedFunctions has two functions with the same code, whose records differ. main calls @g.
const foldedFunctions = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @f(i64 %a) noinline {
  %x = mul i64 %a, 3
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x, i64 111)
  ret i64 %x
}
define i64 @g(i64 %a) noinline {
  %y = mul i64 %a, 3
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %y, i64 222)
  ret i64 %y
}
@take = global ptr @f
@seed = global i64 100
define i32 @main() {
  %s = load volatile i64, ptr @seed
  %r = call i64 @g(i64 %s)
  ret i32 0
}
`

// TestTraceFoldedFunctions requires that a hit of two functions that the linker folded is one exit. Both records must be shown, and neither as
// certain.
func TestTraceFoldedFunctions(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink(livetest.Tool(t, "ld.lld-19"), filepath.Join(dir, "ld.lld")))
	m, err := ir.Parse("folded.ll", []byte(foldedFunctions))
	require.NoError(t, err)
	for _, version := range []int{14, 19, 22} {
		object := livetest.Object(t, version, livetest.Module(t, foldedFunctions), "-relocation-model=pic", "-function-sections", "-O2")
		path := filepath.Join(dir, "folded")
		livetest.Make(t, livetest.Tool(t, "gcc"), "-fuse-ld=lld", "-B", dir, "-Wl,-z,notext", "-Wl,--icf=all", object, "-o", path)
		exits := func(o Options) (list []*ExitReport, sum *Summary) {
			ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
			defer cancel()
			s, err := ptrace.Launch(ctx, []string{path})
			require.NoError(t, err)
			o.Modules, o.Warn = []*ir.Module{m}, func(text string) { t.Error(text) }
			sum, err = Run(ctx, s, o, func(x *Exited) error { list = append(list, x.Report()); return nil })
			require.NoError(t, err)
			require.NoError(t, s.Detach())
			return list, sum
		}
		for _, o := range []Options{{}, {Full: true}} {
			list, sum := exits(o)
			require.Len(t, list, 1, "LLVM %d", version)
			require.Equal(t, []uint64{1, 1}, []uint64{sum.Exits, sum.Reported})
			require.Nil(t, list[0].Resume)
			require.Len(t, list[0].Also, 1)
			var shown []string
			for _, s := range append(list[0].Slots, list[0].Also[0].Slots...) {
				require.Equal(t, frame.Guessed, s.Status)
				require.Contains(t, s.Reason, "f, g; which of them runs is unknown")
				shown = append(shown, s.Name+"="+s.Value)
			}
			require.ElementsMatch(t, []string{"%x=300", "=111", "%y=300", "=222"}, shown)
		}
		_, sum := exits(Options{Quiet: true})
		require.Equal(t, uint64(1), sum.Exits)
		for _, name := range []string{"f", "g"} { // the code has both names
			pattern, err := names.Loose(name)
			require.NoError(t, err)
			list, _ := exits(Options{ExitFilter: ExitFilter{Function: pattern}})
			require.Len(t, list, 1, name)
		}
		list, _ := exits(Options{ExitFilter: ExitFilter{Records: []uint64{2}}})
		require.Len(t, list, 1)
		require.Equal(t, frame.Guessed, list[0].Slots[0].Status)
		require.Empty(t, list[0].Also)
	}
}
