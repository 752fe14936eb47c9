package deopt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// The stackmap is the last of its block, so that its address is also that of the loop
// behind it: a thread that stands there may have come round the loop, where the
// recorded register counts on. One at the head of the loop is run each time.
func TestAddressThatIsJumpedTo(t *testing.T) {
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
			control, v := stopAtRecord(t, livetest.Lli(t, version, program(t, last), "mcjit"))
			f := one(t, v, "work")
			require.Nil(t, f.Record)
			require.Contains(t, strings.Join(f.Notes, "\n"), "record 1 is not certain: code at +0x")
			require.NoError(t, control.Detach())

			first := strings.NewReplacer("INSIDE", strings.Replace(site, "%v", "%i", 1), "BEFORE", "").Replace(text)
			control, v = stopAtRecord(t, livetest.Lli(t, version, program(t, first), "mcjit"))
			require.Equal(t, "101", slot(t, one(t, v, "work"), "%i").Value)
			require.NoError(t, control.Detach())
		})
	}
}
