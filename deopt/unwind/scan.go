package unwind

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// scanned is the size of the stack that is searched for a return address, and scanChunk the size of one read, both in bytes.
const (
	scanned   = 32 << 10
	scanChunk = 1 << 10
	// maxTried bounds the words that point into code, because the check of each word reads that code. A stack that was not overwritten has few
	// such words.
	maxTried = 1024
)

// eachReturn calls f for each word on the stack from sp on that is the address after a call, until f returns false. slot is the address of the
// word. eachReturn returns an error if f has never returned false.
func (t trial) eachReturn(sp machine.Addr, f func(slot, pc machine.Addr) bool) error {
	size := t.Arch.Pointer
	start := (sp + machine.Addr(size) - 1) &^ machine.Addr(size-1)
	var chunk [scanChunk]byte
	tried := 0
	for at := start; at >= start && at < start+scanned; at += scanChunk {
		b := readable(t.memory, chunk[:], at)
		for i := 0; i+size <= len(b); i += size {
			pc := machine.Addr(t.Arch.Uint(b[i : i+size]))
			if pc == 0 || !t.Executable(pc-1) {
				continue
			}
			if tried++; tried > maxTried {
				return frame.Errorf("none of the first %d words from %v on that point into code is a return address", maxTried, sp)
			}
			if called, err := t.callEndsAt(pc); err == nil && called && !f(at+machine.Addr(i), pc) {
				return nil
			}
		}
		if len(b) < len(chunk) {
			return frame.Errorf("no word from %v on, as far as the stack can be read, is a return address", sp)
		}
	}
	return frame.Errorf("no word in the %d bytes from %v on is a return address", scanned, sp)
}

// byScan uses a word on the stack as the return address of f: the best [candidate] of the words that follow a call. The result is a guess, because
// the word may be left over from an earlier call. of is the row that CFI gives for f if only its CFA cannot be computed, or nil.
func (w *walk) byScan(f *Frame, of *cfi.Row) (c caller, end *End, err error) {
	switch {
	case w.Arch.Link != w.Arch.PC:
		return c, nil, errors.New("its stack does not show where its return address was saved") // its CFA is also unknown
	case f.code.NoneKept:
		// Go's stacks are adjacent and are moved, so they contain many stale return addresses.
		return c, nil, errors.New("the stack of such code is full of stale return addresses")
	}
	if w.scans == maxScans {
		return c, nil, fmt.Errorf("it has already found %d frames without reaching the end of the stack", maxScans)
	}
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err != nil {
		return c, nil, err
	}
	found := candidate{err: errNoCandidate}
	judged := 0
	none := w.eachReturn(sp, func(slot, _ machine.Addr) bool {
		judged++
		now := w.candidate(f, of, sp, slot)
		if now.better(&found) {
			found = now
		}
		return !(found.worth == continuesOn && found.fit == fitsWell && !found.doubtful) && judged < maxJudged
	})
	switch {
	case judged == 0:
		return c, nil, none
	case found.err != nil:
		return c, nil, found.err
	case found.worth == contradicts:
		return c, nil, frame.Errorf("no word from %v on that follows a call can be unwound further", sp)
	}
	w.scans++
	f.CFA, f.NoCFA, w.floor = found.cfa, "", found.cfa
	return found.caller, found.end, nil
}

// maxScans bounds the frames of one stack that are found by a scan. After the end of a stack that a runtime made, scans would continue in unrelated
// memory.
const maxScans = 32

// maxJudged bounds the words of one stack whose callers are examined, and maxAhead the frames that are unwound from each.
const (
	maxJudged = 64
	maxAhead  = 16
)

// candidate is the caller of a frame under the assumption that one word on the stack is the return address.
type candidate struct {
	caller
	end   *End
	err   error
	cfa   machine.Addr
	worth worth
	fit   fit
	start machine.Addr // start of the function that the call names
	// doubtful means that the instructions of the frames above contradict the candidate. The candidate may still be right: the instructions after
	// a call that does not return belong to other code.
	doubtful bool
}

// better reports whether c is better than another candidate, which is nearer to the stack pointer. If unwinding continues from both, prefer the call
// that fits the frame better. If both calls name a function that starts before the pc ([fitsAround]), prefer the nearer start. Otherwise prefer the
// other candidate, unless it is doubtful and c is not.
func (c *candidate) better(other *candidate) bool {
	switch {
	case other.err == errNoCandidate:
		return true
	case c.err != nil || c.worth == contradicts:
		return false
	case c.worth != other.worth:
		return c.worth > other.worth
	}
	if c.fit != other.fit {
		return c.fit > other.fit
	}
	if c.fit == fitsAround && c.start != other.start {
		return c.start > other.start
	}
	return other.doubtful && !c.doubtful
}

// worth rates the result of unwinding from a guessed caller by CFI.
type worth int

const (
	contradicts worth = iota // a contradiction
	endsInZero               // a return address of zero; most of memory is zero
	continuesOn              // an outermost frame, code without CFI, or the limit of frames
)

var errNoCandidate = errors.New("no candidate found")

// candidate rates the word at slot as the return address of f.
func (w *walk) candidate(f *Frame, of *cfi.Row, sp, slot machine.Addr) candidate {
	size := machine.Addr(w.Arch.Pointer)
	row := &cfi.Row{}
	if of != nil {
		*row = *of
	} else {
		row.SetRule(w.Arch.Link, cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: -int64(size)})
	}
	row.Start, row.End, row.ReturnAddress = 0, ^machine.Addr(0), w.Arch.Link
	row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: w.Arch.SP, Offset: int64(slot-sp) + int64(size)}
	floor := w.floor
	defer func() { w.floor = floor }()
	c := candidate{cfa: slot + size}
	c.caller, c.end, c.err = w.prove(f, &step{row: row, rule: FromScan, partial: of == nil,
		guess: "the end of the stack of frame #%d is unknown: this is the first word on it that follows a call and can be unwound further, which an earlier call may have left there"})
	if c.err != nil || c.end != nil {
		return c
	}
	if c.fit, c.start = w.fits(c.pc, f); c.fit == fitsNot {
		c.err = errLeftThere
		return c
	}
	c.worth, c.doubtful = w.ahead(f, c.caller)
	return c
}

var errLeftThere = errors.New("the calls that left return addresses on its stack are of other functions, which do not lead to it")

// ahead unwinds from a caller of f by CFI and by instructions. doubtful means that the instructions lead to a contradiction.
func (w *walk) ahead(f *Frame, c caller) (to worth, doubtful bool) {
	look := w.lookAhead(f, w.floor)
	c.rule = FromCFI // not FromScan, with which returnsToZero would cut the walk short
	read := 0
	contradiction := func() (worth, bool) {
		if read > 0 {
			return continuesOn, true
		}
		return contradicts, false
	}
	for range maxAhead {
		to := look.enter(c)
		s, err := to.code.cfi(to.lookup())
		if err != nil {
			return continuesOn, false
		}
		// Compilers keep the stack aligned at calls (System V ABI, AMD64 supplement, §3.2.2).
		if s != nil && w.Arch == machine.AMD64 && to.Return && look.frames[to.Index-1].CFA%16 != 0 {
			return contradiction()
		}
		if s == nil {
			if read++; read > maxReadAhead {
				return continuesOn, false
			}
			if s = look.certainStep(to); s == nil {
				return continuesOn, false
			}
		}
		next, end, err := look.apply(to, s)
		switch {
		case err != nil:
			return continuesOn, false // an unavailable register or memory is no contradiction
		case end != nil && !end.Complete:
			return contradiction()
		case end != nil && s.row.Rule(s.row.ReturnAddress).Kind != cfi.RuleUndefined && read == 0:
			return endsInZero, false
		case end != nil:
			return continuesOn, s.rule == FromCode
		}
		if _, err := look.called(next.pc, s.signal); err != nil {
			return contradiction()
		}
		if how, _ := look.fits(next.pc, to); s.rule == FromCode && how == fitsNot {
			return contradiction()
		}
		c = next
	}
	return continuesOn, false
}

// maxReadAhead bounds the frames whose instructions are read for one candidate.
const maxReadAhead = 4

// certainStep returns the step from the instructions of a frame if it is certain, or nil.
func (u *codeReader) certainStep(f *Frame) *step {
	if !u.Executable(f.lookup()) {
		return nil
	}
	way := u.way(f)
	for i := range way.other {
		if s := &way.other[i]; s.rule == FromCode && s.guess == "" {
			return s
		}
	}
	return nil
}

// maxCallees bounds the functions that byCallee reads.
const maxCallees = 16

// byCallee finds the return address of f: a word on the stack that is the address after a call of a function, or of a stub that jumps to it. The
// instructions of that function, from its start to the pc of f, must place the return address at that word. This method needs no symbol, and no
// return in the function.
func (w *walk) byCallee(f *Frame) (c caller, end *End, err error) {
	if w.Arch != machine.AMD64 {
		return c, nil, errNoCallee
	}
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err != nil {
		return c, nil, err
	}
	var proof *step
	callees := 0
	_ = w.eachReturn(sp, func(slot, pc machine.Addr) bool {
		start := w.target(pc)
		for n := 0; start != 0 && proof == nil && callees < maxCallees; n++ {
			if start <= f.PC && f.PC-start < maxFunctionBytes {
				callees++
				proof = w.fromCallee(f, start, slot+machine.Addr(w.Arch.Pointer))
			}
			if n == maxStubs {
				break
			}
			start = w.Stub(start)
		}
		return proof == nil && callees < maxCallees
	})
	if proof == nil {
		return c, nil, errNoCallee
	}
	return w.prove(f, proof)
}

// fromCallee returns a step for f from the instructions of the function at start, if they give cfa as its CFA; otherwise nil.
func (t trial) fromCallee(f *Frame, start, cfa machine.Addr) *step {
	rows, err := t.readFunction(f, start, start+maxFunctionBytes)
	if err != nil {
		return nil
	}
	row, err := rows.row(f.PC, f.Return)
	if err != nil {
		return nil
	}
	if at, err := t.cfa(f.Registers, row.CFA); err != nil || at != cfa {
		return nil
	}
	return t.fromRow(f, row)
}

// errNoCallee is the most common failure and is not reported for a frame.
var errNoCallee = errors.New("no call on its stack leads to it")

// readable reads as many bytes of b as are available.
func readable(m machine.Memory, b []byte, at machine.Addr) []byte {
	for ; len(b) > 0; b = b[:len(b)/2&^7] {
		if m.ReadMemory(b, at) == nil {
			return b
		}
	}
	return nil
}
