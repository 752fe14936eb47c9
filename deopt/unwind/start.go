package unwind

import "reframe/deopt/machine"

// Bounds of the code that a process begins with, up to its first call: it hands over what lies on
// the stack.
const (
	startBytes  = 256
	startInstrs = 32
)

// begins says whether f is at the first call of the code that its process began with. Nobody
// called that: the kernel jumped to it, and what lies at its stack pointer is how many arguments
// the program has.
func (w *walk) begins(f *Frame) bool {
	start := f.code.Start
	if w.Arch != machine.AMD64 || start == 0 || !f.Return || f.PC <= start || f.PC-start > startBytes {
		return false
	}
	r := newReading(w.Memory, start, start+startBytes, startInstrs)
	at := start
	for range startInstrs {
		i, ok := r.decode(at)
		if !ok || i.ends() || i.op == opBranch {
			return false
		}
		if at = i.next(); i.mayEnd() {
			return at == f.PC
		}
	}
	return false
}
