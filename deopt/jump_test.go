package deopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestAddressThatIsJumpedTo requires that a stackmap at the end of its block does not match if its address is also the start of a loop. A thread
// there may have come from the loop's back edge, where the recorded register has another value. A stackmap at the head of the loop runs in each
// round, and must match.
func TestAddressThatIsJumpedTo(t *testing.T) {
	livetest.Slow(t)
	text := prelude + again + `
define i64 @work(i64 %s) noinline minsize optsize {
entry:
  %x = add i64 %s, 1
  BEFORE
  br label %loop
loop:
  %i = phi i64 [ %x, %entry ], [ %n, %loop ]
  INSIDE
  %n = add i64 %i, 3
  %c = icmp ult i64 %n, 1000
  br i1 %c, label %loop, label %done
done:
  ret i64 %n
}`
	const site = "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %v)"
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			last := strings.NewReplacer("BEFORE", strings.Replace(site, "%v", "%x", 1), "INSIDE", "").Replace(text)
			session, v := stopAtRecord(t, livetest.Lli(t, version, program(t, last), "mcjit"))
			f := frametest.One(t, v, "work")
			require.Nil(t, f.Record)
			require.Contains(t, strings.Join(f.Notes, "\n"), "record 1 is not certain: code at +0x")
			require.NoError(t, session.Detach())

			first := strings.NewReplacer("INSIDE", strings.Replace(site, "%v", "%i", 1), "BEFORE", "").Replace(text)
			session, v = stopAtRecord(t, livetest.Lli(t, version, program(t, first), "mcjit"))
			require.Equal(t, "101", frametest.Slot(t, frametest.One(t, v, "work"), "%i").Value)
			require.NoError(t, session.Detach())
		})
	}
}

// TestTwoRecordsAtAJumpTarget requires the right record at a return address with two records: that of a call at the end of its block, and that of
// a stackmap at the start of the loop after it. The record of the call is not certain there, and that of the stackmap is certain.
// TestResumeAtEveryBlock found this case.
func TestTwoRecordsAtAJumpTarget(t *testing.T) {
	text := prelude + again + `
define i64 @inner() noinline {
  ret i64 7
}
define i64 @work(i64 %s) noinline minsize optsize {
entry:
  %x = add i64 %s, 1
  %y = call i64 @inner() "statepoint-id"="2" [ "deopt"(i64 %x) ]
  br label %loop
loop:
  %i = phi i64 [ %x, %entry ], [ %n, %loop ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %i)
  %n = add i64 %i, 3
  %c = icmp ult i64 %n, 1000
  br i1 %c, label %loop, label %done
done:
  ret i64 %n
}`
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			session, v := stopAtRecord(t, livetest.Lli(t, version, program(t, text), "mcjit"))
			f := frametest.One(t, v, "work")
			require.EqualValues(t, 1, f.Record.ID)
			require.Equal(t, frame.Before, f.Record.Moment)
			require.Equal(t, "101", frametest.Slot(t, f, "%i").Value)
			require.Len(t, f.Notes, 2)
			require.Contains(t, f.Notes[0], "record 2 is not certain: code at +0x")
			require.Equal(t, "record 2 is at this address too", f.Notes[1])
			out, err := v.Run(t.Context(), frametest.StackOf(v, f), deopt.Limits{})
			require.NoError(t, err)
			require.Equal(t, "1001", out.Result.Value)
			require.NoError(t, session.Detach())
		})
	}
}
