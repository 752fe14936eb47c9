package deopt

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// A stackmap right after a call describes the frame during the call. Between the call and the stackmap, LLVM may insert instructions that copy
// the call's result or reload values from the frame. The record's address is then some bytes after the return address.

// maxMoves bounds the number of instructions between a call and its stackmap.
const maxMoves = 64

// afterCall returns the records of stackmaps after pc, the return address of a pending call, if all instructions between pc and the stackmap are
// moves.
func (m *Matcher) afterCall(pc machine.Addr) (matches []*Match, err error) {
	if m.Arch != machine.AMD64 {
		return nil, nil
	}
	at := m.Records.Range(pc, pc+maxMoves*amd64.Longest)
	first := 0
	for first < at.Len() && at.Entry(first).Function.Addr != m.Function {
		first++
	}
	if first == at.Len() || at.Entry(first).Addr == pc { // Find has already tried and rejected these
		return nil, nil
	}
	end := at.Entry(first).Addr
	moves := movesTo(m.Memory, pc, end)
	if moves == nil {
		return nil, nil
	}
	for n := first; n < min(at.Len(), first+sites.MaxNear) && at.Entry(n).Addr == end; n++ {
		e := sites.RecordEntry{Entry: at.Entry(n), Record: at.Entry(n).Record()}
		if e.Function.Addr != m.Function {
			continue
		}
		c, err := m.Sites(e)
		if err != nil {
			return nil, err
		}
		if len(c.Sites) == 0 || slices.ContainsFunc(c.Sites, func(s *ir.Site) bool { return !m.followsCall(s, pc, moves) }) {
			continue // only the module shows whether the record is a stackmap, and which call it describes
		}
		found := &Match{Entry: e, Kind: ir.StackMapSite, Candidates: c, Moment: frame.Before, Moves: moves}
		if len(c.Sites) == 1 {
			found.Site = c.Sites[0]
		}
		matches = append(matches, found)
	}
	return matches, nil
}

// followsCall reports whether a site is a stackmap that describes the frame during the call that returns to ret: the module has only computations on
// values between that call and the stackmap. The computations that the code does there must not use the call's result, which does not exist yet.
func (m *Matcher) followsCall(s *ir.Site, ret machine.Addr, moves []x86asm.Inst) bool {
	call := sites.CallBefore(s)
	if call != nil && slices.ContainsFunc(moves, amd64.IsComputed) && sites.ComputedOfCall(s, call) != nil {
		return false
	}
	return call != nil && (m.calls == nil || m.calls(s.Func, sites.CalledName(call), ret))
}

// movesTo returns the moves between two addresses. It returns nil if another instruction is between them, or if no instruction ends at to.
func movesTo(memory machine.Memory, from, to machine.Addr) (moves []x86asm.Inst) {
	for at := from; at < to; {
		inst, known, err := amd64.Read(memory, at)
		if err != nil || !known || inst.Len == 0 || len(moves) == maxMoves {
			return nil
		}
		if at += machine.Addr(inst.Len); at > to {
			return nil
		}
		if amd64.IsFiller(inst) {
			continue
		}
		if !amd64.IsMove(inst) {
			return nil
		}
		moves = append(moves, inst)
	}
	if moves == nil {
		moves = []x86asm.Inst{} // no moves, only filler: different from nil
	}
	return moves
}

// afterMoves returns the registers and memory from which to read a record that follows moves. It simulates the moves on the frame's current state:
// the callee is still running and has no result yet.
func (f *Frame) afterMoves(moves []x86asm.Inst) (*machine.Registers, machine.Memory) {
	const arguments = 4 << 10 // bytes of stack arguments above the frame
	arch := f.view.target.Arch()
	m := &amd64.Moved{Registers: running(f.physical.Registers, arch), Memory: f.view.memory}
	if sp, err := f.physical.Registers.Addr(arch.SP); err == nil && f.physical.NoCFA == "" {
		m.Stack = machine.Range{Start: sp, End: f.physical.CFA + arguments}
	}
	for _, inst := range moves {
		m.Do(inst)
	}
	return m.Registers, m
}

// running returns the registers without those that the callee may overwrite: they hold the call's result, or garbage.
func running(r *machine.Registers, arch *machine.Arch) *machine.Registers {
	out := r.Clone()
	for _, reg := range arch.Registers() {
		if !arch.Preserved(reg) && reg != arch.PC {
			out.Forget(reg, frame.Because(frame.CallRunning, arch.RegisterName(reg)))
		}
	}
	return out
}
