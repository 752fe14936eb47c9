package deopt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// shadowCase is the program's report about one of its frames.
type shadowCase struct {
	Name         string
	Record       uint64
	At, Returns  machine.Addr
	Match        bool
	Sum, Product string
}

var shadowLine = regexp.MustCompile(`case (\w+) record (\d+) at (\w+) returns (\w+) match (\d) sum (\d+) product (\d+)`)

// shadowsOf starts shadows.ll, ahead of time or under lli, and returns its reports.
func shadowsOf(t *testing.T, version int, how string) (*livetest.Process, []shadowCase) {
	t.Helper()
	library := livetest.Compiled(t, "gcc", livetest.Testdata(t, "programs", "shadows.c"), "-O1", "-shared", "-fPIC")
	var p *livetest.Process
	if strings.HasPrefix(how, "-") {
		p = livetest.Linked(t, version, "shadows.ll", how, library, "-Wl,-rpath,"+filepath.Dir(library))
	} else {
		p = livetest.Lli(t, version, "shadows.ll", how, "-dlopen="+library)
	}
	var cases []shadowCase
	for _, m := range shadowLine.FindAllStringSubmatch(p.Output(), -1) {
		number := func(text string) uint64 {
			n, err := strconv.ParseUint(text, 0, 64)
			require.NoError(t, err)
			return n
		}
		cases = append(cases, shadowCase{m[1], number(m[2]), machine.Addr(number(m[3])), machine.Addr(number(m[4])), m[5] == "1", m[6], m[7]})
	}
	require.Len(t, cases, 20)
	return p, cases
}

// returnsTo finds the only frame with a return address, and its caller.
func returnsTo(t *testing.T, v *deopt.View, pc machine.Addr) (f, caller *deopt.Frame) {
	t.Helper()
	frames := v.Threads[0].Frames
	for n := range frames[:len(frames)-1] {
		if frames[n].Physical().PC == pc {
			require.Nil(t, f)
			f, caller = frames[n], frames[n+1]
		}
	}
	require.NotNil(t, f, "no frame returns to %v: %s, %s", pc, stackText(v.Threads[0]), v.Threads[0].End.Reason)
	return f, caller
}

var shadowPrograms = []string{"-no-pie", "-pie", "mcjit", "orc"}

// TestShadows compares the frames of a program with its reports. The program writes calls and jumps over shadows and regions, and prints the
// record and the values of each frame.
func TestShadows(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 19, 22} {
		for _, how := range shadowPrograms {
			t.Run(fmt.Sprintf("LLVM %d %s", version, how), func(t *testing.T) {
				p, cases := shadowsOf(t, version, how)
				v := frametest.Look(t, p, true, frametest.Known(t, p))
				require.True(t, v.Threads[0].End.Complete, v.Threads[0].End.Reason)
				var shared []*deopt.Frame
				for _, thread := range v.Threads {
					for _, f := range thread.Frames {
						if f.Physical().PC == cases[0].Returns {
							shared = append(shared, f)
						}
					}
				}
				require.Len(t, shared, 2)
				for _, f := range shared {
					require.Nil(t, f.Record)
					require.Contains(t, f.Notes, "jumps that were written into the code of records 113, 114 lead to the code here, and the stack does not show from which of them the frame came")
				}
				for _, c := range cases[2:] {
					f, caller := returnsTo(t, v, c.Returns)
					require.Equal(t, c.Name, f.Function)
					require.Equal(t, "next", caller.Function, c.Name)
					require.Equal(t, "cfi", caller.Rule, c.Name)
					require.Empty(t, caller.Guess(), c.Name)
					if !c.Match {
						require.Nil(t, f.Record, c.Name)
						continue
					}
					require.NotNil(t, f.Record, "%s %v", c.Name, f.Notes)
					require.Equal(t, c.Record, f.Record.ID)
					if strings.HasPrefix(c.Name, "pp_") {
						require.Equal(t, frame.InCall, f.Record.Moment, c.Name)
						require.Equal(t, c.Product, fmt.Sprint(readAt(t, v, frametest.Slot(t, f, "%slot"))), c.Name)
						if sum := frametest.Slot(t, f, "%sum"); c.Name == "pp_changed" {
							require.Equal(t, "rbx may have been changed by the code of its region, before the call", sum.Reason)
						} else {
							require.Equal(t, c.Sum, sum.Value)
						}
						continue
					}
					if strings.HasPrefix(c.Name, "region") {
						require.Equal(t, frame.InCall, f.Record.Moment, c.Name)
						require.Equal(t, c.Sum, frametest.Slot(t, f, "%sum").Value, c.Name)
						require.Equal(t, c.Product, frametest.Slot(t, f, "%x").Value, c.Name)
						continue
					}
					require.Equal(t, frame.Before, f.Record.Moment, c.Name)
					require.Equal(t, "stackmap", f.Record.Site)
					require.Equal(t, c.At, f.Match().Entry.Addr, c.Name)
					sum, pointer := frametest.Slot(t, f, "%sum"), frametest.Slot(t, f, "%slot")
					if c.Name == "epilogue_ran" { // pop %rbx and pop %rbp have run
						require.Equal(t, "rbx may have been changed between the record and the patched call after it", sum.Reason)
						require.Equal(t, frame.Missing, pointer.Status)
						continue
					}
					require.Equal(t, c.Sum, sum.Value, c.Name)
					require.Equal(t, c.Product, fmt.Sprint(readAt(t, v, pointer)), c.Name)
				}
				f, _ := returnsTo(t, v, cases[14].Returns)
				require.Contains(t, f.Notes, "record 112 does not match: this return address is in its shadow, but no call ends here now: a patch here was removed or overwritten")
			})
		}
	}
}

// TestShadowsWithoutModule requires that, without a module, a record before patched code is shown with an unknown kind of site: it may be that of a
// stackmap with a shadow, or of a patchpoint.
func TestShadowsWithoutModule(t *testing.T) {
	const note = "no module gives the size of the record's shadow: the call written over the code after the record is assumed to be in the shadow"
	for _, how := range shadowPrograms {
		t.Run(how, func(t *testing.T) {
			p, cases := shadowsOf(t, 19, how)
			v := frametest.Look(t, p, true, deopt.Options{})
			for _, c := range cases[3:] { // the first three cases need a module: they include a stub without unwind information
				f, caller := returnsTo(t, v, c.Returns)
				require.Equal(t, "next", caller.Function, c.Name)
				switch {
				case strings.HasPrefix(c.Name, "region"), strings.HasPrefix(c.Name, "pp"): // only a module distinguishes these sites from shadows
				case !c.Match || c.Name == "epilogue_ran": // the function's own code ran before the call
					require.Nil(t, f.Record, c.Name)
				default:
					require.NotNil(t, f.Record, c.Name)
					require.Equal(t, c.Record, f.Record.ID)
					require.Equal(t, deopt.UnknownSite, f.Record.Site)
					want := frame.Unknown
					if c.Name == "epilogue" || c.Name == "own_over" {
						want = frame.Before
					}
					require.Equal(t, want, f.Record.Moment, c.Name)
					require.Contains(t, f.Notes, note)
					n, err := strconv.ParseUint(strings.TrimPrefix(string(f.Slots[0].Hex), "0x"), 16, 64)
					require.NoError(t, err)
					require.Equal(t, c.Sum, fmt.Sprint(n), c.Name)
				}
			}
		})
	}
}

// TestResumeFromAShadow requires that an invalidated frame resumes after its stackmap, in the interpreter.
func TestResumeFromAShadow(t *testing.T) {
	for _, how := range shadowPrograms {
		t.Run(how, func(t *testing.T) {
			p, cases := shadowsOf(t, 19, how)
			v := frametest.Look(t, p, true, frametest.Known(t, p))
			for _, c := range cases[2:] {
				f, _ := returnsTo(t, v, c.Returns)
				switch c.Name {
				case "epilogue", "region_start", "region_middle", "region_end", "region_jump", "pp_jump", "pp_changed":
					out, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
					require.NoError(t, err, c.Name)
					require.Equal(t, c.Product, out.Result.Value, c.Name)
				}
			}
		})
	}
}

// TestShadowsEverywhere requires the same frames from a stopped process, from a process that was stopped briefly, and from a core.
func TestShadowsEverywhere(t *testing.T) {
	for _, how := range shadowPrograms {
		t.Run(how, func(t *testing.T) {
			p, _ := shadowsOf(t, 19, how)
			o := frametest.Known(t, p)
			held := frametest.Look(t, p, true, o)
			want := reports(held)
			held.Target().Release()
			p.AwaitPause(t) // wait until the thread is in the system call again, after the pc at which it was held
			require.Equal(t, want, reports(frametest.Look(t, p, false, o)))

			p.AwaitPause(t)
			target, err := ptrace.Capture(p.PID, ptrace.Options{Record: true})
			require.NoError(t, err)
			defer target.Close()
			path := filepath.Join(t.TempDir(), "core")
			_, err = target.WriteCore(context.Background(), path, ptrace.RecordOptions{Memory: ptrace.Minimal})
			require.NoError(t, err)
			core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
			require.NoError(t, err)
			defer core.Close()
			v, err := deopt.Frames(core, o)
			require.NoError(t, err)
			require.Equal(t, want, reports(v))
		})
	}
}
