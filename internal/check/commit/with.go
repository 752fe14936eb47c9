package commit

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// PrepareWith is [Prepare] for a virtual machine's own interpreter, to which run passes the frames of s. The commit makes the interpreter's stores in
// the process, and the native function returns the interpreter's result for compiled code. PrepareWith does not run the interpreter if a commit is
// impossible.
//
// The stores and the result must be the only effects: it returns an error if the interpreter allocated, printed or took a lock, or does not state
// that it took none. The interpreter runs only once. [Prepare] runs a second time to find pointers to the interpreter's own memory. PrepareWith
// already rejects allocations. A second run would not find pointers into the interpreter's process, which the interpreter must not store, because
// they may be equal in both runs.
func PrepareWith(session *ptrace.Session, s *handover.Stack, run func(*protocol.Resume) (*handover.Ran, error)) (*frame.Resumed, *Commit, error) {
	request, err := s.Request()
	if err == nil {
		err = onlyStores(request)
	}
	if err != nil {
		return nil, nil, err
	}
	to, err := begin(session, s.Thread, s.Frames)
	if err != nil {
		return nil, nil, err
	}
	if t := to.native.Sig.Elem; t.Kind != ir.VoidKind && !inOneRegister(t) {
		return nil, nil, fmt.Errorf("@%s returns a value of type %v, which takes more than one register", to.native.Name, t)
	}
	ran, err := run(request)
	if err != nil {
		return nil, nil, err
	}
	if err := onlyStored(ran); err != nil {
		return ran.Report, nil, err
	}
	v, err := resultOf(ran, to.native)
	if err != nil {
		return ran.Report, nil, err
	}
	changes, err := changed(storedPages(ran.Memory), s.View.Target(), to.maps, to.dead)
	if err != nil {
		return ran.Report, nil, err
	}
	return to.commit(session, s.Thread, ran.Report, v, changes)
}

// onlyStores returns an error for frames that need more than stores to resume: objects that must be allocated, or locks that must be taken.
func onlyStores(r *protocol.Resume) error {
	if len(r.Objects) > 0 {
		o := r.Objects[0]
		return fmt.Errorf("object %d (%s) does not exist in the process: the interpreter allocates it, and only stores to the process's memory can be written back", o.ID, oneLine(o.Class))
	}
	for _, f := range r.Frames {
		if slices.ContainsFunc(f.Monitors, func(m protocol.Monitor) bool { return m.Eliminated }) {
			return fmt.Errorf("compiled code left out a lock of %s: the interpreter takes it, and only stores to the process's memory can be written back", oneLine(f.Method))
		}
	}
	return nil
}

// onlyStored returns an error if a run has, or may have, effects outside of the process's memory.
func onlyStored(r *handover.Ran) error {
	name, a := oneLine(r.Report.With.Interpreter), r.Answer
	if name == "" {
		name = "its interpreter"
	}
	switch {
	case a.Unsupported != "":
		return fmt.Errorf("%s cannot continue: %s", name, oneLine(a.Unsupported))
	case a.Malformed != "":
		return fmt.Errorf("%s reports malformed frames: %s", name, oneLine(a.Malformed))
	case !a.Returns: // it ended with an exception
		return fmt.Errorf("%s ended with an exception (%s), and %s does not report what compiled code returns in this case", oneLine(r.Report.With.Method), oneLine(a.Threw.Text), name)
	case a.Output != "":
		return fmt.Errorf("%s printed, which would be lost: only stores to the process's memory can be written back", name)
	case a.Allocated > 0:
		return fmt.Errorf("%s allocated %d bytes, which do not exist in the process: only stores to the process's memory can be written back", name, a.Allocated)
	case a.Locked == nil:
		return fmt.Errorf(`%s does not report that it took no lock ("locked":false)`, name)
	case *a.Locked:
		return fmt.Errorf("%s took a lock, or holds one that was not held before", name)
	}
	return nil
}

// oneLine returns text of an interpreter or target as a single line, for a message.
func oneLine(text string) string {
	const most = 1000
	return fmt.Sprintf("%.*s", most, strings.Join(strings.Fields(text[:min(len(text), 4*most)]), " "))
}

// inOneRegister reports whether the protocol has values of a type, and each value fits in one register.
func inOneRegister(t *ir.Type) bool {
	switch t.Kind {
	case ir.IntKind:
		return t.Bits <= 64
	case ir.PointerKind, ir.FloatKind, ir.DoubleKind:
		return true
	}
	return false
}

// resultOf returns the interpreter's result for compiled code, converted to the type of the native function. It returns no value for a void function.
func resultOf(r *handover.Ran, native *ir.Func) (interp.Value, error) {
	var none interp.Value
	is, t := r.Answer.Returned, native.Sig.Elem
	switch {
	case is == nil && t.Kind == ir.VoidKind:
		return none, nil
	case is == nil:
		return none, fmt.Errorf("the interpreter returned nothing, but @%s returns a value of type %v", native.Name, t)
	case !slices.Contains(namesOf(t), is.Type):
		return none, fmt.Errorf("the interpreter returned a value of type %s, but @%s returns one of type %v", oneLine(is.Type), native.Name, t)
	}
	bits, err := is.Bits.Uint()
	if err != nil {
		return none, err
	}
	width := abi.BitWidth(t)
	if is.Type == "null" {
		width = 0
	}
	if bits>>width != 0 {
		return none, fmt.Errorf("the interpreter returned %#x, which is not a valid %s", bits, is.Type)
	}
	return interp.FromUint(t, bits), nil
}

// namesOf returns the protocol's type names for values that compiled code returns as t.
func namesOf(t *ir.Type) []string {
	switch t.Kind {
	case ir.IntKind:
		return []string{fmt.Sprintf("i%d", t.Bits), fmt.Sprintf("u%d", t.Bits)}
	case ir.PointerKind:
		return []string{"ref", "null", "ptr"}
	case ir.FloatKind:
		return []string{"f32", "float"}
	case ir.DoubleKind:
		return []string{"f64", "double"}
	}
	return nil // void
}

// storedPages yields the pages of the overlay, with all bits known.
func storedPages(o *protocol.Overlay) iter.Seq[interp.Touched] {
	known := make([]byte, protocol.PageSize)
	return func(yield func(interp.Touched) bool) {
		for p := range o.Stored() {
			if !yield(interp.Touched{Addr: p.Addr, Data: p.Data, Undefined: known, Stored: p.Bits}) {
				return
			}
		}
	}
}
