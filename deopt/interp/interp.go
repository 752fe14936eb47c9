package interp

import (
	"context"
	"encoding/binary"
	"io"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// Options bind a module to a target and bound a run. The zero value runs a module without a target.
type Options struct {
	// Memory is the target's memory, nil without a target. The interpreter reads it on first access and never writes it.
	Memory machine.Memory
	// Arch is the target's architecture. The default is machine.AMD64, or machine.I386 for a module whose pointers have 4 bytes.
	Arch *machine.Arch
	// Floats holds the thread's floating-point control registers, nil if they are unknown. If they are unknown, results are rounded to nearest, and the
	// function's attribute denormal-fp-math determines whether subnormal numbers are flushed.
	Floats *machine.FloatControl
	// Modules lists the other modules of the program, which may define names that the main module declares. All modules must have the same data layout.
	Modules []*ir.Module
	// Symbol returns the address in the target of a module's global or function of that name. It must return false for a thread-local variable.
	Symbol func(m *ir.Module, name string) (machine.Addr, bool)
	// SymbolAt returns the name of the function that starts at an address of the target. A call through a pointer uses the name to find the function in
	// the modules.
	SymbolAt func(addr machine.Addr) (string, bool)
	// Funcs holds functions that the module only declares, by name. They take precedence over the built-in C library functions.
	Funcs map[string]Builtin
	// Native runs functions that exist only as native code: those that the module only declares and that are not built in or have the [Effect]
	// [EffectState] or [EffectOutside], and code at an address without a name. Functions that do not return to the place after their call (setjmp,
	// exceptions) stay built in. If Native is nil, a call of a function that is not built in ends the run.
	Native Builtin
	// Hint is advice in the error of a run that ends at a call of native code; "" for the default advice.
	Hint string
	// Stdin is the program's standard input; nil means empty.
	Stdin io.Reader
	// Stdout and Stderr receive the output of the program. If nil, [Result].Output and [Result].Errors collect it.
	Stdout, Stderr io.Writer
	// MaxSteps bounds the number of instructions; 0 means 1e9. Bulk work, such as memset, counts one step for each 64 bytes.
	MaxSteps uint64
	// MaxMemory bounds the sum of the program's own memory, the pages copied from the target and the output, in bytes; 0 means 1 GiB. The
	// interpreter itself needs up to about twice as much, because it tracks undefined bits.
	MaxMemory uint64
	// MaxDepth bounds the depth of calls; 0 means 50000.
	MaxDepth int
	// Strict ends a run at an access that is less aligned than its instruction states. LLVM's semantics leave such an access undefined, but most
	// processors perform it.
	Strict bool
	// Shift moves the interpreter's own memory and the addresses of its functions up by this many bytes, a multiple of 16 below 2^40. Runs with
	// different shifts show whether results depend on those addresses. For 4-byte pointers, Shift is taken modulo 2^24.
	Shift uint64
	// Trace is called after every instruction. It makes runs slower.
	Trace func(Traced)
}

func (o *Options) setDefaults() {
	if o.MaxSteps == 0 {
		o.MaxSteps = 1e9
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = 1 << 30
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = 50000
	}
}

// setArch sets Arch if it is nil. It returns an error if the module cannot run on the architecture.
func (o *Options) setArch(m *ir.Module, dl *ir.DataLayout) error {
	n := dl.PointerBytes(0)
	if n != 4 && n != 8 {
		return unsupported("pointers must have 4 or 8 bytes", "a module with pointers of %d bytes", n)
	}
	if o.Arch == nil {
		o.Arch = map[int]*machine.Arch{4: machine.I386, 8: machine.AMD64}[n]
	}
	switch {
	case n != o.Arch.Pointer:
		return troublef(KindModule, "%s has pointers of %d bytes, but %s has pointers of %d: the module does not belong to this program",
			m.Name, n, o.Arch.Title, o.Arch.Pointer)
	case n == 4 && m.Triple != "" && !ir.I386(m.Triple):
		return unsupported("x86 is the only supported 32-bit architecture", "a module for %s", m.Triple)
	case n == 4 && o.Memory != nil:
		return unsupported("run the module from its start", "the memory of a target with pointers of 4 bytes")
	}
	return nil
}

// maxNarrowShift is the modulus by which [Options].Shift is reduced for pointers of 4 bytes.
const maxNarrowShift = 1 << 24

// Point is the instruction at which a run starts: instruction Index of Block has not run. At index 0, the values of the block's phis are inputs.
type Point struct {
	Block *ir.Block
	Index int
}

// Result holds the results of a run.
type Result struct {
	Type     *ir.Type // type of the function's result
	Value    Value    // none if the type is void, or if the program called exit
	Steps    uint64   // instructions executed, phis and terminators included
	Output   string   // what the program wrote to standard output, "" if [Options].Stdout received it
	Errors   string   // what it wrote to standard error, "" if [Options].Stderr received it
	Writes   int      // number of stores to the target's addresses, which stay in the view
	ExitCode *int     // the argument of exit; nil if the program did not call it
	Called   []Called // functions that no module defines, in the order of their first calls
}

// Interp runs functions of a program's modules over one view of one target. Runs share the view: each sees the stores of earlier runs. An Interp is
// not safe for concurrent use.
type Interp struct {
	mods    []*ir.Module // the main one first
	runtime *ir.Module   // the interpreter's part of libstdc++, nil before its first use
	opt     Options
	layout  *ir.DataLayout
	shapes  *shapes
	names   binding
	code    map[*ir.Func]*function

	view    view
	heap    heap
	stack   stack
	unknown unknown
	clib    clib

	environment environment
	usesFloats  bool // a decoded instruction uses floating point

	run     run
	frozen  bool // a freeze chose a value for undefined bits
	frames  frames
	scratch []word // holds a block's phis while they are read
}

// New makes an interpreter for m. It reads nothing from the target and decodes no function; a run does both on demand. It returns an error if the
// module's pointers are not as wide as the architecture's.
func New(m *ir.Module, o Options) (*Interp, error) {
	o.setDefaults()
	dl := m.Layout
	if dl == nil {
		var err error
		if dl, err = ir.ParseDataLayout(""); err != nil {
			return nil, err
		}
	}
	if err := o.setArch(m, dl); err != nil {
		return nil, located(err)
	}
	if dl.BigEndian != (o.Arch.Order == binary.ByteOrder(binary.BigEndian)) {
		return nil, located(troublef(KindModule, "the module's byte order is not that of %s", o.Arch.Title))
	}
	for _, other := range o.Modules {
		if !other.Layout.Equal(m.Layout) {
			return nil, located(troublef(KindModule, "the data layout of %s is not that of %s", other.Name, m.Name))
		}
	}
	in := &Interp{mods: append([]*ir.Module{m}, o.Modules...), opt: o, layout: dl, shapes: newShapes(dl), code: map[*ir.Func]*function{}}
	in.environment = environmentOf(o.Arch, o.Floats)
	own, shift := &wideRanges, o.Shift
	if dl.PointerBytes(0) == 4 {
		own, shift = &narrowRanges, o.Shift%maxNarrowShift
	}
	in.view = view{target: o.Memory, ranges: own, pages: map[uint64]*page{}, limit: o.MaxMemory, why: in.explain}
	in.heap = heap{area: area{&in.view, own.heap, own.stack}, sizes: map[machine.Addr]uint64{}, work: in.work}
	in.stack = stack{area: area{&in.view, own.stack, own.globals}}
	in.unknown.next, in.unknown.end = own.unknown, own.text
	in.names = newBinding(in)
	for _, next := range [...]*machine.Addr{&in.heap.next, &in.stack.next, &in.unknown.next, &in.names.globals.next, &in.names.fixed.next, &in.names.text} {
		*next += machine.Addr(shift)
	}
	in.heap.whole = in.heap.area
	return in, nil
}

// Call runs f from its start with one argument for each parameter, and more for a variadic function. A run that cannot finish returns a [*RunError]
// and a Result with the counts and the output so far.
func (in *Interp) Call(ctx context.Context, f *ir.Func, args []Value) (*Result, error) {
	x, err := in.StartCall(f, args)
	if err != nil {
		return nil, err
	}
	return x.complete(ctx)
}

// Resume resumes at p, in the middle of a function, with the values that are live there. Their keys are the *ir.Param and *ir.Instr of p's function.
// Resume ignores values that are not live.
//
// A phi of the block is an input if p.Index is 0. After a call, its result is an input under the call's *ir.Instr. After a statepoint, the value of
// its gc.result is an input, under the statepoint or the gc.result. A gc.relocate has the value of its operand in the gc-live bundle, because
// nothing moves here.
//
// If a live value is missing, Resume runs nothing and returns a [*MissingError]. A run that cannot finish returns a [*RunError] and a Result, as in
// Call.
func (in *Interp) Resume(ctx context.Context, p Point, values map[ir.Value]Value) (*Result, error) {
	return in.ResumeStack(ctx, []Activation{{Point: p, Values: values}})
}

// ResumeStack resumes a whole stack of activations, innermost first: the result of each is the result of the next one's Call. The Result is that of
// the outermost activation. Errors are as in [Interp.Resume]. If a live value is missing in any activation, nothing runs.
func (in *Interp) ResumeStack(ctx context.Context, stack []Activation) (*Result, error) {
	x, err := in.StartStack(stack)
	if err != nil {
		return nil, err
	}
	return x.complete(ctx)
}
