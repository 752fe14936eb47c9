package unwind

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// fromFunction returns a step from the instructions of the function of f, read from its start. It returns nil and the reason if the start is unknown
// or the instructions do not determine a step.
func (u *codeReader) fromFunction(f *Frame) (*step, error) {
	if u.Arch == machine.ARM64 {
		return u.arm64FromFunction(f)
	}
	if u.Arch != machine.AMD64 || f.code.Functions == nil {
		return nil, nil
	}
	start, end := f.code.Functions.Function(f.lookup())
	if start == 0 {
		return nil, nil
	}
	if s := u.inPLT(f, start); s != nil {
		return s, nil
	}
	if end <= f.lookup() {
		end = start + maxFunctionBytes
	}
	rows, err := u.readFunction(f, start, end)
	if err != nil {
		return nil, frame.Errorf("%s: the function at %v: %w", FromCode, start, err)
	}
	row, err := rows.row(f.PC, f.Return && !u.isStackBase(f.PC))
	if err != nil {
		return nil, frame.Errorf("%s: the function at %v: %w", FromCode, start, err)
	}
	s := u.fromRow(f, row)
	s.switched = rows.switches(f.PC, f.Return)
	return s, nil
}

// readFunction reads the function at start, which is in the same image as f. The result is cached.
func (u *codeReader) readFunction(f *Frame, start, end machine.Addr) (*codeRows, error) {
	if rows, known := f.code.read[start]; known {
		return rows, nil
	}
	rows, err := readFunction(u.Memory, start, end)
	if err != nil {
		return nil, err
	}
	if f.code.read == nil || len(f.code.read) >= maxRead {
		f.code.read = map[machine.Addr]*codeRows{}
	}
	f.code.read[start] = rows
	return rows, nil
}

// fromRow makes a step from a row that was read from instructions. If functions follow another convention than C's, saves of C's callee-saved
// registers prove nothing: the function may load one with a result before it returns. Only its frame pointer must be restored.
func (u *codeReader) fromRow(f *Frame, row *cfi.Row) *step {
	if f.code.NoneKept {
		row.Keep(u.Arch.FP, u.Arch.Link)
	}
	return &step{row: row, rule: FromCode, partial: true}
}

// maxRead bounds the functions that are cached: a reading of some thousand instructions takes a megabyte.
const maxRead = 64

// fromReturn returns a step from the instructions between the pc of f and the returns of its function.
func (u *codeReader) fromReturn(f *Frame) (*step, error) {
	if u.Arch != machine.AMD64 {
		return nil, nil
	}
	row, certain, err := readToReturn(u.Memory, f.PC, f.Return)
	if err != nil {
		return nil, frame.Errorf("%s: %w", FromCode, err)
	}
	s := u.fromRow(f, row)
	if !certain {
		s.guess = "the code of frame #%d leads to a return by calls alone: where one of those does not return, this may not be its caller"
	}
	return s, nil
}

// Instructions describes the frame of one function at each instruction that can be reached from its start. It supports only x86-64.
type Instructions struct{ rows *codeRows }

// ReadInstructions reads the function at start, whose code ends before end, up to 64 KiB. It returns an error if start and end leave no room for
// code, or if the code contradicts itself.
func ReadInstructions(m machine.Memory, start, end machine.Addr) (*Instructions, error) {
	rows, err := readFunction(m, start, end)
	return &Instructions{rows}, err
}

// At returns the row at pc. The row gives the CFA relative to the stack pointer if that distance is known. At returns an error if no path reaches
// an instruction at pc, or if the CFA there is unknown.
func (i *Instructions) At(pc machine.Addr) (*cfi.Row, error) {
	row, err := i.rows.row(pc, false)
	if err != nil {
		return i.rows.row(pc, true) // pc may follow the last call that was reached
	}
	return row, nil
}
