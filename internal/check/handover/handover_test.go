package handover

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/protocol"
)

// physical returns a physical frame with a record and one VM frame, whose member Resume is resume.
func physical(index int, function, resume string) *deopt.Frame {
	return &deopt.Frame{Frame: frame.Frame{Index: index, Function: function, Record: &frame.Record{ID: 5},
		VM: &frame.VM{Frames: []frame.VMFrame{{Method: function + ".vm", Resume: resume}}}}}
}

func viewOf(frames ...*deopt.Frame) *deopt.View {
	return &deopt.View{Threads: []deopt.Thread{{ID: 7, Frames: frames}}}
}

func numbers(s *Stack) (list []int) {
	for _, f := range s.Frames {
		list = append(list, f.Index)
	}
	return list
}

// TestPick requires that the innermost frame with VM frames is selected, with its callers up to the first one that has no pending call.
func TestPick(t *testing.T) {
	plain := &deopt.Frame{Frame: frame.Frame{Function: "wait"}}
	v := viewOf(plain, physical(1, "inner", frame.Reexecute), physical(2, "caller", frame.Calling), physical(3, "outer", frame.Completed))
	for _, c := range []struct {
		choice deopt.Choice
		frames []int
		end    string
	}{
		{deopt.Choice{Frame: -1}, []int{1}, ""},
		{deopt.Choice{Frame: 2}, []int{2}, ""},
		{deopt.Choice{Frame: -1, To: 2}, []int{1, 2}, ""},
		{deopt.Choice{Frame: -1, To: deopt.AllCallers}, []int{1, 2}, "frame #3, outer has no pending call"},
		{deopt.Choice{Frame: 3, To: deopt.AllCallers}, []int{3}, "frame #3, outer is the last known frame"},
	} {
		s, err := Pick(v, c.choice)
		require.NoError(t, err)
		require.Equal(t, c.frames, numbers(s))
		require.Equal(t, c.end, s.End)
	}
}

// TestPickLeavesTheInterpreterOut requires that frames of the VM's interpreter are neither selected nor included as callers, because that interpreter
// runs them.
func TestPickLeavesTheInterpreterOut(t *testing.T) {
	interpreted := func(index int) *deopt.Frame {
		f := physical(index, "interpret", frame.Calling)
		f.Record = nil
		return f
	}
	v := viewOf(interpreted(0), physical(1, "inner", frame.Reexecute), interpreted(2), physical(3, "outer", frame.Calling))
	s, err := Pick(v, deopt.Choice{Frame: -1, To: deopt.AllCallers})
	require.NoError(t, err)
	require.Equal(t, []int{1}, numbers(s))
	require.Equal(t, "frame #2, interpret is a frame of the VM's interpreter", s.End)
	const why = "frame #2, interpret: it is a frame of the VM's interpreter, which is running; only frames of compiled code can be resumed"
	_, err = Pick(v, deopt.Choice{Frame: 2})
	require.EqualError(t, err, "no frame to resume: "+why)
	_, _, err = v.SetVM(interpreted(2), "local[0]", "1")
	require.EqualError(t, err, "local[0] of frame #2, interpret: values of the VM's interpreter are read-only")
}

// TestPickFails requires an error with the reason for frames that cannot be selected.
func TestPickFails(t *testing.T) {
	function := func(name string) *names.Pattern {
		p, err := names.Exact(name)
		require.NoError(t, err)
		return p
	}
	recorded := &deopt.Frame{Frame: frame.Frame{Index: 1, Function: "work", Record: &frame.Record{ID: 5}}}
	failed := physical(2, "failed", frame.Reexecute)
	failed.VM.Error = "simple.star:3: no operand 4"
	partial := physical(3, "partial", frame.Reexecute)
	partial.VM.Frames[0].Reason = "its method is unknown"
	v := viewOf(&deopt.Frame{Frame: frame.Frame{Function: "wait"}}, recorded, failed, partial)
	for want, choice := range map[string]deopt.Choice{
		"no frame to resume: frame #1, work: no layout has VM frames for record 5; use --layout": {Frame: 1},
		"no frame to resume: frame #2, failed: simple.star:3: no operand 4":                      {Frame: -1, Function: function("failed")},
		"frame #3, partial: its method is unknown":                                               {Frame: 3},
		"no frame to resume: there is no frame 9; thread 7 has 4, #0 to #3":                      {Frame: 9},
		"no frame to resume: no frame of wait has a stack map record":                            {Frame: -1, Function: function("wait")},
	} {
		_, err := Pick(v, choice)
		require.EqualError(t, err, want)
	}
	_, err := Pick(viewOf(physical(0, "inner", frame.Reexecute), physical(1, "caller", frame.Completed)), deopt.Choice{Frame: -1, To: 1})
	require.EqualError(t, err, "no frame to resume up to frame #1: frame #1, caller has no pending call")
}

// TestRequest requires that all VM frames are passed innermost first, and that objects of different physical frames get different numbers.
func TestRequest(t *testing.T) {
	zero, one, three := int64(0), int64(1), int64(3)
	inner, outer := physical(0, "inner", frame.Reexecute), physical(1, "outer", frame.Calling)
	inner.VM.Objects = []frame.VMObject{{ID: 3, Class: "Point"}}
	outer.VM.Frames[0].Locals = []frame.VMValue{{Index: &zero, Object: &one}, {Index: &one, Status: frame.Dead}}
	outer.VM.Frames[0].Stack = []frame.VMValue{{Index: &zero, Type: "ref Point", Value: "null", Status: frame.OK}}
	outer.VM.Objects = []frame.VMObject{{ID: 1, Class: "Line", ClassBits: 0x20, Fields: []frame.VMField{{At: 8, VMValue: frame.VMValue{Object: &zero}}}}}
	s := &Stack{View: viewOf(inner, outer), Frames: []*deopt.Frame{inner, outer}}
	r, err := s.Request()
	require.NoError(t, err)
	four, five := int64(4), int64(5)
	require.Equal(t, &protocol.Resume{
		Frames: []protocol.Frame{
			{Method: "inner.vm", Resume: "reexecute", Locals: []protocol.Value{}, Stack: []protocol.Value{}},
			{Method: "outer.vm", Resume: "in-call", Locals: []protocol.Value{{Index: &zero, Object: &five}, {Index: &one, Dead: true}},
				Stack: []protocol.Value{{Index: &zero, Type: "ref", Text: "null"}}},
		},
		Objects: []protocol.Object{
			{ID: three, Class: "Point", Fields: []protocol.Field{}},
			{ID: 5, Class: "Line", Bits: "0x20", Fields: []protocol.Field{{At: 8, Value: protocol.Value{Object: &four}}}},
		},
	}, r)
}

// TestRequestFails requires an error for values that are unavailable, and for a result without a pending call or a pending call without a result.
func TestRequestFails(t *testing.T) {
	zero := int64(0)
	local := func(v frame.VMValue) *Stack {
		f := physical(0, "work", frame.Reexecute)
		v.Index = &zero
		f.VM.Frames[0].Locals = []frame.VMValue{v}
		return &Stack{Frames: []*deopt.Frame{f}}
	}
	given, err := Given("7")
	require.NoError(t, err)
	pending := []*deopt.Frame{physical(0, "work", frame.Calling)}
	for want, s := range map[string]*Stack{
		"frame #0, work: local[0] of work.vm: unavailable: it is in no register":                                               local(frame.VMValue{Status: frame.Missing, Reason: "it is in no register"}),
		"frame #0, work: local[0] of work.vm: the value is undef in the module, and the layout does not mark it as dead":       local(frame.VMValue{Status: frame.Undefined}),
		"frame #0, work: --result cannot be used: its innermost VM frame has no pending call":                                  {Frames: []*deopt.Frame{physical(0, "work", frame.Reexecute)}, Returned: given},
		"frame #0, work: its innermost VM frame, work.vm, waits for a call that is still running; use --result for its result": {Frames: pending},
	} {
		_, err := s.Request()
		require.EqualError(t, err, want)
	}
	_, err = (&Stack{Frames: pending, Came: true}).Request() // the call was a void call
	require.NoError(t, err)
}

// TestBits requires that only the bits within the width of a type are passed, in the byte order of the target.
func TestBits(t *testing.T) {
	wide := []byte{0x01, 0x02, 0x03, 0x04}
	require.Equal(t, protocol.Word("0x201"), bits(&frame.VMValue{Bytes: wide, Kind: frame.Type{Kind: frame.Int, Bits: 16}}, binary.LittleEndian))
	require.Equal(t, protocol.Word("0x304"), bits(&frame.VMValue{Bytes: wide, Kind: frame.Type{Kind: frame.Int, Bits: 16}}, binary.BigEndian))
	require.Equal(t, protocol.Word("0x1"), bits(&frame.VMValue{Bytes: wide, Kind: frame.Type{Kind: frame.Int, Bits: 1}}, binary.LittleEndian))
}

// TestGiven requires that a result is parsed as an integer, a pointer or a float.
func TestGiven(t *testing.T) {
	for text, want := range map[string]protocol.Native{
		"null": {Type: "ref", Bits: "0x0", Text: "null"},
		"7":    {Type: "i64", Bits: "0x7", Text: "7"},
		"0x10": {Type: "i64", Bits: "0x10", Text: "0x10"},
		"-1":   {Type: "i64", Bits: "0xffffffffffffffff", Text: "-1"},
		"1.5":  {Type: "f64", Bits: "0x3ff8000000000000", Text: "1.5"},
	} {
		got, err := Given(text)
		require.NoError(t, err)
		require.Equal(t, want, *got)
	}
	_, err := Given("seven")
	require.EqualError(t, err, `expected an integer, pointer or float, got "seven"`)
}

// TestVM requires that the frames in which an interpreter stops have the values that a layout would read.
func TestVM(t *testing.T) {
	zero, two, position := int64(0), int64(2), int64(17)
	vm := VM(&protocol.Stopped{
		Frames: []protocol.Frame{{Bits: "0x40", Position: &position, Resume: frame.Reexecute,
			Locals: []protocol.Value{{Index: &zero, Type: "i32", Bits: "0x7"}, {Index: &two, Object: &two}}}},
		Objects: []protocol.Object{{ID: 2, Class: "Point", Fields: []protocol.Field{{At: 8, Value: protocol.Value{Dead: true}}}}},
	}, binary.BigEndian)
	require.Len(t, vm.Frames, 1)
	require.Equal(t, "0x40", vm.Frames[0].Method)
	require.Equal(t, uint64(0x40), vm.Frames[0].MethodBits)
	local := vm.Frames[0].Locals[0]
	require.Equal(t, []byte{0, 0, 0, 7}, local.Bytes)
	require.Equal(t, []string{"7", "i32", "0x7", "ok"}, []string{local.Value, local.Type, string(local.Hex), string(local.Status)})
	require.Equal(t, frame.VMValue{Index: &two, Object: &two}, vm.Frames[0].Locals[1])
	require.Equal(t, []frame.VMObject{{ID: 2, Class: "Point", Fields: []frame.VMField{{At: 8, VMValue: frame.VMValue{Status: frame.Dead}}}}}, vm.Objects)
}
