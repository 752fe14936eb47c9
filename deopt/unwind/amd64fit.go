package unwind

import (
	"math"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// fit rates how well a call, whose return address is on the stack, fits a frame that it may have called. A return address stays on the stack after
// its callee has returned. If the call names another function than the frame's, the return address is left over from an earlier call.
type fit uint8

const (
	// All paths through the function that the call names were read, and none leads to the frame.
	fitsNot fit = iota
	// The call names a function that was not read completely, or that leaves by a jump with an unknown target.
	fitsPerhaps
	// The call goes through a register or memory, or its target cannot be determined.
	fitsAny
	// The pc of the frame is after the start of the function that the call names. That function may reach the pc by a jump with an unknown target.
	fitsAround
	// The call names the function of the frame, or one that jumps to that function.
	fitsWell
)

// Limits of the search from one call.
const (
	maxJumps     = 8    // functions, parts of functions, and stubs
	maxPartInstr = 4096 // instructions per part
)

// fits rates how well the call that ends at pc fits f, and returns the function that it names, or 0. It supports only x86-64.
func (u *codeReader) fits(pc machine.Addr, f *Frame) (how fit, target machine.Addr) {
	if u.Arch != machine.AMD64 {
		return fitsAny, 0
	}
	if target = u.directTarget(pc); target == 0 {
		return fitsAny, 0
	}
	var begin machine.Addr
	if f.code.Functions != nil {
		begin, _ = f.code.Functions.Function(f.lookup())
	}
	at := f.place()
	queue := []machine.Addr{target}
	seen := map[machine.Addr]bool{target: true}
	whole, around := true, false
	for n := 0; n < len(queue); n++ {
		start := queue[n]
		if n == maxJumps {
			whole = false
			break
		}
		if start == begin {
			return fitsWell, target
		}
		next := []machine.Addr{u.Stub(start)}
		if next[0] == 0 {
			part := u.part(start, n > 0)
			has := part.has(at)
			if has && part.sure {
				return fitsWell, target
			}
			around = around || has || n == 0 && !part.whole && begin == 0 && start <= at.pc && at.pc-start < maxFunctionBytes
			whole = whole && part.whole
			next = part.leads
		}
		for _, to := range next {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	switch {
	case around:
		return fitsAround, target
	case whole:
		return fitsNot, target
	}
	return fitsPerhaps, target
}

// part is the code that is reached from one address.
type part struct {
	r       *reading
	reached func(number int) bool
	whole   bool // all code that the part leads to was read, or is listed in leads
	// sure means that all of the code belongs to one function. That is unknown if a call may not return: the bytes after the call may belong to
	// another function. The reader finds such calls only in a function with returns.
	sure  bool
	leads []machine.Addr
}

// part reads code from an address. In a function it follows only code after calls that return. If another is set, the code starts in the middle of a
// frame, and the code after every call is followed.
func (u *codeReader) part(start machine.Addr, another bool) part {
	code := u.Finder.Code(start)
	p := code.parts[start]
	if p.r != nil {
		return p
	}
	p = u.readPart(code, start, another)
	if code.parts == nil || len(code.parts) >= maxRead {
		code.parts = map[machine.Addr]part{}
	}
	code.parts[start] = p
	return p
}

func (u *codeReader) readPart(code *Code, start machine.Addr, another bool) part {
	f := &Frame{code: code}
	if rows, err := u.readFunction(f, start, start+maxFunctionBytes); err == nil && !another {
		reached := func(n int) bool { return rows.r.blocks[rows.r.in[n]].before.reached }
		returns, sound := rows.r.goesBack()
		if !returns || !sound {
			reached = everyInstruction
		}
		p := partOf(rows.r, reached)
		p.sure, p.whole = returns && sound, p.whole && sound
		return p
	}
	r := newReading(u.Memory, 0, math.MaxUint64, maxPartInstr)
	for from := []machine.Addr{start}; len(from) > 0; {
		from = r.follow(from...)
	}
	r.memory, r.text = nil, nil
	p := partOf(r, everyInstruction)
	p.sure = another
	return p
}

func everyInstruction(int) bool { return true }

// goesBack reports whether a return was reached, and whether all returns lead to the caller: no return uses an address that the function itself
// pushed.
func (r *reading) goesBack() (returns, sound bool) {
	for n := range r.instrs {
		i := &r.instrs[n]
		if i.op != opReturn || !r.blocks[r.in[n]].before.reached {
			continue
		}
		m, err := r.before(i.at)
		top := m.regs[machine.AMD64.SP]
		if err != nil || top != initially(machine.AMD64.SP) || slices.ContainsFunc(m.slots, func(s slot) bool { return s.overlaps(top, int32(machine.AMD64.Pointer)) }) {
			return true, false
		}
		returns = true
	}
	return returns, true
}

// partOf converts a reading to a part.
func partOf(r *reading, reached func(number int) bool) part {
	p := part{r: r, reached: reached, whole: len(r.instrs) > 0 && len(r.instrs) < r.limit}
	lead := func(to machine.Addr) {
		if _, read := r.number[to]; read {
			return
		}
		p.whole = p.whole && !r.inside(to)
		p.leads = append(p.leads, to)
	}
	for n := range r.instrs {
		if !reached(n) {
			continue
		}
		i := &r.instrs[n]
		switch {
		case i.op == opJump || i.op == opBranch:
			lead(i.to)
		case i.away:
			p.whole = false
		}
		if !i.ends() && !i.mayEnd() {
			lead(i.next())
		}
	}
	return p
}

// has reports whether the part contains a place: an instruction, or the end of a call.
func (p *part) has(at place) bool {
	if !at.returned {
		number, read := p.r.number[at.pc]
		return read && p.reached(number)
	}
	for n := machine.Addr(1); n <= amd64.Longest; n++ {
		if number, read := p.r.number[at.pc-n]; read && p.r.instrs[number].calls() && p.r.instrs[number].next() == at.pc && p.reached(number) {
			return true
		}
	}
	return false
}
