package deopt_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// directProgram prints the addresses of its allocas and waits in a call that has no record. FRAME selects the shape of the frame, and SITE is the
// record.
const directProgram = prelude + `
@format = private constant [13 x i8] c"at %p %p %p\0A\00"
declare i32 @printf(ptr, ...)
declare i32 @fflush(ptr)
define i64 @nothing(i64 %a) noinline {
  ret i64 %a
}
define void @fill(ptr %p) noinline {
  store i8 1, ptr %p
  ret void
}
define i64 @work(i64 %s) noinline gc  "statepoint-example" {
entry:
  %number = alloca i64
  %pair = alloca [2 x i32]
  %bytes = alloca i8, i32 3
  FRAME
  store i64 %s, ptr %number
  store [2 x i32] [i32 7, i32 -8], ptr %pair
  store [3 x i8] c"xyz", ptr %bytes
  %c = call i32 (ptr, ...) @printf(ptr @format, ptr %number, ptr %pair, ptr %bytes)
  %f = call i32 @fflush(ptr null)
  %w = call i64 @wait(i64 %s)
  %n = load i64, ptr %number
  %n1 = add i64 %n, 1
  store i64 %n1, ptr %number
  %c2 = call i32 (ptr, ...) @printf(ptr @format, ptr %number, ptr %pair, ptr %bytes)
  SITE
  %b = load i64, ptr %number
  %d = load i8, ptr %bytes
  %d1 = zext i8 %d to i64
  %r = add i64 %b, %d1
  ret i64 %r
}
`

var directShapes = []struct{ name, frame string }{
	{"fixed", ""},
	{"dynamic", "%dynamic = alloca i8, i64 %s\n  call void @fill(ptr %dynamic)"},
	{"realigned", "%aligned = alloca [4 x i64], align 64\n  call void @fill(ptr %aligned)"},
	{"realigned and dynamic", "%aligned = alloca [4 x i64], align 64\n  call void @fill(ptr %aligned)\n  %dynamic = alloca i8, i64 %s\n  call void @fill(ptr %dynamic)"},
}

var directSites = map[string]string{
	"stackmap":   `call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 8, ptr %number, ptr %pair, ptr %bytes)`,
	"statepoint": `%t = call ` + livetest.Statepoint(5, "@nothing", "1", "ptr %number, ptr %pair, ptr %bytes"),
}

// direct lists the direct locations of a frame as "name type value status".
func direct(f *deopt.Frame) (list []string) {
	for _, d := range f.Direct {
		list = append(list, strings.Join(strings.Fields(fmt.Sprint(d.Name, " ", d.Type.Source, " ", d.Value, " ", d.Status)), " "))
	}
	return list
}

// TestDirectLocationsOfFramesWithoutRecord requires that a frame that waits in a call without a record shows the allocas that another record of
// the function locates. Their addresses and contents must be those that the program logged.
func TestDirectLocationsOfFramesWithoutRecord(t *testing.T) {
	var turns livetest.Turns
	for _, version := range []int{16, 19, 22} {
		for kind, site := range directSites {
			for _, shape := range directShapes {
				if turns.Out(3) {
					continue
				}
				t.Run(fmt.Sprint(version, " ", kind, " ", shape.name), func(t *testing.T) {
					text := strings.NewReplacer("FRAME", shape.frame, "SITE", site).Replace(directProgram) + start
					p := livetest.Lli(t, version, program(t, text), "mcjit")
					at := placesLine.FindStringSubmatch(p.Output())
					require.Len(t, at, 4, p.Output())
					o := frametest.Known(t, p)
					o.Direct = true
					f := frametest.One(t, frametest.Look(t, p, false, o), "work")
					require.Nil(t, f.Record)
					require.ElementsMatch(t, []string{"%number i64 100 ok", "%pair [2 x i32] [7, -8] ok", "%bytes [3 x i8] [120, 121, 122] ok"}, direct(f), "%+v", f.Direct)
					want := map[string]string{"%number": at[1], "%pair": at[2], "%bytes": at[3]}
					for _, d := range f.Direct {
						require.Equal(t, want[d.Name], string(d.Address), "%+v", d)
						require.Equal(t, uint64(5), d.Record)
						require.Equal(t, 1, d.Records)
					}
					unnamed := frametest.One(t, frametest.Look(t, p, false, deopt.Options{Direct: true}), "work")
					var addresses []string
					for _, d := range unnamed.Direct {
						addresses = append(addresses, string(d.Address))
						require.Equal(t, frame.Missing, d.Status)
						require.Equal(t, "no module names the variable there", d.Reason)
					}
					require.ElementsMatch(t, at[1:], addresses)
					require.Empty(t, frametest.One(t, frametest.Look(t, p, false, deopt.Options{}), "work").Direct)
				})
			}
		}
	}
}

// TestDirectLocationsAtEveryInstruction stops a function at each instruction that has no record. It requires that its allocas have the logged
// addresses. They must be unavailable before the prologue has reserved their memory, and after the epilogue has released it.
func TestDirectLocationsAtEveryInstruction(t *testing.T) {
	livetest.Slow(t)
	var turns livetest.Turns
	for _, version := range []int{16, 19, 22} {
		for _, shape := range directShapes {
			if turns.Out(6) {
				continue
			}
			t.Run(fmt.Sprint(version, " ", shape.name), func(t *testing.T) {
				text := strings.NewReplacer("FRAME", shape.frame, "SITE", directSites["stackmap"], "@wait", "@nothing").Replace(directProgram) + again
				text = strings.Replace(text, "@nothing(i64 %a) noinline {\n  %x", "@wait(i64 %a) noinline {\n  %x", 1)
				p := livetest.Lli(t, version, program(t, text), "mcjit")
				o := frametest.Known(t, p)
				o.Direct = true
				begin, instructions := instructionsOf(t, p, "work")
				p.AwaitPause(t)
				session := frametest.Open(t, p)
				p.Signal(t, syscall.SIGUSR1)
				_, err := session.RunTo(t.Context(), begin)
				require.NoError(t, err)
				shown := map[string][]string{} // addresses by name
				values := map[string]bool{}
				var first, last []string
				for range 4 * len(instructions) {
					target, err := session.Target()
					require.NoError(t, err)
					v, err := deopt.Frames(target, o)
					require.NoError(t, err)
					f := v.Threads[0].Frames[0]
					if f.Function != "work" {
						break
					}
					if f.Record == nil {
						require.Len(t, f.Direct, 3, "%v", f.PC)
						last = nil
						for _, d := range f.Direct {
							last = append(last, string(d.Status))
							if d.Status == frame.OK {
								shown[d.Name] = append(shown[d.Name], string(d.Address))
							}
							if d.Name == "%number" && d.Status == frame.OK {
								values[d.Value] = true
							}
						}
						if first == nil {
							first = last
						}
					}
					caller := v.Threads[0].Frames[1].Address()
					thread, err := session.RunTo(t.Context(), append(slices.DeleteFunc(slices.Clone(instructions), func(a machine.Addr) bool { return a == f.Address() }), caller)...)
					require.NoError(t, err)
					pc, err := thread.Registers.Addr(machine.AMD64.PC)
					require.NoError(t, err)
					if pc == caller {
						break
					}
				}
				require.NoError(t, session.Detach())
				var at []string
				require.Eventually(t, func() bool { at = placesLine.FindStringSubmatch(p.Output()); return at != nil }, livetest.Patience, time.Millisecond)
				for n, name := range []string{"%number", "%pair", "%bytes"} {
					require.Greater(t, len(shown[name]), len(instructions)/2, name)
					require.Equal(t, []string{at[n+1]}, slices.Compact(shown[name]), name)
				}
				require.True(t, values["100"] && values["101"], "%v", values)
				require.Equal(t, []string{"unavailable", "unavailable", "unavailable"}, first)
				require.Equal(t, []string{"unavailable", "unavailable", "unavailable"}, last)
			})
		}
	}
}

// instructionsOf returns the addresses of the instructions of a function of the JIT.
func instructionsOf(t *testing.T, p *livetest.Process, name string) (begin machine.Addr, list []machine.Addr) {
	t.Helper()
	target := capture(t, p.PID)
	v, err := deopt.Frames(target, deopt.Options{})
	require.NoError(t, err)
	for _, c := range v.Space().WithRecords() {
		s, ok := c.Image.Lookup(name)
		if !ok {
			continue
		}
		for begin = s.Addr; s.Addr < begin+machine.Addr(s.Size); {
			list = append(list, s.Addr)
			code, err := machine.ReadSome(target, s.Addr, make([]byte, 15))
			require.NoError(t, err)
			s.Addr += machine.Addr(isa.Of(machine.AMD64).Length(code))
		}
	}
	require.NotEmpty(t, list)
	return begin, list
}
