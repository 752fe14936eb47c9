package deopt

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
)

// Next lists what a user can do with the frames of a view. It reads no memory, so the target may be running.
type Next struct {
	// Stack is the innermost frame that the interpreter can resume from, nil for none. Next prefers a frame that needs no call result. If the
	// frame needs one, Awaits is the type of the result, and Result an example of it.
	Stack          *Stack
	Awaits, Result string
	// Lacking is set if Stack is nil: the innermost frame that has a place to resume but lacks values.
	Lacking *Stack
	// Wanted lists the missing inputs that would name values or show where frames resume: for each kind of input, the innermost frame that needs it.
	Wanted []string
}

// Next returns what a user can do with the frames of the view that have a record.
func (v *View) Next() Next {
	var n Next
	said := map[string]bool{}
	for i := range v.Threads {
		t := &v.Threads[i]
		for _, f := range t.Frames {
			if f.Record == nil || t.Parked() { // resume and explain cannot choose a parked goroutine
				continue
			}
			if kind, wants := f.Wants(); kind != "" && !said[kind] {
				said[kind] = true
				n.Wanted = append(n.Wanted, wants)
			}
			s := &Stack{Thread: t, Frames: []*Frame{f}}
			awaits, result, ok := s.ready()
			switch {
			case ok && (n.Stack == nil || n.Awaits != "" && awaits == ""):
				n.Stack, n.Awaits, n.Result = s, awaits, result
			case !ok && n.Lacking == nil && f.Lacks() != "":
				n.Lacking = s
			}
		}
	}
	if n.Stack != nil {
		n.Lacking = nil
	}
	return n
}

// Wants returns the missing input that would name the values of a frame with a record, or show where it resumes: the kind of the input, and a text
// about it; "" for none.
func (f *Frame) Wants() (kind, text string) {
	switch {
	case f.to == nil && f.Resume != nil:
		return "to", fmt.Sprintf("%s, resumes in @%s: give the module that defines it, --ir FILE.ll", f.Title(), f.Resume.Function)
	case f.match.Site == nil && len(f.Slots) == 0: // the record has no values to name
	case f.match.Site == nil && len(f.view.modules.All) == 0:
		return "module", "for names and types of values give the module that the JIT compiled, --ir FILE.ll"
	case f.match.Site == nil:
		return "site", fmt.Sprintf("for names and types of the values of %s, give the module that it was compiled from, --ir FILE.ll", f.Title())
	case f.VM != nil && f.VM.Error == "": // the VM's interpreter resumes
	case f.Resume == nil && f.match.Kind == ir.DeoptimizeSite:
		return "layout", fmt.Sprintf("%s: a deoptimize never returns; --layout FILE.json says where the interpreter resumes", f.Title())
	}
	return "", ""
}

// ready reports whether the interpreter can resume from the only frame of the stack. If it needs the result of the pending call, awaits is the type
// of the result and result an example.
func (s *Stack) ready() (awaits, result string, ok bool) {
	f := s.Frames[0]
	b, err := s.bind(0)
	if err == nil && slices.ContainsFunc(b.missing, f.isResult) {
		if _, v, _ := f.Awaited(); v != nil {
			awaits, result = v.Typ.String(), example(v.Typ)
			b, err = (&Stack{Thread: s.Thread, Frames: s.Frames, Result: result, Force: s.Force}).bind(0)
		}
	}
	return awaits, result, err == nil && b.missing == nil
}

// example returns a value of a type for [ParseValue], "" for none.
func example(t *ir.Type) string {
	switch t.Kind {
	case ir.IntKind:
		return "0"
	case ir.PointerKind:
		return "null"
	case ir.HalfKind, ir.BFloatKind, ir.FloatKind, ir.DoubleKind:
		return "0.0"
	case ir.X86FP80Kind, ir.FP128Kind:
		return "0x0"
	}
	return ""
}
