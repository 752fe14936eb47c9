package commit

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/isa/amd64"
)

// continuation describes the state in which a thread continues when the outermost frame of a stack returns.
type continuation struct {
	caller    *deopt.Frame
	native    *ir.Func // the function whose native code returns
	left      []int
	dead      []machine.Range // stack memory of the frames that the interpreter ran
	arch      *machine.Arch
	results   *abi.ResultRegisters
	maps      []machine.Mapping
	registers map[machine.DWARFReg][]byte
}

// continuationOf returns the continuation for frames of a thread, innermost first, or an error if it is not certain.
func continuationOf(t *deopt.Thread, stack []*deopt.Frame) (*continuation, error) {
	outer := stack[len(stack)-1]
	arch := outer.View().Target().Arch()
	results := abi.ResultsOf[arch]
	if results == nil {
		return nil, fmt.Errorf("returning from a frame to its caller is not supported on %s", arch.Title)
	}
	frames := t.Frames
	at := slices.Index(frames, outer)
	if at < 0 || at+1 >= len(frames) {
		return nil, fmt.Errorf("the caller of %s is unknown: %s", outer.Title(), t.End.Reason)
	}
	c := &continuation{caller: frames[at+1], arch: arch, results: results, registers: map[machine.DWARFReg][]byte{}}
	for _, f := range frames[:at+1] {
		c.left = append(c.left, f.Index)
	}
	if err := certain(frames[:at+2]); err != nil {
		return nil, err
	}
	var err error
	if c.native, err = returningOf(outer); err != nil {
		return nil, err
	}
	if err := returnsTo(c.caller, outer); err != nil {
		return nil, err
	}
	for _, reg := range arch.Registers() { // callee-saved registers, in part or as a whole
		kept := arch.Kept(reg)
		if kept == 0 || reg == arch.SP || reg == arch.PC {
			continue
		}
		b, err := c.caller.Physical().Registers.Bytes(reg)
		if err != nil {
			return nil, fmt.Errorf("a register of %s, where the thread would continue, is unknown: %w", c.caller.Title(), err)
		}
		c.registers[reg] = b[:min(kept, len(b))]
	}
	c.set(arch.SP, uint64(outer.Physical().CFA))
	c.set(arch.Link, uint64(c.caller.Physical().PC)) // after a return the link register still holds the return address
	c.set(arch.PC, uint64(c.caller.Physical().PC))
	for _, f := range stack {
		sp, err := f.Physical().Registers.Addr(arch.SP)
		if err != nil {
			return nil, fmt.Errorf("the stack pointer of %s: %w", f.Title(), err)
		}
		if f.Index == 0 {
			sp -= abi.RedZone
		}
		c.dead = append(c.dead, machine.Range{Start: sp, End: f.Physical().CFA})
	}
	return c, nil
}

func (c *continuation) set(reg machine.DWARFReg, v uint64) {
	c.registers[reg] = binary.LittleEndian.AppendUint64(nil, v)
}

// certain returns an error unless the last of the frames can certainly be continued. The frames are those of a thread, from the innermost one on.
func certain(frames []*deopt.Frame) error {
	var below machine.Addr
	for i, f := range frames {
		p := f.Physical()
		switch {
		case p.Signal:
			return fmt.Errorf("%s is a signal frame, and its handler has not returned", f.Title())
		case i > 0 && p.Guess != "":
			return fmt.Errorf("%s may not be the caller of frame #%d: %s", f.Title(), f.Index-1, p.Guess)
		case i > 0 && p.Rule != unwind.FromCFI:
			return fmt.Errorf("the caller of %s was found by its %s, not by CFI, so the values of its registers are not certain", frames[i-1].Title(), p.Rule)
		case i == len(frames)-1: // its own CFA is not needed
			return nil
		case p.NoCFA != "":
			return fmt.Errorf("the start of %s is unknown: %s", f.Title(), p.NoCFA)
		}
		sp, err := p.Registers.Addr(p.Registers.Arch().SP)
		if err != nil {
			return fmt.Errorf("the stack pointer of %s: %w", f.Title(), err)
		}
		if sp < below || p.CFA <= sp {
			return fmt.Errorf("%s is not above the frames that it called, on the same stack", f.Title())
		}
		below = sp
	}
	return nil
}

// returnsTo returns an error if callee's native code would not return to the frame. If a call leaves the return address in a register, only CFI gives
// the current place of that address, and the frame was found by CFI.
func returnsTo(f *deopt.Frame, callee *deopt.Frame) error {
	if arch := callee.View().Target().Arch(); arch.Link != arch.PC {
		return nil
	}
	const word = 8
	var b [word]byte
	at := callee.Physical().CFA - word
	if err := f.View().Target().ReadMemory(b[:], at); err != nil {
		return fmt.Errorf("the return address of %s cannot be read: %w", callee.Title(), err)
	}
	if got := machine.Addr(binary.LittleEndian.Uint64(b[:])); got != f.Physical().PC {
		return fmt.Errorf("the return address of %s is %v, which is not the pc of %s", callee.Title(), got, f.Title())
	}
	return nil
}

// returningOf returns the function whose native code returns from the frame, or an error if that function does not determine the state in which the
// caller continues.
func returningOf(f *deopt.Frame) (*ir.Func, error) {
	fn := f.NativeFunction()
	if fn == nil {
		return nil, fmt.Errorf("no given module defines the function of %s, so the type that its caller expects is unknown; give it with --ir", f.Title())
	}
	at, known := f.Symbols(fn)(fn.Name)
	if fn.Name != f.Function && (!known || f.Offset == nil || at != f.Physical().PC-machine.Addr(*f.Offset)) {
		return nil, fmt.Errorf("%s is inlined into %s, and the type that the caller of the latter expects is unknown", fn.Name, f.Title())
	}
	for _, p := range fn.Params {
		switch {
		case p.Attrs.SRet != nil:
			return nil, fmt.Errorf("@%s returns in memory (sret)", fn.Name)
		case p.Attrs.SwiftError:
			return nil, fmt.Errorf("@%s returns in one more register (swifterror)", fn.Name)
		}
	}
	switch abi.WhoTakesArguments(fn.CC) {
	case abi.CallerTakes:
	case abi.FlagSays:
		if !leavesArguments(f, fn) {
			return nil, fmt.Errorf("the number of stack bytes that @%s, which is fastcc, pops when it returns is unknown", fn.Name)
		}
	default:
		return nil, fmt.Errorf("@%s has the calling convention %s", fn.Name, fn.CC)
	}
	return fn, nil
}

// leavesArguments reports whether the function's code leaves its stack arguments for the caller to remove.
func leavesArguments(f *deopt.Frame, fn *ir.Func) bool {
	if f.View().Target().Arch() == machine.AMD64 {
		return returnsPlainly(f)
	}
	return abi.InRegisters(fn) // the return instruction does not remove arguments, but code before it may
}

// maxReturning bounds the code that is searched for returns, in bytes.
const maxReturning = 1 << 20

// returnsPlainly reports whether the function's code has a return, and no return removes arguments from the stack.
func returnsPlainly(f *deopt.Frame) bool {
	p := f.Physical()
	if p.FDE.Empty() || p.FDE.End-p.FDE.Start > maxReturning {
		return false
	}
	text := isa.NewWindow(f.View().Target(), isa.Of(machine.AMD64))
	found := false
	for at := p.FDE.Start; at < p.FDE.End; {
		n := text.LengthAt(at)
		if n == 0 {
			return false
		}
		if inst, known := amd64.Decode(text.From(at)); known && (inst.Op == x86asm.RET || inst.Op == x86asm.LRET) {
			if inst.Op == x86asm.LRET || inst.Args[0] != nil {
				return false
			}
			found = true
		}
		at += machine.Addr(n)
	}
	return found
}

// place returns the place at which the thread continues.
func (c *continuation) place() frame.CommittedPlace {
	f := c.caller
	return frame.CommittedPlace{Frame: f.Index, PC: f.PC, Function: f.Function, Demangled: f.Demangled, Offset: f.Offset}
}

// report lists the registers, general ones by number and then vector registers, with their current values.
func (c *continuation) report(now *machine.Registers) ([]frame.CommittedRegister, error) {
	var regs []machine.DWARFReg
	for reg := range c.registers {
		regs = append(regs, reg)
	}
	slices.Sort(regs)
	var list []frame.CommittedRegister
	for _, reg := range regs {
		old, err := now.Bytes(reg)
		if err != nil {
			return nil, err
		}
		b := c.registers[reg]
		list = append(list, frame.CommittedRegister{Name: c.arch.NameOf(reg, len(b)), Old: hexNumber(old[:min(len(old), len(b))]), New: hexNumber(b)})
	}
	return list, nil
}

// hexNumber formats a little-endian number of any width.
func hexNumber(b []byte) frame.Hex {
	b = slices.Clone(b)
	slices.Reverse(b)
	return frame.Hex(fmt.Sprintf("%#x", new(big.Int).SetBytes(b)))
}
