package deopt_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// placesLine matches the output of a program that prints the addresses of its allocas.
var placesLine = regexp.MustCompile(`(?m)^at (0x\w+) (0x\w+) (0x\w+)\r?$`)

// TestAllocasAreWhereTheProgramHasThem requires that the recorded addresses of allocas equal those in the program. LLVM records an alloca of the
// entry block by its address ("Direct Stack Map Entries"), and one of run-time size by its value. The frames have a realigned stack and no fixed
// size. The thread is at a stackmap's own pc, or in a statepoint's callee.
func TestAllocasAreWhereTheProgramHasThem(t *testing.T) {
	const body = `
@format = private constant [13 x i8] c"at %p %p %p\0A\00"
declare i32 @printf(ptr, ...)
define i64 @work(i64 %s) noinline gc  "statepoint-example" {
entry:
  %fixed = alloca i64
  %aligned = alloca [4 x i64], align 64
  %sized = alloca i8, i64 %s
  store i64 1, ptr %fixed
  store i64 2, ptr %aligned
  store i8 3, ptr %sized
  %c = call i32 (ptr, ...) @printf(ptr @format, ptr %fixed, ptr %aligned, ptr %sized)
  SITE
  %a = load i64, ptr %fixed
  %b = load i64, ptr %aligned
  %x = load i8, ptr %sized
  %x1 = zext i8 %x to i64
  %r = add i64 %a, %b
  %r1 = add i64 %r, %x1
  ret i64 %r1
}`
	compare := func(t *testing.T, p *livetest.Process, f *deopt.Frame) {
		t.Helper()
		var at []string // wait for the output: another goroutine reads it from the program's terminal
		require.Eventually(t, func() bool { at = placesLine.FindStringSubmatch(p.Output()); return at != nil }, livetest.Patience, time.Millisecond)
		for n, name := range []string{"%fixed", "%aligned", "%sized"} {
			s := frametest.Slot(t, f, name)
			require.Equal(t, frame.OK, s.Status, s.Reason)
			require.Equal(t, at[n+1], s.Value, name)
			require.Equal(t, name != "%sized", s.Location.Kind == "Direct", "%s: %s", name, s.Location.Kind)
		}
	}
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("stackmap lli-%d", version), func(t *testing.T) {
			text := prelude + again + site(body, `call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, ptr %fixed, ptr %aligned, ptr %sized)`)
			p := livetest.Lli(t, version, program(t, text), "mcjit")
			session, v := stopAtRecord(t, p)
			compare(t, p, frametest.One(t, v, "work"))
			require.NoError(t, session.Detach())
		})
		t.Run(fmt.Sprintf("statepoint lli-%d", version), func(t *testing.T) {
			text := prelude + start + site(body, `%t = call `+livetest.Statepoint(2, "@wait", "1", "ptr %fixed, ptr %aligned, ptr %sized"))
			p := livetest.Lli(t, version, program(t, text), "mcjit")
			compare(t, p, frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work"))
		})
	}
}
