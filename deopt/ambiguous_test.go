package deopt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// twoStatepoints has two statepoints of one function with LLVM's default id. The first call returns, the second blocks. FIRST and SECOND are their
// deopt operands. The code does not show which comes first.
const twoStatepoints = blocksTheSecondTime + `
define i64 @work(i64 %a, i64 %b) noinline gc "statepoint-example" {
entry:
  ; VALUES
  br label %again
again:
  %n0 = load volatile i64, ptr @count
  %first = icmp eq i64 %n0, 0
  br i1 %first, label %one, label %two
one:
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void ()) @blocker, i32 0, i32 0, i32 0, i32 0) [ "deopt"(FIRST) ]
  br label %next
two:
  %u = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void ()) @blocker, i32 0, i32 0, i32 0, i32 0) [ "deopt"(SECOND) ]
  br label %next
next:
  br i1 %first, label %again, label %done
done:
  %s = add i64 %a, %b
  ret i64 %s
}
`

// statepointsInARow has the same two statepoints as twoStatepoints, but the second always runs after the first.
const statepointsInARow = blocksTheSecondTime + `
define i64 @work(i64 %a, i64 %b) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void ()) @blocker, i32 0, i32 0, i32 0, i32 0) [ "deopt"(FIRST) ]
  %u = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void ()) @blocker, i32 0, i32 0, i32 0, i32 0) [ "deopt"(SECOND) ]
  %s = add i64 %a, %b
  ret i64 %s
}
`

const blocksTheSecondTime = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i32 @pause()
declare i32 @puts(ptr)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
@ready = private constant [6 x i8] c"ready\00"
@count = global i64 0
define void @blocker() noinline {
  %n = load i64, ptr @count
  store i64 1, ptr @count
  %first = icmp eq i64 %n, 0
  br i1 %first, label %back, label %wait
back:
  ret void
wait:
  %x = call i32 @puts(ptr @ready)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
define i32 @main() {
  %r = call i64 @work(i64 111, i64 222)
  ret i32 0
}
`

// TestSitesOfOneID requires that a name is shown only if exactly one site fits, and that all shown values are right.
func TestSitesOfOneID(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct{ name, first, second, slot, note string }{
		{"their order does", "i64 %a", "i64 %b", "%b", ""},
		{"nothing tells them apart", "i64 %a", "i64 %b", "loc0", "no names: 2 sites of the module match this record, and they agree on 1 type of 1 value; give each its own id"},
		{"a constant does", "i32 1, i64 %a", "i32 2, i64 %b", "%b", ""},
		{"the number of values does", "i64 %a, i64 %b", "i64 %b", "%b", ""},
	} {
		for _, version := range []int{16, 19, 22} {
			t.Run(fmt.Sprintf("%s lli-%d", c.name, version), func(t *testing.T) {
				text := strings.NewReplacer("FIRST", c.first, "SECOND", c.second).Replace(twoStatepoints)
				if c.name == "their order does" {
					text = strings.NewReplacer("FIRST", c.first, "SECOND", c.second).Replace(statepointsInARow)
				}
				path := filepath.Join(t.TempDir(), "two.ll")
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				p := livetest.Lli(t, version, path, "mcjit")
				f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
				require.NotNil(t, f.Record)
				require.Equal(t, "statepoint", f.Record.Site)
				require.Equal(t, frame.InCall, f.Record.Moment)
				s := f.Slots[len(f.Slots)-1]
				require.Equal(t, c.slot, s.Name)
				require.EqualValues(t, "0xde", s.Hex) // 222
				if c.note != "" {
					require.Contains(t, f.Notes, c.note)
					require.Contains(t, f.Notes, "the order of its records does not determine the site: several sites are possible in this position")
					require.Nil(t, f.Resume)
				}
			})
		}
	}
}

// TestUndefinedAtOneOfTwoSites requires that a value is unavailable if it is undef at one of two sites that fit: the record may hold LLVM's mark,
// or garbage.
func TestUndefinedAtOneOfTwoSites(t *testing.T) {
	for _, version := range []int{16, 19, 22} {
		path := filepath.Join(t.TempDir(), "two.ll")
		require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer("FIRST", "i64 %a, i64 %a", "SECOND", "i64 %b, i128 undef").Replace(twoStatepoints)), 0o600))
		p := livetest.Lli(t, version, path, "mcjit")
		f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
		require.NotNil(t, f.Record)
		for _, s := range f.Slots {
			if s.Index == 1 {
				require.NotEqual(t, frame.OK, s.Status, "lli %d: %v", version, s)
			}
		}
	}
}

// TestAnotherModule requires that the frame is shown without names if the given module cannot be that of the running code.
func TestAnotherModule(t *testing.T) {
	write := func(first, second string) string {
		path := filepath.Join(t.TempDir(), "two.ll")
		text := strings.NewReplacer("FIRST", first, "SECOND", second).Replace(statepointsInARow)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	p := livetest.Lli(t, 19, write("i32 1, i64 %a", "i32 2, i64 %b"), "mcjit")
	for name, other := range map[string]string{
		"other constants":              write("i32 1, i64 %a", "i32 3, i64 %b"),
		"other counts":                 write("i64 %a", "i64 %b"),
		"fits here, and not elsewhere": write("i64 %a", "i32 2, i64 %b"),
	} {
		t.Run(name, func(t *testing.T) {
			v, err := deopt.Frames(capture(t, p.PID), frametest.Known(t, &livetest.Process{IR: other}))
			require.NoError(t, err)
			f := frametest.One(t, v, "work")
			require.NotNil(t, f.Record)
			require.Equal(t, "work", f.Match().Refused.Func.Name)
			require.Contains(t, strings.Join(f.Notes, "\n"), "no names: "+other+" is not what was compiled: record ")
			require.NotEmpty(t, f.Slots)
			for _, s := range f.Slots {
				require.True(t, strings.HasPrefix(s.Name, "loc") && s.Type.IsZero(), "%+v", s)
			}
		})
	}
}
