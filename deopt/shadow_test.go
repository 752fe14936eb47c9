package deopt

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/frame"
	"reframe/deopt/machine"
	"reframe/internal/livetest"
	"reframe/ptrace"
)

// shadowCase is what shadows.c says of one of its frames.
type shadowCase struct {
	name         string
	record       uint64
	at, returns  machine.Addr
	match        bool
	sum, product string
}

var shadowLine = regexp.MustCompile(`case (\w+) record (\d+) at (\w+) returns (\w+) match (\d) sum (\d+) product (\d+)`)

// shadowsOf starts shadows.ll, ahead of time or under lli, and returns what it says of its frames.
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
func returnsTo(t *testing.T, v *View, pc machine.Addr) (f, caller *Frame) {
	t.Helper()
	frames := v.Threads[0].Frames
	for n := range frames[:len(frames)-1] {
		if frames[n].physical.PC == pc {
			require.Nil(t, f)
			f, caller = frames[n], frames[n+1]
		}
	}
	require.NotNil(t, f, "no frame returns to %v", pc)
	return f, caller
}

var shadowPrograms = []string{"-no-pie", "-pie", "mcjit", "orc"}

// The program writes calls and jumps over shadows and regions, and says itself which record each frame has and what is in it.
func TestShadows(t *testing.T) {
	for _, version := range []int{14, 19, 22} {
		for _, how := range shadowPrograms {
			t.Run(fmt.Sprintf("LLVM %d %s", version, how), func(t *testing.T) {
				p, cases := shadowsOf(t, version, how)
				v := look(t, p, true, known(t, p))
				require.True(t, v.Threads[0].End.Complete, v.Threads[0].End.Reason)
				shared := v.frames(-1, func(f *Frame) bool { return f.physical.PC == cases[0].returns })
				require.Len(t, shared, 2)
				for _, s := range shared {
					require.Nil(t, s.frame.Record)
					require.Contains(t, s.frame.Notes, "jumps that were written into the code of records 113, 114 lead to the code here, and the stack does not show from which of them the frame came")
				}
				for _, c := range cases[2:] {
					f, caller := returnsTo(t, v, c.returns)
					require.Equal(t, c.name, f.Function)
					require.Equal(t, "next", caller.Function, c.name)
					require.Equal(t, "cfi", caller.Rule, c.name)
					require.Empty(t, caller.Guess(), c.name)
					if !c.match {
						require.Nil(t, f.Record, c.name)
						continue
					}
					require.NotNil(t, f.Record, "%s %v", c.name, f.Notes)
					require.Equal(t, c.record, f.Record.ID)
					if strings.HasPrefix(c.name, "pp_") {
						require.Equal(t, frame.InCall, f.Record.Moment, c.name)
						require.Equal(t, c.product, fmt.Sprint(readAt(t, v, slot(t, f, "%slot"))), c.name)
						if sum := slot(t, f, "%sum"); c.name == "pp_changed" {
							require.Equal(t, "rbx may have been changed by the code of its region, before the call", sum.Reason)
						} else {
							require.Equal(t, c.sum, sum.Value)
						}
						continue
					}
					if strings.HasPrefix(c.name, "region") {
						require.Equal(t, frame.InCall, f.Record.Moment, c.name)
						require.Equal(t, c.sum, slot(t, f, "%sum").Value, c.name)
						require.Equal(t, c.product, slot(t, f, "%x").Value, c.name)
						continue
					}
					require.Equal(t, frame.Before, f.Record.Moment, c.name)
					require.Equal(t, "stackmap", f.Record.Site)
					require.Equal(t, c.at, f.match.entry.Addr, c.name)
					sum, pointer := slot(t, f, "%sum"), slot(t, f, "%slot")
					if c.name == "epilogue_ran" { // pop %rbx and pop %rbp have run
						require.Equal(t, "rbx may have been changed between the record and the call that was written behind it", sum.Reason)
						require.Equal(t, frame.Missing, pointer.Status)
						continue
					}
					require.Equal(t, c.sum, sum.Value, c.name)
					require.Equal(t, c.product, fmt.Sprint(readAt(t, v, pointer)), c.name)
				}
				f, _ := returnsTo(t, v, cases[14].returns)
				require.Contains(t, f.Notes, "record 112 is not it: its shadow holds this return address, and no call ends here now: what was written there has been taken back, or written over again")
			})
		}
	}
}

// Without a module what was written says where a shadow is, and no more: not that the record is a stackmap's, where a patchpoint might
// have had the nops.
func TestShadowsWithoutModule(t *testing.T) {
	const note = "no module says how far the shadow of its record reaches: the call that was written over the code behind that is taken to be in it"
	for _, how := range shadowPrograms {
		t.Run(how, func(t *testing.T) {
			p, cases := shadowsOf(t, 19, how)
			v := look(t, p, true, Options{})
			for _, c := range cases[3:] { // the outermost of the others came by a stub without unwind information, of which only a module tells
				f, caller := returnsTo(t, v, c.returns)
				require.Equal(t, "next", caller.Function, c.name)
				switch {
				case strings.HasPrefix(c.name, "region"), strings.HasPrefix(c.name, "pp"): // which no module tells from shadows
				case !c.match || c.name == "epilogue_ran": // before whose call code of the function's own has run
					require.Nil(t, f.Record, c.name)
				default:
					require.NotNil(t, f.Record, c.name)
					require.Equal(t, c.record, f.Record.ID)
					require.Equal(t, unknownSite, f.Record.Site)
					want := frame.Unknown
					if c.name == "epilogue" || c.name == "own_over" {
						want = frame.Before
					}
					require.Equal(t, want, f.Record.Moment, c.name)
					require.Contains(t, f.Notes, note)
					n, err := strconv.ParseUint(strings.TrimPrefix(string(f.Slots[0].Hex), "0x"), 16, 64)
					require.NoError(t, err)
					require.Equal(t, c.sum, fmt.Sprint(n), c.name)
				}
			}
		})
	}
}

// What was invalidated carries on behind its stackmap, in the interpreter.
func TestResumeFromAShadow(t *testing.T) {
	for _, how := range shadowPrograms {
		t.Run(how, func(t *testing.T) {
			p, cases := shadowsOf(t, 19, how)
			v := look(t, p, true, known(t, p))
			for _, c := range cases[2:] {
				f, _ := returnsTo(t, v, c.returns)
				switch c.name {
				case "epilogue", "region_start", "region_middle", "region_end", "region_jump", "pp_jump", "pp_changed":
					out, err := v.Run(context.Background(), alone(v, f), Limits{})
					require.NoError(t, err, c.name)
					require.Equal(t, c.product, out.Result.Value, c.name)
				}
			}
		})
	}
}

// What was written, over what, and by which rules the frame was unwound for it: explain says it.
func TestExplainShadow(t *testing.T) {
	p, cases := shadowsOf(t, 19, "-no-pie")
	v := look(t, p, true, known(t, p))
	why := map[string]string{}
	for _, c := range cases[2:] {
		e, err := v.Explain(Question{Address: &c.returns, Frame: -1})
		require.NoError(t, err)
		place := e.Places[0]
		if c.match && c.name != "epilogue_ran" {
			require.True(t, place.Records[0].Matched, c.name)
			require.Equal(t, c.record, place.Records[0].ID)
			why[c.name] = place.Records[0].Why
		}
		if c.name == "epilogue" { // whose FDE has its row for the record, and not for the pc
			last := place.Stack[len(place.Stack)-1]
			require.Equal(t, "rbp+16", last.CFARule)
		}
	}
	library := v.target.ModuleAt(cases[0].at).Path
	require.Regexp(t, `^its shadow of 32 bytes was written over at sled_register\+0x1c, and a call in it ends at the pc: 49 bb (.. ){8}41 ff d3 there, (.. ){12}.. in `+
		regexp.QuoteMeta(library)+`, held against each other as they were in the stop; the frame was unwound by the rules of sled_register\+0x1c$`, why["sled_register"])
	require.Regexp(t, `^its shadow of 32 bytes was written over at sled_jump\+0x1c, and a jump in it leads to 0x\w+, and from there a call ends at the pc: e9 .. .. .. .. there, (.. ){4}.. in `, why["sled_jump"])
	require.Regexp(t, `^its region of 24 bytes was written over at region_jump\+0x\w+, and a jump in it leads to`, why["region_jump"])
	require.Equal(t, "the record of a statepoint lies at the end of its region, and a call in that ends at the pc, 19 bytes before: the call is still running", why["region_start"])
}

// A process that stands still, one that was looked at for a moment, and a core that was recorded of it show the same frames.
func TestShadowsEverywhere(t *testing.T) {
	for _, how := range shadowPrograms {
		t.Run(how, func(t *testing.T) {
			p, _ := shadowsOf(t, 19, how)
			o := known(t, p)
			held := look(t, p, true, o)
			want := reports(held)
			held.target.Release()
			require.Equal(t, want, reports(look(t, p, false, o)))

			target, err := ptrace.Capture(p.PID, ptrace.Options{Record: true})
			require.NoError(t, err)
			defer target.Close()
			path := filepath.Join(t.TempDir(), "core")
			_, err = target.WriteCore(context.Background(), path, ptrace.RecordOptions{Memory: ptrace.Minimal})
			require.NoError(t, err)
			core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
			require.NoError(t, err)
			defer core.Close()
			v, err := Frames(core, o)
			require.NoError(t, err)
			require.Equal(t, want, reports(v))
		})
	}
}
