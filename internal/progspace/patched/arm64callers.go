package patched

import (
	"encoding/binary"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// Callers lists the return addresses of the calls that lead to a function, also through thunks, in the current code of objects with records. The
// targets of calls through registers are known only in code that was written over that of records.
func (p *Finder) Callers(start machine.Addr) []machine.Addr {
	if p.Space.Target.Arch() != machine.ARM64 {
		return nil
	}
	if p.callers == nil {
		p.readCallers()
	}
	return p.callers[start]
}

// readCallers collects the calls in the code of all objects with records.
func (p *Finder) readCallers() {
	p.callers = map[machine.Addr][]machine.Addr{}
	left, calls := uint64(maxCompared), 0
	var room [comparedChunk]byte
	for _, c := range p.Space.WithRecords() {
		if c.Image == nil {
			continue
		}
		for _, s := range c.Image.Code() {
			for at := s.Loaded(); s.Contains(at) && left > comparedChunk && calls < maxReturns; at += comparedChunk {
				left -= comparedChunk
				code := room[:min(comparedChunk, s.Loaded()+machine.Addr(s.Size)-at)]
				if p.Space.Target.ReadMemory(code, at) == nil {
					calls += p.callersIn(code, at)
				}
			}
		}
	}
	for _, s := range p.arm64Sites() { // calls through a register that the written code loads
		for pc, to := range s.course.Calls {
			if !slices.Contains(p.callers[to], pc) {
				p.callers[to] = append(p.callers[to], pc)
			}
		}
	}
	thunks := map[machine.Addr]machine.Addr{}
	for to := range p.callers {
		if end := p.Unwinder.ThunkTo(to); end != to {
			thunks[to] = end
		}
	}
	for thunk, to := range thunks {
		p.callers[to] = append(p.callers[to], p.callers[thunk]...)
	}
}

// callersIn adds the direct calls in some code, and returns their number.
func (p *Finder) callersIn(code []byte, at machine.Addr) (calls int) {
	for n := 0; n+arm64.Size <= len(code); n += arm64.Size {
		w := binary.LittleEndian.Uint32(code[n:])
		if w&0xfc000000 != 0x94000000 { // bl
			continue
		}
		calls++
		from := at + machine.Addr(n)
		to := from + machine.Addr(int64(int32(w<<6)>>4))
		p.callers[to] = append(p.callers[to], from+arm64.Size)
	}
	return calls
}
