package trace

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/progspace"
)

// reach is the way in which a thread has reached a place that is both a return address and the target of jumps. The thread has passed the record's
// site if the call before the place has returned to it. So the call and the jumps also have breakpoints.
type reach uint8

const (
	unknownReach reach = iota // neither the call nor a jump was seen
	byCall                    // the thread has made the call
	byJump                    // the thread was at a direct jump to the place, after which it made no call
)

// mark is a breakpoint at a call or jump that shows how a place is reached.
type mark struct {
	point *Tracepoint
	way   reach // unknownReach: a jump through a register or a table, whose target is unknown
}

// activation is an activation of a place's function, identified by its stack pointer. The stack pointer at the place is the same as at the call and
// the jumps, unless the callee pops its arguments. In that case the way to the place stays unknown.
type activation struct {
	point *Tracepoint
	sp    machine.Addr
}

// maxActivations bounds the activations that are remembered.
const maxActivations = 1 << 16

// maxJumps bounds the jumps that are watched for one place.
const maxJumps = 64

// reached holds, for each activation, the way in which it may reach its place.
type reached map[activation]reach

// at handles a thread that is stopped at a place. It records the marks of the place. It returns, for each tracepoint of the place to which jumps
// lead, the way in which the thread has reached it.
func (r reached) at(p *place, registers *machine.Registers) map[*Tracepoint]reach {
	var came map[*Tracepoint]reach
	sp, err := registers.Addr(registers.Arch().SP)
	if err != nil {
		return nil
	}
	for _, point := range p.points {
		if point.call == 0 {
			continue
		}
		if came == nil {
			came = map[*Tracepoint]reach{}
		}
		this := activation{point, sp}
		came[point] = r[this]
		delete(r, this)
	}
	for _, m := range p.marks {
		this := activation{m.point, sp}
		if m.way == unknownReach {
			delete(r, this)
			continue
		}
		if len(r) >= maxActivations {
			clear(r)
		}
		r[this] = m.way
	}
	return came
}

// watchReach selects the breakpoints that show how a place is reached, if code jumps there and a call ends there.
func (s *survey) watchReach(p *Tracepoint, owner machine.Addr, call machine.Addr) {
	if !s.watchCalls || call == 0 || p.match.Kind == "" || p.Addr != p.match.Entry.Addr && p.Moment != frame.After {
		return
	}
	if s.jumps == nil {
		s.jumps = map[machine.Addr]*progspace.Jumps{}
	}
	jumps, read := s.jumps[owner]
	if !read {
		if all, known := p.code.JumpsOf(isa.Of(s.view.Target().Arch()), p.code.SymbolAt(owner)); known {
			jumps = &all
		}
		s.jumps[owner] = jumps
	}
	if jumps == nil || len(jumps.To[p.Addr]) == 0 || len(jumps.To[p.Addr])+len(jumps.Computed) > maxJumps {
		return
	}
	if r, ok := s.view.Target().Mapping(p.Addr); ok && r.Share { // breakpoints in shared memory need debug registers, which are few
		return
	}
	if f := s.view.FrameAt(p.code, p.Addr, p.match); f.Reached(p.match) == "" {
		return
	}
	p.call, p.jumps, p.computed = call, jumps.To[p.Addr], jumps.Computed
}

// mayPassSite reports whether a thread that has jumped to the place may have passed the record's site. That is possible if the block of the site has
// no code before the site.
func (p *Tracepoint) mayPassSite() bool {
	if p.Moment == frame.After { // the site is the call itself, which a jump to its return address skips
		return false
	}
	return p.match.Site == nil || sites.CallBefore(p.match.Site) == nil
}

// marks returns the breakpoints that show how the place is reached.
func (p *Tracepoint) marks() map[machine.Addr]mark {
	if p.call == 0 {
		return nil
	}
	all := map[machine.Addr]mark{}
	for _, at := range p.computed {
		all[at] = mark{p, unknownReach}
	}
	for _, at := range p.jumps {
		all[at] = mark{p, byJump}
	}
	all[p.call] = mark{p, byCall}
	return all
}
