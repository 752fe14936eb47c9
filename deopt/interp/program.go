package interp

import (
	"context"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// Main runs the module as a program: its constructors, then @main, then the handlers of atexit. @main receives argc, argv and an empty environment,
// or as many of these as it declares. args[0] is the program's name.
func (in *Interp) Main(ctx context.Context, args []string) (*Result, error) {
	x, err := in.StartMain(args)
	if err != nil {
		return nil, err
	}
	return x.complete(ctx)
}

// StartMain is [Interp.Main], but stops before the first instruction: see [Interp.StartProgram].
func (in *Interp) StartMain(args []string) (*Execution, error) {
	f := in.mods[0].Func("main")
	if f == nil || f.Declared() {
		return nil, located(troublef(KindArgument, "the module defines no @main"))
	}
	params := f.Sig.Fields
	if len(params) > 3 || len(params) > 0 && params[0].Kind != ir.IntKind {
		return nil, located(troublef(KindArgument, "@main of type %v is not a C main function", f.Sig))
	}
	argv, err := in.pointers(args)
	if err != nil {
		return nil, located(err)
	}
	envp, err := in.pointers(nil)
	if err != nil {
		return nil, located(err)
	}
	values := []Value{}
	for k, t := range params {
		v := []uint64{uint64(len(args)), uint64(argv), uint64(envp)}[k]
		s, err := in.shapes.of(t)
		if err != nil {
			return nil, located(err)
		}
		if s.bits == 0 {
			return nil, located(troublef(KindArgument, "@main of type %v is not a C main function", f.Sig))
		}
		values = append(values, in.scalar(s, v))
	}
	if len(args) > 0 {
		in.clib.program = args[0][strings.LastIndexByte(args[0], '/')+1:]
	}
	return in.StartProgram(f, values)
}

// pointers stores strings and a null-terminated array of pointers to them in memory, and returns the address of the array.
func (in *Interp) pointers(list []string) (machine.Addr, error) {
	size := uint64(in.layout.PointerBytes(0))
	array, err := in.heap.alloc(size*uint64(len(list)+1), 16, true)
	if err != nil {
		return 0, err
	}
	for k, text := range list {
		a, err := in.heap.alloc(uint64(len(text))+1, 1, true)
		if err != nil {
			return 0, err
		}
		if err := in.view.write(a, []byte(text), nil); err != nil {
			return 0, err
		}
		p := make([]byte, size)
		in.opt.Arch.PutUint(p, uint64(a))
		if err := in.view.write(array+machine.Addr(uint64(k)*size), p, nil); err != nil {
			return 0, err
		}
	}
	return array, nil
}
