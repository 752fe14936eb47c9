package unwind

import (
	"example.com/reframe/internal/machine"
)

// calledAlong reports whether a call led to the frame, and not the jump from the patched place: a word between now and end is the return address of
// that call. The code at the call's target must lead to f, and must move the stack pointer by the distance from the word to f's stack pointer. A call
// in the patched place itself does not count.
func (d *patchedFrame) calledAlong(now, end machine.Addr) bool {
	if end < now || end-now > scanned {
		return false
	}
	word := machine.Addr(d.Arch.Pointer)
	for slot := now; slot < end; slot += word {
		pc, err := machine.ReadAddr(d.memory, d.Arch, slot)
		if err != nil || pc == 0 || !d.Executable(pc-1) || pc > d.place.At && pc <= d.place.End {
			continue
		}
		if called, err := d.callEndsAt(pc); err != nil || !called {
			continue
		}
		to := d.target(pc)
		for n := 0; n <= maxStubs && to != 0; n++ {
			if d.leadsFrom(to, d.f, slot-now) {
				return true
			}
			to = d.Stub(to)
		}
	}
	return false
}

// leadsFrom reports whether the code at start makes the call that returns to the pc of f, and has lowered the stack pointer by bytes at that call.
func (u *codeReader) leadsFrom(start machine.Addr, f *Frame, bytes machine.Addr) bool {
	r := u.entry(start)
	if r == nil {
		return false
	}
	for n := range r.instrs {
		i := &r.instrs[n]
		if i.next() != f.PC || !i.calls() {
			continue
		}
		m, err := r.before(i.at)
		if err != nil {
			continue
		}
		if below, ok := initially(u.Arch.SP).from(m.regs[u.Arch.SP]); ok && below == int64(bytes) {
			return true
		}
	}
	return false
}

// maxEntries bounds the code that one walk reads for [codeReader.leadsFrom].
const maxEntries = 64

// entry returns a reading of the code that a call of start runs. The result is cached; it is nil if the code cannot be read.
func (u *codeReader) entry(start machine.Addr) *reading {
	if r, known := u.entries[start]; known {
		return r
	}
	if len(u.entries) >= maxEntries {
		return nil
	}
	if u.entries == nil {
		u.entries = map[machine.Addr]*reading{}
	}
	r := u.departing(start, machine.Range{}, machine.Range{})
	for queue := []machine.Addr{start}; len(queue) > 0; {
		queue = r.follow(queue...)
	}
	r.divide()
	begin := atStart()
	begin.forgot = true
	if len(r.instrs) == 0 || r.computeStates(begin) != nil {
		r = nil
	}
	u.entries[start] = r
	return r
}

// callRefuted reports whether the stack contradicts a call of the code that f is in. It assumes that the word on top of the stack is the return
// address of such a call. It reports true if the CFI of the calling function then places that function's return address at a word that is no code
// address.
func (w *walk) callRefuted(f *Frame) bool {
	if w.looking {
		return false
	}
	look := w.copied()
	look.frames = append(look.frames, *f)
	c, end := look.step(&look.frames[len(look.frames)-1])
	if end != nil || c.guess != "" {
		return false
	}
	at := look.enter(c)
	s := look.way(at).cfi
	if s == nil || at.Overwritten != nil || at.jumped {
		return false
	}
	cfa, err := look.cfa(at.Registers, s.row.CFA)
	if err != nil {
		return false
	}
	at.CFA = cfa
	pc, err := look.returnAddress(at, s.row)
	return err == nil && !w.Executable(pc-1)
}
