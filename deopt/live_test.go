package deopt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

func capture(t *testing.T, pid int) *ptrace.Target {
	t.Helper()
	target, err := ptrace.Capture(pid, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	return target
}

// recorded returns the only frame that has a record.
func recorded(t *testing.T, v *deopt.View) *deopt.Frame {
	t.Helper()
	var found []*deopt.Frame
	for _, thread := range v.Threads {
		for _, f := range thread.Frames {
			if f.Record != nil {
				found = append(found, f)
			}
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

// TestDeoptimizeExit requires the values of a frame that waits in the call of llvm.experimental.deoptimize. Its callee waits in pause(2), so the
// values do not change.
func TestDeoptimizeExit(t *testing.T) {
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	const call = "@sum_opt(i64 1000, i64 5000)"
	require.Contains(t, string(source), call)
	// The same program with a limit of 4900, the sum of the squares below 25.
	other := filepath.Join(t.TempDir(), "deoptimize4900.ll")
	text := strings.Replace(string(source), call, "@sum_opt(i64 1000, i64 4900)", 1)
	require.NoError(t, os.WriteFile(other, []byte(text), 0o600))
	for program, limit := range map[string]int{"deoptimize.ll": 5000, other: 4900} {
		for _, version := range []int{16, 19, 22} {
			for _, kind := range []string{"mcjit", "orc"} {
				t.Run(fmt.Sprintf("lli-%d %s limit %d", version, kind, limit), func(t *testing.T) {
					testDeoptimizeExit(t, livetest.Lli(t, version, program, kind), limit)
				})
			}
		}
	}
}

// testDeoptimizeExit checks the frame of the exit. The guard fails at the first i at which the sum of the squares below i has reached the limit.
func testDeoptimizeExit(t *testing.T, p *livetest.Process, limit int) {
	i, acc, sum := 0, 0, 0
	for acc < limit {
		acc += i * i
		i++
	}
	for k := range 1000 {
		sum += k * k
	}
	if limit == 4900 {
		require.Equal(t, []int{25, 4900}, []int{i, acc})
	}
	o := frametest.Known(t, p)
	f := frametest.One(t, frametest.Look(t, p, false, o), "sum_opt")
	require.Equal(t, "deoptimize", f.Record.Site)
	require.Equal(t, frame.InCall, f.Record.Moment)
	require.EqualValues(t, "cfi", f.Rule)
	for name, want := range map[string]int{"%i": i, "%acc": acc, "%n": 1000} {
		s := frametest.Slot(t, f, name)
		require.Equal(t, frame.OK, s.Status, s.Reason)
		require.Equal(t, "i64", s.Type.Source)
		require.Equal(t, strconv.Itoa(want), s.Value)
	}

	described, err := layout.Read(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{described}
	v := frametest.Look(t, p, true, o)
	stack, err := v.Pick(deopt.Choice{Frame: -1})
	require.NoError(t, err)
	f = stack.Frames[0]
	require.Equal(t, frame.Resume{Function: "sum", Block: "loop"}, *f.Resume)
	out, err := v.Run(context.Background(), stack, deopt.Limits{})
	require.NoError(t, err)
	require.Equal(t, &frame.Result{Type: "i64", Value: strconv.Itoa(sum)}, out.Result)
	require.Equal(t, 332833500, sum)
}

// TestAheadOfTime requires the values of code that was compiled ahead of time. Its stack maps are in the executable. If that is
// position-independent, the dynamic linker relocates them in memory.
func TestAheadOfTime(t *testing.T) {
	for _, version := range []int{16, 19, 22} {
		for _, flag := range []string{"-pie", "-no-pie"} {
			t.Run(fmt.Sprintf("llc-%d %s", version, flag), func(t *testing.T) {
				p := livetest.Linked(t, version, "deoptimize.ll", flag)
				testDeoptimizeExit(t, p, 5000)
			})
		}
	}
}

// callerSaved lists the registers that a callee may overwrite (System V ABI, AMD64 supplement, 3.2.1), including those that the callee of these
// programs does not preserve.
var callerSaved = map[string]bool{"rax": true, "rcx": true, "rdx": true, "rsi": true, "rdi": true,
	"r8": true, "r9": true, "r10": true, "r11": true}

// check compares all slots of a frame with values known by arithmetic: each must be right, or unavailable because it is in a register that the callee
// may have overwritten.
func check(t *testing.T, f *deopt.Frame, want map[string]string, constants []string) (available int) {
	t.Helper()
	for _, s := range f.Slots {
		expected, ok := want[s.Name]
		if s.Name == "" {
			require.NotEmpty(t, constants)
			expected, constants, ok = constants[0], constants[1:], true
		}
		if !ok {
			continue
		}
		if s.Status == frame.Missing {
			require.Equal(t, "Register", s.Location.Kind, "%s: %s", s.Name, s.Reason)
			require.True(t, callerSaved[s.Location.Register] || strings.HasPrefix(s.Location.Register, "xmm"), s.Location.Register)
			require.Contains(t, s.Reason, s.Location.Register+" is caller-saved and frame #")
			require.Empty(t, s.Value)
			require.Empty(t, s.Hex)
			continue
		}
		require.Equal(t, expected, s.Value, s.Name)
		available++
	}
	require.Empty(t, constants)
	return available
}

func TestPatchpoint(t *testing.T) {
	constants := []string{"7", "-5", "81985529216486895"}
	for _, version := range []int{14, 19, 22} {
		for _, kind := range []string{"mcjit", "orc"} {
			t.Run(fmt.Sprintf("lli-%d %s", version, kind), func(t *testing.T) {
				p := livetest.Lli(t, version, "jit_pp.ll", kind)
				v := frametest.Look(t, p, true, frametest.Known(t, p))
				f := frametest.One(t, v, "work")
				require.Equal(t, "patchpoint", f.Record.Site)
				require.Equal(t, frame.InCall, f.Record.Moment)
				require.EqualValues(t, 2001, f.Record.ID)
				require.Len(t, f.Slots, 16)
				available := check(t, f, livetest.PatchpointValues(), constants)
				require.Greater(t, available, len(constants))
				pointer := frametest.Slot(t, f, "%slot")
				require.Equal(t, frame.OK, pointer.Status)
				require.EqualValues(t, 4242, readAt(t, v, pointer))
				// The error names the missing values, and nothing runs.
				_, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
				require.ErrorContains(t, err, "%pr: it is the result of a call that is still running")
			})
		}
	}
}

// readAt reads the 64-bit word that a pointer slot points to.
func readAt(t *testing.T, v *deopt.View, pointer frame.Slot) uint64 {
	t.Helper()
	addr, err := strconv.ParseUint(pointer.Value, 0, 64)
	require.NoError(t, err)
	word, err := machine.ReadUint(v.Target(), v.Target().Arch(), machine.Addr(addr), 8)
	require.NoError(t, err)
	return word
}

func TestStatepoint(t *testing.T) {
	for _, version := range []int{14, 19, 22} {
		for _, kind := range []string{"mcjit", "orc"} {
			t.Run(fmt.Sprintf("lli-%d %s", version, kind), func(t *testing.T) {
				p := livetest.Lli(t, version, "jit_sp.ll", kind)
				v := frametest.Look(t, p, true, frametest.Known(t, p))
				f := frametest.One(t, v, "f")
				require.Equal(t, "statepoint", f.Record.Site)
				want := map[string]string{"%x": "300", "%y": "51", "%e": "7.5", "%c": "-3"}
				constants := []string{"11", "2", "-9", "81985529216486895", "0x0", "1.5"}
				require.Equal(t, len(want)+len(constants), check(t, f, want, constants))
				require.EqualValues(t, 77, readAt(t, v, frametest.Slot(t, f, "%slot")))
				o, derived := frametest.Slot(t, f, "%o"), frametest.Slot(t, f, "%der")
				base, err := strconv.ParseUint(o.Value, 0, 64)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("%#x", base+100*8), derived.Value)
				require.EqualValues(t, 0, readAt(t, v, derived), "calloc'd memory")

				// The callee returns nothing, so the rest of @f runs: 0 + 0 + 300 + 51 + 7.
				out, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
				require.NoError(t, err)
				require.Equal(t, &frame.Result{Type: "i64", Value: "358"}, out.Result)
			})
		}
	}
}

// TestResumeSeesLiveMemory requires that the interpreter reads the current globals, heap and stack of the process, and that its writes stay in
// its own copy.
func TestResumeSeesLiveMemory(t *testing.T) {
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, "live_memory.ll", "mcjit")
			v := frametest.Look(t, p, true, frametest.Known(t, p))
			f := frametest.One(t, v, "work")
			for range 2 { // the second run must not see the writes of the first
				out, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
				require.NoError(t, err)
				const sum = 10 + 20 + 4000 + 300 + 2*50000
				require.Equal(t, strconv.Itoa(sum), out.Result.Value)
				require.Equal(t, fmt.Sprintf("sum %d\n", sum), out.Output)
				require.Equal(t, 3, out.Writes)
			}
			require.EqualValues(t, 4000, readAt(t, v, frametest.Slot(t, f, "%heap")))
			require.EqualValues(t, 300, readAt(t, v, frametest.Slot(t, f, "%slot")))
			require.Equal(t, "ready\n", p.Output())
		})
	}
}

// TestFalseMatch requires that a frame in an ordinary call does not match the patchpoint that starts at the call's return address.
func TestFalseMatch(t *testing.T) {
	for _, version := range []int{14, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, "false_match.ll", "mcjit")
			for name, o := range map[string]deopt.Options{"with the module": frametest.Known(t, p), "without": {}} {
				v := frametest.Look(t, p, false, o)
				f := frametest.One(t, v, "work")
				require.NotNil(t, f.Code().Records)
				require.Equal(t, 1, f.Code().Records.At(f.Address()).Len(), "the record is at the return address, or the program tests nothing")
				require.Nil(t, f.Record, name)
				require.Contains(t, strings.Join(f.Notes, "\n"), "record 77 does not match: its patchpoint starts at this return address", name)
			}
		})
	}
}

// stopAtRecord runs a process to the pc of its only record, or of several at one address, and takes a view there.
func stopAtRecord(t *testing.T, p *livetest.Process) (*ptrace.Session, *deopt.View) {
	t.Helper()
	var at machine.Addr
	for _, c := range frametest.Look(t, p, false, frametest.Known(t, p)).Space().Objects {
		near, _ := c.Records.Nearest(0)
		at = near.Addr
		require.Equal(t, c.Records.Len(), c.Records.At(at).Len())
	}
	require.NotZero(t, at)
	p.AwaitPause(t)
	session := frametest.Open(t, p)
	p.Signal(t, syscall.SIGUSR1)
	_, err := session.RunTo(t.Context(), at)
	require.NoError(t, err)
	target, err := session.Target()
	require.NoError(t, err)
	v, err := deopt.Frames(target, frametest.Known(t, p))
	require.NoError(t, err)
	return session, v
}

// TestLostOperands requires that values that LLVM drops are reported as missing, and neither shift nor truncate the others.
func TestLostOperands(t *testing.T) {
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			session, v := stopAtRecord(t, livetest.Lli(t, version, "odd_types.ll", "mcjit"))
			f := frametest.One(t, v, "work")
			for name, want := range map[string]string{"%a": "100", "%b": "101", "%t": "101", "%odd": "true"} {
				require.Equal(t, want, frametest.Slot(t, f, name).Value, name)
			}
			require.EqualValues(t, "0x3000000020000000100000064", frametest.Slot(t, f, "%v").Hex)
			require.Equal(t, "<true, true, false, false>", frametest.Slot(t, f, "%mask").Value)
			for name, reason := range map[string]string{
				"%f":   "LLVM records no location for an x86_fp80",
				"%agg": "LLVM records only the first element of an aggregate",
			} {
				s := frametest.Slot(t, f, name)
				require.Equal(t, frame.Missing, s.Status)
				require.Equal(t, reason, s.Reason)
				require.Empty(t, s.Hex)
			}
			require.Equal(t, "5", f.Slots[8].Value)
			require.NoError(t, session.Detach())
		})
	}
}

// TestAtTheRecord requires that a thread at the record's own pc has every value, including those in caller-saved registers.
func TestAtTheRecord(t *testing.T) {
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, "stop_at.ll", "mcjit")
			session, v := stopAtRecord(t, p)
			f := frametest.One(t, v, "work")
			require.Equal(t, 0, f.Index)
			require.Equal(t, frame.Before, f.Record.Moment)
			want := map[string]string{"%v1": "101", "%v2": "10500", "%v3": "-6", "%v4": "11", "%d1": "6.0", "%d2": "8.75", "%t": "10500"}
			inCallerSaved := 0
			for name, value := range want {
				s := frametest.Slot(t, f, name)
				require.Equal(t, frame.OK, s.Status, "%s: %s", name, s.Reason)
				require.Equal(t, value, s.Value, name)
				if callerSaved[s.Location.Register] {
					inCallerSaved++
				}
			}
			require.Positive(t, inCallerSaved)
			require.EqualValues(t, 4242, readAt(t, v, frametest.Slot(t, f, "%slot")))
			constants := f.Slots[8:]
			require.Equal(t, "-1", constants[0].Value)
			require.Equal(t, "81985529216486895", constants[1].Value)
			require.Equal(t, frame.Undefined, constants[2].Status)
			require.Empty(t, constants[2].Hex)
			// The function runs from here: 101 + 10500 - 6 + 11.
			out, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
			require.NoError(t, err)
			require.Equal(t, "10606", out.Result.Value)
			require.NoError(t, session.Detach())
			require.True(t, p.Alive())
		})
	}
}

// TestEveryLinker covers every way in which lli compiles and links. The frame must be found. If LLVM does not register the object or drops its
// stack map, the message must say what to enable in the host.
func TestEveryLinker(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 16, 19, 22} {
		for _, kind := range []string{"mcjit", "orc", "orc-lazy", "orc-rtdyld", "orc-jitlink"} {
			t.Run(fmt.Sprintf("lli-%d %s", version, kind), func(t *testing.T) {
				p := livetest.Lli(t, version, "jit_pp.ll", kind)
				v := frametest.Look(t, p, false, frametest.Known(t, p))
				if kind == "orc-jitlink" && version < 19 {
					require.Zero(t, v.Records())
					require.Contains(t, v.WhyNone(), "the host must register what it compiles")
					return
				}
				f := recorded(t, v)
				require.Equal(t, "work", f.Function)
				require.Positive(t, check(t, f, livetest.PatchpointValues(), []string{"7", "-5", "81985529216486895"}))
			})
		}
	}
}

// TestHost runs the host in its five modes: the frame is found, or the error says what to enable.
func TestHost(t *testing.T) {
	livetest.Slow(t)
	found := map[string]map[string]bool{
		"14": {"mcjit": true, "orc": true, "orcrt": true, "orcgdb": true},
		"19": {"mcjit": true, "orc": false, "orcrt": true, "orcgdb": true, "orcdbg": true},
	}
	for release, modes := range found {
		for mode, there := range modes {
			t.Run(release+" "+mode, func(t *testing.T) {
				version, err := strconv.Atoi(release)
				require.NoError(t, err)
				p := livetest.Host(t, version, mode, "block")
				m, err := ir.ParseFile(livetest.Testdata(t, "programs", "host_mod.ll"))
				require.NoError(t, err)
				v := frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{m}})
				if !there {
					require.Zero(t, v.Records())
					require.Contains(t, v.WhyNone(), "LLVMOrcLLJITEnableDebugSupport")
					return
				}
				f := recorded(t, v)
				require.EqualValues(t, 31, f.Record.ID)
				require.Equal(t, frame.JIT, f.Kind)
				want := map[string]string{"%a": "1000", "%b": "7", "%x": "1007", "%y": "7000", "%d": "2.5"}
				require.Positive(t, check(t, f, want, []string{"3"}))
			})
		}
	}
}
