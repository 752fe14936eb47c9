package deopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// popping holds functions of one calling convention; @work calls one of them and has three recorded values.
const popping = `
define internal CC i64 @many(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h, i64 %i, i64 %j, i64 %k) noinline gc  "statepoint-example" {
  %w = call WAITS
  %s = add i64 %a, %k
  ret i64 %s
}
define internal CC i64 @one(i64 %a) noinline gc  "statepoint-example" {
  %w = call WAIT1
  %s = add i64 %a, 1
  ret i64 %s
}
define internal CC i64 @few(i64 %a) noinline {
  %b = mul i64 %a, 3
  %r = tail call CC i64 @many(i64 %b, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 %a)
  ret i64 %r
}
define internal CC i64 @fewer(i64 %a) noinline {
  %b = mul i64 %a, 5
  %r = tail call CC i64 @few(i64 %b)
  ret i64 %r
}
define internal CC i64 @lots(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h, i64 %i, i64 %j, i64 %k) noinline {
  %r = tail call CC i64 @one(i64 %k)
  ret i64 %r
}
define internal CC i64 @stays(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h, i64 %i, i64 %j, i64 %k) noinline noreturn {
  %w = call i64 @wait(i64 %k)
  unreachable
}
define internal CC i64 @leaves(i64 %a) noinline {
  %r = tail call CC i64 @stays(i64 %a, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 %a)
  ret i64 %r
}
@pointer = global ptr @few
define i64 @work(i64 %s) noinline ATTRIBUTE gc  "statepoint-example" {
  %x = add i64 %s, 1
  %y = add i64 %s, 2
  %p = load volatile ptr, ptr @pointer
  CALL
  %z = add i64 %x, %y
  ret i64 %z
}`

// TestCalleesThatPop requires the right values of @work, which are known by arithmetic, whose callee has moved its return address. A function moves
// it to tail-call one with more or fewer arguments (tailcc; fastcc with -tailcallopt). CFI does not describe the move: gdb loses the stack, and
// values would be read from wrong addresses.
func TestCalleesThatPop(t *testing.T) {
	livetest.Slow(t)
	const eleven = "i64 %s, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 %s"
	one := func(callee string) string {
		return `%t = call CC token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 3, i32 0, ptr elementtype(i64 (i64)) ` + callee +
			`, i32 1, i32 0, i64 %s, i32 0, i32 0) [ "deopt"(i64 %x, i64 %y, i64 %s) ]`
	}
	eleventh := strings.NewReplacer("(i64 (i64))", "(i64 (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64))", "i32 1, i32 0, i64 %s", "i32 11, i32 0, "+eleven)
	for _, c := range []struct {
		name, call, attribute string
		note                  string // note of @work; "" for none
		unsure                bool
	}{
		{"more arguments", one("@few"), "", "it called few, which jumped", false},
		{"more arguments, by a pointer", one("%p"), "", "", false},
		{"more arguments, over two", one("@fewer"), "", "it called fewer, which jumped", false},
		{"fewer arguments", eleventh.Replace(one("@lots")), "", "", false},
		{"no jump", eleventh.Replace(one("@many")), "", "", false},
		{"never returns", one("@leaves"), "", "how many arguments it has on the stack is not known", true},
		{"frame pointer", one("@few"), `"frame-pointer"="all"`, "it called few, which jumped", false},
	} {
		for _, cc := range []string{"tailcc", "fastcc"} {
			text := prelude + start + strings.NewReplacer("CC", cc).Replace(strings.NewReplacer("CALL", c.call, "ATTRIBUTE", c.attribute,
				"WAITS", livetest.Statepoint(2, "@wait", "1", "i64 %a, i64 %g, i64 %h, i64 %i, i64 %j, i64 %k"),
				"WAIT1", livetest.Statepoint(4, "@wait", "1", "i64 %a")).Replace(popping))
			for _, version := range livetest.ShareOf([]int{16, 19, 22}, c.name, cc) {
				t.Run(fmt.Sprintf("%s %s lli-%d", c.name, cc, version), func(t *testing.T) {
					p := livetest.Lli(t, version, program(t, text), "mcjit", "-tailcallopt")
					v := frametest.Look(t, p, true, frametest.Known(t, p))
					work := v.Threads[0].Frames[3]
					require.Equal(t, "work", work.Function)
					if c.note != "" {
						require.Contains(t, strings.Join(work.Notes, "\n"), c.note)
					} else {
						require.Empty(t, work.Notes)
					}
					require.Equal(t, c.unsure, work.Guess() != "", work.Guess())
					if c.unsure {
						return
					}
					for name, want := range map[string]string{"%x": "101", "%y": "102", "%s": "100"} {
						s := frametest.Slot(t, work, name)
						if s.Status == frame.Missing && c.attribute != "" {
							require.Equal(t, "rsp", s.Location.Register)
							require.Contains(t, s.Reason, "CFI does not give the number of arguments on the stack at the original call")
							continue
						}
						require.Equal(t, want, s.Value, "%s: %s", name, s.Reason)
					}
					require.Equal(t, "main", v.Threads[0].Frames[4].Function)
					require.True(t, v.Threads[0].End.Complete, v.Threads[0].End.Reason)
				})
			}
		}
	}
}

// TestCalleesThatHavePopped requires the values of a frame to which a function has just returned that pops its arguments. The next instruction
// reserves their room again, but the record's locations are relative to the stack pointer during the call.
func TestCalleesThatHavePopped(t *testing.T) {
	for name, call := range map[string]string{
		"kept room": `%t = call tailcc token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 3, i32 0, ptr elementtype(i64 (i64)) @few, i32 1, i32 0, i64 %s, i32 0, i32 0) [ "deopt"(i64 %x, i64 %y, i64 %s) ]`,
		"pushed": `%t = call tailcc token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 3, i32 0, ptr elementtype(i64 (i64, i64, i64, i64, i64, i64, i64, i64, i64)) @many, ` +
			`i32 9, i32 0, i64 %s, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i32 0, i32 0) [ "deopt"(i64 %x, i64 %y, i64 %s) ]`,
	} {
		text := prelude + again + `
define internal tailcc i64 @few(i64 %a) noinline {
  %b = mul i64 %a, 3
  ret i64 %b
}
define internal tailcc i64 @many(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h, i64 %i) noinline {
  %r = add i64 %a, %i
  ret i64 %r
}
define i64 @work(i64 %s) noinline gc  "statepoint-example" {
  %x = add i64 %s, 1
  %y = add i64 %s, 2
  ` + call + `
  %z = add i64 %x, %y
  ret i64 %z
}`
		for _, version := range []int{16, 19, 22} {
			t.Run(fmt.Sprintf("%s lli-%d", name, version), func(t *testing.T) {
				p := livetest.Lli(t, version, program(t, text), "mcjit")
				session, v := stopAtRecord(t, p)
				f := frametest.One(t, v, "work")
				require.Equal(t, frame.After, f.Record.Moment)
				for name, want := range map[string]string{"%x": "101", "%y": "102", "%s": "100"} {
					require.Equal(t, want, frametest.Slot(t, f, name).Value, name)
				}
				require.Equal(t, "main", v.Threads[0].Frames[1].Function)
				require.True(t, v.Threads[0].End.Complete, v.Threads[0].End.Reason)
				require.NoError(t, session.Detach())
			})
		}
	}
}
