package deopt_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// blockTally counts the blocks of programs.
type blockTally struct {
	functions       int // functions of csmith with a compared block
	compared, never int // blocks that the program reached and did not reach
	behind          int // resumes after calls that had just returned
	deep            int // callers resumed in one stack with a block's frame
	unknown         int // compared bits that the interpreter left undefined
	addresses       int // addresses of locals of returned callees, which differ in the interpreter
	steps           uint64
}

func (n *blockTally) add(m blockTally) {
	n.functions, n.compared, n.never = n.functions+m.functions, n.compared+m.compared, n.never+m.never
	n.deep, n.behind = n.deep+m.deep, n.behind+m.behind
	n.unknown, n.addresses, n.steps = n.unknown+m.unknown, n.addresses+m.addresses, n.steps+m.steps
}

func (n blockTally) String() string {
	return fmt.Sprintf("%d functions, %d blocks and %d returns of calls compared, %d blocks and returns never reached; %d callers with them; %d instructions interpreted; %d bits undefined, %d addresses of dead locals",
		n.functions, n.compared, n.behind, n.never, n.deep, n.steps, n.unknown, n.addresses)
}

// expectation is a result of the interpreter from a block on, to be checked when the native code reaches the end of the same activation.
type expectation struct {
	block   string // @func_1, block %5
	fn      *ir.Func
	ret     machine.Addr // return address of the activation
	frame   machine.Addr // CFA of the activation
	result  interp.Value
	output  string
	memory  []remembered
	printed int // bytes printed by the process when it stopped at the block
}

// remembered is a range of memory after a run of the interpreter.
type remembered struct {
	addr            machine.Addr
	data, undefined []byte
}

// blockRun is one process and its pending expectations.
type blockRun struct {
	t       *testing.T
	process *livetest.Process
	session *ptrace.Session
	memory  *os.File
	options deopt.Options
	todo    map[machine.Addr]bool // records that the process has not reached
	pending []*expectation
	printed []*expectation // expectations of functions that print, checked at the end
	seen    map[*ir.Func]bool
	blockTally
}

// compare runs a program, resumes the interpreter at each block that it reaches, and compares the results with those of the native code.
func compare(t *testing.T, e frametest.Everywhere) blockTally {
	path, m := e.Build(t)
	p := livetest.Program(t, path)
	r := &blockRun{t: t, process: p, options: deopt.Options{Modules: []*ir.Module{m}}, todo: map[machine.Addr]bool{}, seen: map[*ir.Func]bool{}}
	v := frametest.Look(t, p, false, r.options)
	for _, c := range v.Space().Modules {
		if c.Records == nil {
			continue
		}
		all := c.Records.Range(0, ^machine.Addr(0))
		for k := range all.Len() {
			r.todo[all.Entry(k).Addr] = true
		}
	}
	require.NotEmpty(t, r.todo)
	r.session = frametest.Open(t, p)
	var err error
	r.memory, err = os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	require.NoError(t, err)
	defer r.memory.Close()
	p.Signal(t, syscall.SIGUSR1)
	for r.next() {
	}
	require.NoError(t, p.Wait())
	require.Empty(t, r.pending)
	for _, e := range r.printed {
		require.Equal(t, p.Output()[e.printed:], e.output, "%s", e.block)
	}
	r.never = len(r.todo)
	for f := range r.seen {
		if f.Name != "csmith_main" {
			r.functions++
		}
	}
	return r.blockTally
}

// next runs the process to the next block that it has not run yet, or to the next end of an activation. It returns false when the process has
// ended.
func (r *blockRun) next() bool {
	places := make([]machine.Addr, 0, len(r.todo)+len(r.pending))
	for at := range r.todo {
		places = append(places, at)
	}
	for _, e := range r.pending {
		places = append(places, e.ret)
	}
	slices.Sort(places)
	thread, err := r.session.RunTo(r.t.Context(), slices.Compact(places)...)
	if errors.Is(err, ptrace.ErrProcessExited) {
		return false
	}
	require.NoError(r.t, err)
	pc, err := thread.Registers.Addr(machine.AMD64.PC)
	require.NoError(r.t, err)
	var waiting []*expectation
	for _, e := range r.pending {
		if e.ret != pc {
			waiting = append(waiting, e)
			continue
		}
		r.check(e, thread.Registers)
	}
	r.pending = waiting
	if r.todo[pc] {
		delete(r.todo, pc)
		r.resume(thread.Registers)
	}
	return true
}

// resume runs the interpreter from the current stop of the process: at the stackmap of a block, or after a call that has just returned.
func (r *blockRun) resume(regs *machine.Registers) {
	target, err := r.session.Target()
	require.NoError(r.t, err)
	v, err := deopt.Frames(target, r.options)
	require.NoError(r.t, err)
	f := v.Threads[0].Frames[0]
	require.NotNil(r.t, f.Record, "%v", f.Notes)
	require.NotNil(r.t, f.Match().Site, "%v", f.Notes)
	fn := f.Match().Site.Func
	block := fmt.Sprintf("%s, block %s, record %d", fn.Ref(), f.Match().Site.Instr.Block.Ref(), f.Record.ID)
	s := frametest.StackOf(v, f)
	if _, result, _ := f.Awaited(); result != nil {
		s.Result = r.returned(result.Typ, regs)
	}
	r.expect(v, s, block)
	if f.Record.Moment == frame.Before {
		r.seen[fn] = true
		r.compared++
	} else {
		require.Equal(r.t, frame.After, f.Record.Moment, block)
		r.behind++
	}
	if fn.Name == "csmith_main" {
		return
	}
	stack, err := v.Pick(deopt.Choice{Frame: f.Index, To: deopt.AllCallers})
	require.NoError(r.t, err)
	stack.Result = s.Result
	require.Equal(r.t, "csmith_main", stack.Frames[len(stack.Frames)-1].Function, "%s: %s", block, stack.End)
	r.expect(v, stack, fmt.Sprintf("%s and %d callers", block, len(stack.Frames)-1))
	r.deep += len(stack.Frames) - 1
}

// expect runs a stack in the interpreter, and stores the result. The test checks it when the native code reaches the end of the outermost
// activation.
func (r *blockRun) expect(v *deopt.View, s *deopt.Stack, block string) {
	outer := s.Frames[len(s.Frames)-1]
	e := &expectation{fn: outer.To(), block: block, printed: len(r.process.Output()), frame: outer.Physical().CFA}
	p, err := s.Prepare(interp.Options{MaxSteps: 1e8})
	require.NoError(r.t, err, "%s", block)
	result, err := p.Machine.ResumeStack(r.t.Context(), p.Activations)
	require.NoError(r.t, err, "%s", block)
	e.result, e.output = result.Value, result.Output
	r.steps += result.Steps
	e.ret = v.Threads[0].Frames[outer.Index+1].Physical().PC
	for _, section := range []string{".data", ".bss"} {
		if s := outer.Code().Image.Section(section); s != nil {
			e.remember(r.t, p.Machine, s.Loaded(), s.Size)
		}
	}
	stack, ok := v.Target().Mapping(e.frame)
	require.True(r.t, ok)
	e.remember(r.t, p.Machine, e.frame, uint64(stack.End-e.frame))
	r.pending = append(r.pending, e)
}

func (e *expectation) remember(t *testing.T, in *interp.Interp, addr machine.Addr, size uint64) {
	m := remembered{addr, make([]byte, size), make([]byte, size)}
	require.NoError(t, in.Peek(m.data, m.undefined, addr))
	e.memory = append(e.memory, m)
}

// The registers in which a function returns (System V ABI for AMD64, 3.2.3).
var (
	returnsIntegers = []machine.DWARFReg{0, 1} // rax, rdx
	returnsFloats   = []machine.DWARFReg{17, 18}
)

// check compares the native code, which has just returned, with an expectation.
func (r *blockRun) check(e *expectation, regs *machine.Registers) {
	t := r.t
	sp, err := regs.Addr(machine.AMD64.SP)
	require.NoError(t, err)
	require.Equal(t, e.frame, sp, "%s: another activation", e.block)
	for k, part := range parts(e.fn.Sig.Elem) {
		v, ok := e.result, true
		if e.fn.Sig.Elem.Kind == ir.StructKind {
			v, ok = v.Elem(k)
		}
		require.True(t, ok)
		in := returnsIntegers
		if part.Kind == ir.FloatKind || part.Kind == ir.DoubleKind {
			in = returnsFloats
		}
		raw, err := regs.Bytes(in[k])
		require.NoError(t, err)
		native, err := interp.FromBytes(e.fn.Module.Layout, part, raw)
		require.NoError(t, err)
		want, got := uintOf(t, native), uintOf(t, v)
		if want != got && !r.local(e, want, got) {
			require.Equal(t, native.Format(), v.Format(), "%s: result", e.block)
		}
	}
	for _, m := range e.memory {
		native := make([]byte, len(m.data))
		_, err := r.memory.ReadAt(native, int64(m.addr))
		require.NoError(t, err)
		r.same(e, m, native)
	}
	if e.fn.Name == "csmith_main" {
		r.printed = append(r.printed, e)
	} else {
		require.Empty(t, e.output, "%s", e.block)
	}
}

// returned formats the value that a function has just returned, as a user would give it.
func (r *blockRun) returned(t *ir.Type, regs *machine.Registers) string {
	raw, err := regs.Bytes(returnsIntegers[0])
	require.NoError(r.t, err)
	v, err := interp.FromBytes(nil, t, raw)
	require.NoError(r.t, err)
	return v.Format()
}

// parts returns the types of the values that a function returns in registers. A type that is returned in another way is covered by comparing memory.
func parts(t *ir.Type) []*ir.Type {
	switch t.Kind {
	case ir.VoidKind:
		return nil
	case ir.StructKind:
		return t.Fields
	}
	return []*ir.Type{t}
}

func uintOf(t *testing.T, v interp.Value) uint64 {
	u, ok := v.Uint()
	require.True(t, ok, "%v", v.Type())
	return u
}

// same compares memory word by word.
func (r *blockRun) same(e *expectation, m remembered, native []byte) {
	for _, u := range m.undefined {
		r.unknown += bits.OnesCount8(u)
	}
	if bytes.Equal(m.data, native) {
		return
	}
	order := machine.AMD64.Order
	for at := 0; at < len(native); {
		word := 8
		if (uint64(m.addr)+uint64(at))%8 != 0 || at+8 > len(native) {
			word = 1
		}
		differs := false
		for k := at; k < at+word; k++ {
			differs = differs || (m.data[k]^native[k])&^m.undefined[k] != 0
		}
		if differs && !(word == 8 && r.local(e, order.Uint64(native[at:]), order.Uint64(m.data[at:]))) {
			where := "the stack of its callers"
			if sym, start, ok := r.symbol(m.addr + machine.Addr(at)); ok {
				where = fmt.Sprintf("%s+%d", sym, uint64(m.addr)+uint64(at)-uint64(start))
			}
			require.Failf(r.t, "memory differs", "%s: %v (%s): native %x, interpreter %x, undefined %x", e.block, m.addr+machine.Addr(at), where,
				native[at:at+word], m.data[at:at+word], m.undefined[at:at+word])
		}
		at += word
	}
}

// symbol names the data at an address.
func (r *blockRun) symbol(at machine.Addr) (string, machine.Addr, bool) {
	target, err := r.session.Target()
	require.NoError(r.t, err)
	m := target.ModuleAt(at)
	if m == nil || m.Image == nil {
		return "", 0, false
	}
	for _, g := range r.options.Modules[0].Globals {
		if sym, ok := m.Image.Only(g.Name); ok && sym.Addr <= at && at < sym.Addr+machine.Addr(sym.Size) {
			return g.Name, sym.Addr, true
		}
	}
	return "", 0, false
}

// local reports whether both values are the address of a local variable of a returned callee of the activation. The variable is dead, and the
// interpreter allocated it at another address.
func (r *blockRun) local(e *expectation, native, got uint64) bool {
	const own = 61 // addresses of the interpreter's own memory have a bit from here on
	const below = 1 << 20
	if got>>own == 0 || native >= uint64(e.frame) || native < uint64(e.frame)-below {
		return false
	}
	r.addresses++
	return true
}
