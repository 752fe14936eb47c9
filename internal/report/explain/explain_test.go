package explain

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// explained returns the answer to a question about a live process.
func explained(t *testing.T, p *livetest.Process, o deopt.Options, q Question) *Explanation {
	t.Helper()
	v := frametest.Look(t, p, true, o)
	defer v.Target().Release()
	e, err := Explain(v, q)
	require.NoError(t, err)
	require.Equal(t, Schema, e.Schema)
	return e
}

// only requires that an explanation has a single place, which is in a frame, and returns it.
func only(t *testing.T, e *Explanation) *Place {
	t.Helper()
	require.Len(t, e.Places, 1)
	require.NotNil(t, e.Places[0].Frame)
	return &e.Places[0]
}

func valueOf(t *testing.T, p *Place, name string) Value {
	t.Helper()
	for _, v := range p.Values {
		if v.Name == name {
			return v
		}
	}
	require.Fail(t, "no value "+name)
	return Value{}
}

var sum = regexp.MustCompile(`^(\w+) (0x[0-9a-f]+) ([+-]\d+) = (0x[0-9a-f]+)$`)

// adds requires that the address of a value is computed correctly from its register, that the register has that value, and that the bytes are those
// at the address.
func adds(t *testing.T, p *livetest.Process, v Value, base frame.Hex) {
	t.Helper()
	m := sum.FindStringSubmatch(v.Sum)
	require.NotNil(t, m, v.Sum)
	require.Equal(t, string(base), m[2])
	register, err := strconv.ParseUint(m[2], 0, 64)
	require.NoError(t, err)
	offset, err := strconv.ParseInt(m[3], 10, 64)
	require.NoError(t, err)
	at, err := strconv.ParseUint(m[4], 0, 64)
	require.NoError(t, err)
	require.Equal(t, register+uint64(offset), at)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	require.NoError(t, err)
	defer mem.Close()
	raw, err := hex.DecodeString(strings.ReplaceAll(v.Raw, " ", ""))
	require.NoError(t, err)
	there := make([]byte, len(raw))
	_, err = mem.ReadAt(there, int64(at))
	require.NoError(t, err)
	require.Equal(t, there, raw)
}

func TestExplainDeoptimize(t *testing.T) {
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	o := frametest.Known(t, p)
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
	require.NoError(t, err)
	both := strings.Replace(string(text), `"exits":[`, `"exits":[
  {"function":"sum_opt","when":[{"operand":0,"equals":4},{"operand":1,"equals":26}],"resume":{"function":"sum","block":"done"},"slots":[]},`, 1)
	described, err := layout.Parse("both.json", []byte(both))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{described}

	e := explained(t, p, o, Question{Frame: -1})
	require.False(t, e.Partial())
	at := only(t, e)
	require.Equal(t, fmt.Sprintf("frame #2 of thread %d", p.PID), e.Asked)
	require.Equal(t, []FrameName{{p.PID, 2}}, at.Frames)
	require.Equal(t, "r-xp", at.In.Mapping.Permissions)
	require.Empty(t, at.In.Mapping.Path)
	require.Equal(t, []int{1, 1}, []int{at.In.Object.Number, at.In.Object.Of})
	require.Contains(t, at.In.Object.List, "libLLVM")
	require.Equal(t, "sum_opt", at.In.Symbol.Name)
	require.Equal(t, at.In.Symbol.Size, at.In.Symbol.Offset, "the call is the last instruction of sum_opt")

	require.Len(t, at.Records, 1)
	record := at.Records[0]
	require.EqualValues(t, uint64(2882400000), record.ID)
	require.True(t, record.Matched)
	require.Equal(t, []any{"deoptimize", frame.InCall, at.Address, int64(0)}, []any{record.Site, record.Moment, record.Address, record.Distance})
	require.Equal(t, "the record of a deoptimize is at the return address of its call, which is the pc: the call is still running", record.Why)
	source, err := os.ReadFile(p.IR)
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(source), "\n")[record.Line-1], "@__llvm_deoptimize")

	// The deopt values of sum_opt are i32 3, %i, %acc, %n: 26, 5525 and 1000 at its guard.
	require.Len(t, at.Values, 4)
	three := at.Values[0]
	require.Equal(t, "the constant 3 in the record, sign-extended from 32 bits to 64", three.Where)
	require.Equal(t, "03 00 00 00 00 00 00 00", three.Raw)
	require.Equal(t, "i32: the first 4 of 8 bytes; the higher bytes are ignored", three.Reading)
	require.Empty(t, three.As)
	for n, want := range []struct{ name, value, raw string }{{"%i", "26", "1a 00"}, {"%acc", "5525", "95 15"}, {"%n", "1000", "e8 03"}} {
		v := at.Values[n+1]
		require.Equal(t, []any{want.name, want.value, []string{want.name}}, []any{v.Name, v.Value, v.As})
		require.Equal(t, want.raw+" 00 00 00 00 00 00", v.Raw)
		require.Equal(t, "i64: all of it", v.Reading)
		require.Equal(t, fmt.Sprintf("8 bytes of memory at rsp%+d", v.Location.Offset), v.Where)
		require.Equal(t, "rsp is the CFA of frame #1", v.Origin)
		adds(t, p, v, at.Stack[1].CFA)
	}

	c := at.Carries
	require.Equal(t, &frame.Resume{Function: "sum", Block: "loop"}, c.Resume)
	require.Equal(t, "both.json", c.By)
	require.Equal(t, []ExitTried{
		{Layout: "both.json", Index: 0, To: "sum, block %done", When: []WhenTried{{Operand: 0, Equals: 4, Value: "3"}, {Operand: 1, Equals: 26, Value: "26", Holds: true}}},
		{Layout: "both.json", Index: 1, To: "sum, block %loop", When: []WhenTried{{Operand: 0, Equals: 3, Value: "3", Holds: true}}, Taken: true},
	}, c.Exits)

	// Without the layout the frame does not resume, and without the module there are no types.
	o.Layouts = nil
	at = only(t, explained(t, p, o, Question{Frame: 2}))
	require.Nil(t, at.Carries.Resume)
	require.Contains(t, at.Carries.Why, "--layout FILE.json says where the interpreter resumes")
	at = only(t, explained(t, p, deopt.Options{}, Question{Frame: 2}))
	require.Equal(t, "statepoint", at.Records[0].Site)
	require.Equal(t, "the type is unknown: all 8 bytes, as one number", at.Values[0].Reading)
	require.Contains(t, at.Carries.Why, "give it with --ir")
}

func TestExplainPatchpoint(t *testing.T) {
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	id := uint64(2001)
	e := explained(t, p, frametest.Known(t, p), Question{Record: &id, Frame: -1})
	require.Equal(t, "record 2001", e.Asked)
	require.True(t, e.Partial(), "values in caller-saved registers are gone")
	at := only(t, e)
	require.Equal(t, 2, at.Frame.Index)
	require.Len(t, at.Records, 2)
	own, next := at.Records[0], at.Records[1]
	require.Equal(t, []any{uint64(2001), true, "patchpoint", frame.InCall, int64(-13)}, []any{own.ID, own.Matched, own.Site, own.Moment, own.Distance})
	require.Equal(t, "the record of a patchpoint is at the start of its region, and a call in the region ends at the pc, 13 bytes after: the call is still running", own.Why)
	// The region has 24 bytes, and the stackmap follows immediately.
	require.Equal(t, []any{uint64(2002), false, "stackmap", int64(24 - 13)}, []any{next.ID, next.Matched, next.Site, next.Distance})
	require.Equal(t, "the site itself is 11 bytes after the pc", next.Why)

	wanted := livetest.PatchpointValues()
	for _, v := range at.Values {
		want, computed := wanted[v.Name]
		if !computed {
			continue
		}
		delete(wanted, v.Name)
		if v.Status == frame.Missing {
			require.Equal(t, fmt.Sprintf("%s is caller-saved and frame #1 does not preserve it", v.Location.Register), v.Reason)
			require.Empty(t, v.Raw)
			require.Empty(t, v.Origin)
			continue
		}
		require.Equal(t, want, v.Value)
		if v.Location.Kind == "Register" {
			require.Equal(t, "8 bytes of "+v.Location.Register, v.Where)
			require.Regexp(t, `^(the thread's own \w+, which no inner frame has changed|frame #1 has rbx at \[CFA-16\]: 0x[0-9a-f]+ -16 = 0x[0-9a-f]+)$`, v.Origin)
		}
	}
	require.Equal(t, []string{"%a"}, slices.Collect(maps.Keys(wanted)), "the argument of the call is no live value")
	slot := valueOf(t, at, "%slot")
	require.Equal(t, fmt.Sprintf("the address rbp%+d itself, of an object on the stack", slot.Location.Offset), slot.Where)
	last := at.Values[len(at.Values)-1]
	require.Equal(t, "entry 0 of the map's constants, 64 bits: 81985529216486895", last.Where)
	require.Equal(t, "ef cd ab 89 67 45 23 01", last.Raw)
	require.Equal(t, "the constant -5 in the record, sign-extended from 32 bits to 64", at.Values[len(at.Values)-2].Where)
	require.Equal(t, "fb ff ff ff ff ff ff ff", at.Values[len(at.Values)-2].Raw)
	require.Contains(t, at.Carries.By, "the site itself, line ")

	var notes []string
	for _, i := range at.Code.Instructions {
		notes = append(notes, i.Notes...)
	}
	require.Equal(t, []string{"record 2001: its region starts", "frame #2 returns here", "record 2002: the point itself", "the region of record 2001 ends, 24 bytes"}, notes)

	// No frame is at the stackmap.
	id = 2002
	e = explained(t, p, frametest.Known(t, p), Question{Record: &id, Frame: -1})
	require.Len(t, e.Places, 1)
	require.Nil(t, e.Places[0].Frame)
	require.Empty(t, e.Places[0].Frames)
	require.Equal(t, next.Address, e.Places[0].Address)
	require.Equal(t, "its place is the site itself", e.Places[0].Records[1].Why)
}

// TestExplainFalseMatch requires that the record of the false match in doc/dev/facts.md is rejected, with the reason.
func TestExplainFalseMatch(t *testing.T) {
	p := livetest.Lli(t, 19, "false_match.ll", "mcjit")
	id := uint64(77)
	for _, o := range []deopt.Options{{}, frametest.Known(t, p)} {
		at := only(t, explained(t, p, o, Question{Record: &id, Frame: -1}))
		require.Equal(t, 2, at.Frame.Index)
		require.Len(t, at.Records, 1)
		require.False(t, at.Records[0].Matched)
		require.Equal(t, at.Address, at.Records[0].Address)
		require.Equal(t, "its patchpoint starts at this return address, and the call before it is still running", at.Records[0].Why)
		require.Empty(t, at.Notes, "they say the same")
		require.Nil(t, at.Carries)
	}
}

// TestExplainStatepoint requires, for types of all widths, the bytes that are read and the bits that are masked.
func TestExplainStatepoint(t *testing.T) {
	p := livetest.Lli(t, 19, "jit_sp.ll", "orc")
	at := only(t, explained(t, p, frametest.Known(t, p), Question{Frame: -1}))
	for name, want := range map[string][2]string{
		"%x": {"300", "i64: all of it"}, "%y": {"51", "i32: all of it"}, "%e": {"7.5", "double: all of it"}, "%c": {"-3", "i8: all of it"},
	} {
		v := valueOf(t, at, name)
		require.Equal(t, want, [2]string{v.Value, v.Reading})
		adds(t, p, v, at.Stack[1].CFA)
	}
}

func TestReading(t *testing.T) {
	for want, test := range map[string]struct {
		raw string
		t   frame.Type
		big bool
	}{
		"the type is unknown: all 1 byte, as one number": {raw: "\x01"},
		"i64: all of it": {"12345678", frame.Type{Kind: frame.Int, Bits: 64, Source: "i64"}, false},
		"i1: all of it; of the byte ff the low 1 bits":                                             {"\xff", frame.Type{Kind: frame.Int, Bits: 1, Source: "i1"}, false},
		"i12: the first 2 of 8 bytes; the higher bytes are ignored; of the byte 2a the low 4 bits": {"\x01\x2a\x03\x04\x05\x06\x07\x08", frame.Type{Kind: frame.Int, Bits: 12, Source: "i12"}, false},
		"i12: the last 2 of 4 bytes; the higher bytes are ignored; of the byte 03 the low 4 bits":  {"\x01\x02\x03\x04", frame.Type{Kind: frame.Int, Bits: 12, Source: "i12"}, true},
	} {
		require.Equal(t, want, reading([]byte(test.raw), test.t, test.big))
	}
}

// TestExplainRecursion requires that only a frame number selects one of several frames of a recursion at one record.
func TestExplainRecursion(t *testing.T) {
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	id := uint64(2)
	e := explained(t, p, frametest.Known(t, p), Question{Record: &id, Frame: -1})
	require.Len(t, e.Places, 1)
	at := e.Places[0]
	require.Nil(t, at.Frame)
	require.Len(t, at.Frames, 3, "f(3), f(2) and f(1) wait for the call")
	require.Nil(t, at.Code)
	outermost := at.Frames[2].Index
	at = *only(t, explained(t, p, frametest.Known(t, p), Question{Record: &id, Frame: outermost}))
	require.Equal(t, "3", valueOf(t, &at, "%n").Value)
	require.Len(t, at.Stack, outermost+1)

	addr := machine.Addr(0)
	_, err := fmt.Sscanf(string(at.Address), "0x%x", (*uint64)(&addr))
	require.NoError(t, err)
	e = explained(t, p, frametest.Known(t, p), Question{Address: &addr, Frame: -1})
	require.Len(t, e.Places[0].Frames, 3)
	require.Nil(t, e.Places[0].Frame)
	require.NotEmpty(t, e.Places[0].Code.Instructions)
}

// TestExplainTwoPlaces requires that both places of a record are reported if the same object is twice in memory and is not registered.
func TestExplainTwoPlaces(t *testing.T) {
	include := "-I" + filepath.Join("..", "..", "demo", "target")
	p := livetest.C(t, "unregistered.c", []string{include}, livetest.Object(t, 19, "host_mod.ll"))
	m, err := ir.ParseFile(livetest.Testdata(t, "programs", "host_mod.ll"))
	require.NoError(t, err)
	id := uint64(31)
	e := explained(t, p, deopt.Options{Modules: []*ir.Module{m}}, Question{Record: &id, Frame: -1})
	require.Len(t, e.Places, 2)
	idle, running := e.Places[0], e.Places[1]
	if running.Frame == nil {
		idle, running = running, idle
	}
	require.Empty(t, idle.Frames)
	require.Nil(t, idle.Code)
	require.Len(t, idle.Records, 1)
	require.Regexp(t, `^its place is the start of its region; a frame that waits for its call is at 0x[0-9a-f]+$`, idle.Records[0].Why)
	require.Equal(t, "1007", valueOf(t, &running, "%x").Value)
	require.Equal(t, "no symbol covers it", running.In.Why)
	require.Nil(t, running.In.Object)
	var stack []string
	for _, f := range running.Stack {
		stack = append(stack, f.Function)
	}
	require.Contains(t, stack, "cb")
}

// TestExplainPlainCode requires an explanation of a place in code without a stack map, and an error for an address without code.
func TestExplainPlainCode(t *testing.T) {
	p := livetest.C(t, "nojit.c", nil)
	v := frametest.Look(t, p, true, deopt.Options{})
	main := frametest.One(t, v, "main")
	start := main.Address() - machine.Addr(*main.Offset)
	e, err := Explain(v, Question{Address: &start, Frame: -1})
	require.NoError(t, err)
	require.Len(t, e.Places, 1)
	at := e.Places[0]
	require.Nil(t, at.Frame)
	require.Contains(t, at.In.Module, "nojit")
	require.Equal(t, ".text", at.In.Section.Name)
	require.Equal(t, []string{at.In.Module + " has no stack map"}, at.Notes)
	require.Len(t, at.Code.Instructions, shownFrom)
	require.True(t, at.Code.Instructions[0].Here)
	require.Equal(t, []string{"main starts"}, at.Code.Instructions[0].Notes)

	sp, err := main.Physical().Registers.Addr(machine.AMD64.SP)
	require.NoError(t, err)
	one, three, frames := machine.Addr(1), uint64(3), len(v.Threads[0].Frames)
	for want, q := range map[string]Question{
		"nothing to explain: no memory is mapped at 0x1":                                                              {Address: &one, Frame: -1},
		fmt.Sprintf("nothing to explain: %v is not code: it is in [stack], rw-p", sp):                                 {Address: &sp, Frame: -1},
		fmt.Sprintf("nothing to explain: there is no frame 99; thread %d has %d, #0 to #%d", p.PID, frames, frames-1): {Frame: 99},
	} {
		_, err := Explain(v, q)
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, ErrNotFound)
	}
	_, err = Explain(v, Question{Record: &three, Frame: -1})
	require.ErrorContains(t, err, "nothing to explain: no record has the id 3; process "+strconv.Itoa(p.PID)+": no stack map: it has no code outside of its files")
	_, err = Explain(v, Question{Frame: -1})
	require.ErrorContains(t, err, "nothing to explain: no frame has a record; select one by its number (-f)")
}

// TestExplainAgainstGDB requires that gdb finds each frame with the same CFA, the same addresses of saved registers and the same instructions.
func TestExplainAgainstGDB(t *testing.T) {
	livetest.Slow(t)
	for _, program := range []string{"deoptimize.ll", "jit_pp.ll", "jit_sp.ll"} {
		p := livetest.Lli(t, 19, program, "mcjit")
		at := only(t, explained(t, p, deopt.Options{}, Question{Frame: -1}))
		var commands []string
		for _, f := range at.Stack {
			commands = append(commands, fmt.Sprintf("frame %d", f.Index), "info frame")
		}
		code := at.Code.Instructions
		require.Empty(t, at.Code.Why)
		commands = append(commands, fmt.Sprintf("disassemble /r %s,%s", code[0].Address, code[len(code)-1].Address))
		answer := livetest.GDB(t, p.PID, commands...)
		levels := strings.Split(answer, "Stack level ")
		require.Len(t, levels, 1+len(at.Stack))
		for n, f := range at.Stack {
			level := levels[n+1]
			require.True(t, strings.HasPrefix(level, fmt.Sprintf("%d, frame at %s:\n", n, f.CFA)), level)
			cfa, err := strconv.ParseUint(string(f.CFA), 0, 64)
			require.NoError(t, err)
			_, saved, found := strings.Cut(level, "Saved registers:\n")
			require.True(t, found, level)
			saved, _, _ = strings.Cut(saved, "\n")
			var ours []string
			for _, r := range f.Registers {
				var name string
				var offset int64
				_, err := fmt.Sscanf(r, "%s at [CFA%d]", &name, &offset)
				require.NoError(t, err, r)
				ours = append(ours, fmt.Sprintf("%s at %#x", name, cfa+uint64(offset)))
			}
			require.ElementsMatch(t, strings.Split(strings.TrimSpace(saved), ", "), ours)
		}
		rows := regexp.MustCompile(`(?m)^(=>|  ) 0x0*([0-9a-f]+)(?: <.*>)?:\t([0-9a-f ]+)\t`).FindAllStringSubmatch(levels[len(levels)-1], -1)
		require.Len(t, rows, len(code)-1, "the end is not in it")
		for n, row := range rows {
			require.Equal(t, []string{"0x" + row[2], strings.TrimSpace(row[3])}, []string{string(code[n].Address), code[n].Bytes})
			require.Equal(t, row[1] == "=>", code[n].Here)
		}
	}
}

// TestExplainWithoutCFI requires that, for code without CFI, the explanation names the rule that leads to the caller, and the methods that failed
// before.
func TestExplainWithoutCFI(t *testing.T) {
	for _, test := range []struct {
		flags []string
		by    string
		tried string
	}{
		{[]string{"-fno-asynchronous-unwind-tables"}, "code", ""},
		{[]string{"-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer", "-s"}, "frame pointer", "^code: "},
	} {
		p := livetest.C(t, "nojit.c", test.flags)
		at := only(t, explained(t, p, deopt.Options{}, Question{Frame: 2}))
		main, caller := at.Stack[1], at.Stack[2]
		require.Equal(t, test.by, main.LeftBy)
		require.Equal(t, test.by, caller.Rule)
		require.Nil(t, main.FDE)
		require.Equal(t, "cfi", at.Stack[0].LeftBy)
		if test.tried == "" {
			require.Empty(t, main.Tried)
		} else {
			require.Len(t, main.Tried, 1)
			require.Regexp(t, test.tried, main.Tried[0])
		}
		// The return address lies below the CFA (System V ABI, AMD64 supplement, figure 3.3).
		cfa, err := strconv.ParseUint(string(main.CFA), 0, 64)
		require.NoError(t, err)
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
		require.NoError(t, err)
		defer mem.Close()
		var word [8]byte
		_, err = mem.ReadAt(word[:], int64(cfa-8))
		require.NoError(t, err)
		require.Equal(t, string(caller.PC), fmt.Sprintf("%#x", binary.LittleEndian.Uint64(word[:])))
	}
}

// TestExplainEveryFrame requires that every frame of every program can be explained, and that the explained values equal those of the frame.
func TestExplainEveryFrame(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 16, 19, 22} {
		for _, program := range []string{"jit_pp.ll", "jit_sp.ll", "false_match.ll", "deoptimize.ll", "chain.ll", "stop_at.ll"} {
			if version == 14 && (program == "deoptimize.ll" || program == "chain.ll") {
				continue // LLVM 14 does not accept these programs
			}
			p := livetest.Lli(t, version, program, "mcjit")
			v := frametest.Look(t, p, true, frametest.Known(t, p))
			for _, f := range v.Threads[0].Frames {
				e, err := Explain(v, Question{Frame: f.Index})
				require.NoError(t, err)
				at := only(t, e)
				require.Len(t, at.Stack, f.Index+1)
				require.Equal(t, f.Record != nil, len(at.Records) > 0 && at.Records[0].Matched)
				require.Empty(t, at.Code.Why)
				require.Len(t, at.Values, len(f.Slots))
				for k, x := range at.Values {
					require.Equal(t, f.Slots[k], x.Slot)
					if x.Status == frame.OK {
						require.Equal(t, hexOf(t, x), x.Hex)
					}
				}
			}
			v.Target().Release()
		}
	}
}

// hexOf returns the number in the raw bytes of a little-endian value, cut to the width of its type.
func hexOf(t *testing.T, x Value) frame.Hex {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(x.Raw, " ", ""))
	require.NoError(t, err)
	slices.Reverse(raw)
	n := new(big.Int).SetBytes(raw)
	if bits := uint(x.Type.Bits); bits > 0 {
		n.Mod(n, new(big.Int).Lsh(big.NewInt(1), bits))
	}
	return frame.Hex("0x" + n.Text(16))
}

// TestExplainOtherRecordAtOneAddress requires that, of two records at one address, the record with the requested id is explained.
func TestExplainOtherRecordAtOneAddress(t *testing.T) {
	const text = livetest.Prelude + `
define i64 @work(i64 %a) noinline {
  %x = mul i64 %a, 3
  %y = mul i64 %a, 5
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 21, i32 0, i64 %x)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 22, i32 0, i64 %y)
  %s = add i64 %x, %y
  ret i64 %s
}
` + livetest.Start
	p := livetest.Lli(t, 19, livetest.Module(t, text), "mcjit")
	for id, want := range map[uint64]string{21: "%x 300", 22: "%y 500"} {
		at := only(t, explained(t, p, frametest.Known(t, p), Question{Record: &id, Frame: -1}))
		require.Equal(t, want, at.Values[0].Name+" "+at.Values[0].Value)
	}
}
