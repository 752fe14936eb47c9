package interp

import (
	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

// passed is the memory behind a byval argument: what a variadic callee finds in
// its place among the arguments.
type passedMemory struct {
	size  uint64
	align int
}

// passInMemory gives the callee its own copy of memory that is passed by value
// (LangRef, "Parameter Attributes": byval). An inalloca or preallocated argument
// is the memory itself, which the caller made for the call; so is sret.
func (in *Interp) passInMemory(i *ir.Instr, args []Value) error {
	for k := range args {
		if k >= len(i.Call.ArgAttrs) || i.Call.ArgAttrs[k].ByVal == nil {
			continue
		}
		t := i.Call.ArgAttrs[k].ByVal
		from, ok := args[k].Uint()
		size := in.layout.Size(t)
		if !ok || size == ir.NoSize {
			return undefined("the address of byval argument %d", k+1)
		}
		align := max(in.layout.Align(t), i.Call.ArgAttrs[k].Align)
		a, err := in.stack.alloc(size, align)
		if err != nil {
			return err
		}
		if err := in.move(a, machine.Addr(from), size); err != nil {
			return err
		}
		s := *args[k].s
		s.memory = &passedMemory{size, align}
		args[k] = in.scalar(&s, uint64(a))
	}
	return nil
}
