package interp

import (
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// Builtin runs a function that the module only declares. It returns no value
// for a void function, else one of type c.Result.
type Builtin func(c *Invocation) (Value, error)

// Invocation is one call of a [Builtin].
type Invocation struct {
	Name   string       // "" where the program called an address of which no name is known
	At     machine.Addr // the address that the program called, 0 where it called by the name
	Args   []Value
	Result *ir.Type
	in     *Interp
	ret    *shape
	site   *callSite // nil where a function of the table calls it
}

// Uint returns argument i, an integer or pointer, as an unsigned integer. It returns an error where the call has fewer arguments or a bit is
// undefined.
func (c *Invocation) Uint(i int) (uint64, error) {
	if i >= len(c.Args) {
		return 0, troublef(KindModule, "@%s is called with %d arguments, too few", c.Name, len(c.Args))
	}
	v, ok := c.Args[i].Uint()
	if !ok {
		return 0, undefined("argument %d of @%s", i+1, c.Name)
	}
	return v, nil
}

// Int is Uint for a signed integer.
func (c *Invocation) Int(i int) (int64, error) {
	if _, err := c.Uint(i); err != nil {
		return 0, err
	}
	v, _ := c.Args[i].Int()
	return v, nil
}

// Addr is Uint for a pointer.
func (c *Invocation) Addr(i int) (machine.Addr, error) {
	v, err := c.Uint(i)
	return machine.Addr(v), err
}

// Float returns argument i as a float64.
func (c *Invocation) Float(i int) (float64, error) {
	if _, err := c.Uint(i); err != nil {
		return 0, err
	}
	f, ok := c.Args[i].Float64()
	if !ok {
		return 0, troublef(KindModule, "argument %d of @%s is no float", i+1, c.Name)
	}
	return f, nil
}

// Read reads memory as the running program sees it. Undefined bytes are an error.
func (c *Invocation) Read(p []byte, addr machine.Addr) error {
	if err := c.in.work(uint64(len(p))); err != nil {
		return err
	}
	return c.in.view.read(p, nil, addr)
}

// Write stores into the memory that the running program sees.
func (c *Invocation) Write(addr machine.Addr, p []byte) error {
	if err := c.in.work(uint64(len(p))); err != nil {
		return err
	}
	return c.in.view.write(addr, p, nil)
}

// CString reads up to the next zero byte, which is left out.
func (c *Invocation) CString(addr machine.Addr) ([]byte, error) {
	return c.in.cstring(addr, ^uint64(0))
}

// Alloc allocates memory as malloc does, and clears it if zero is true.
func (c *Invocation) Alloc(size uint64, zero bool) (machine.Addr, error) {
	return c.in.heap.alloc(size, 16, zero)
}

// Print writes to the program's standard output.
func (c *Invocation) Print(p []byte) error { return c.in.emit(1, p) }

// Return makes the result from an integer or pointer, reduced to its width.
func (c *Invocation) Return(v uint64) (Value, error) {
	if c.ret.words == 0 {
		return Value{}, nil
	}
	if c.ret.bits == 0 || c.ret.typ.Float() {
		return Value{}, c.mistyped()
	}
	return c.in.scalar(c.ret, v), nil
}

// ReturnFloat makes the result from a float, rounded to its type.
func (c *Invocation) ReturnFloat(f float64) (Value, error) {
	if !narrowFloat(c.ret.typ) {
		return Value{}, c.mistyped()
	}
	return c.in.scalar(c.ret, floatBits(c.ret.typ.Kind, f)), nil
}

func (c *Invocation) mistyped() error {
	return troublef(KindModule, "@%s is declared to return %v", c.Name, c.Result)
}

func (in *Interp) scalar(s *shape, v uint64) Value {
	w := make([]word, s.words)
	w[0].v = v & maskAt(s.bits, 0)
	return Value{s, w}
}

// cstring reads a string of at most limit bytes, without its zero byte.
func (in *Interp) cstring(addr machine.Addr, limit uint64) ([]byte, error) {
	var s []byte
	step := uint64(256)
	for uint64(len(s)) < limit {
		if err := in.work(64); err != nil {
			return nil, err
		}
		a := addr + machine.Addr(len(s))
		// As much in one read as can be had; where it cannot, the end may be nearer.
		step = min(2*step, 256)
		// Read at least one byte, so that the view's error says why it refuses the address. That error takes long, so it is not used to find the end.
		chunk := make([]byte, max(1, in.view.reach(a, min(limit-uint64(len(s)), step))))
		if in.view.read(chunk, nil, a) != nil {
			step, chunk = 1, chunk[:1]
			if err := in.view.read(chunk, nil, a); err != nil {
				return nil, err
			}
		}
		for i, b := range chunk {
			if b == 0 {
				return append(s, chunk[:i]...), nil
			}
		}
		s = append(s, chunk...)
		if uint64(len(s)) > in.view.limit {
			return nil, troublef(KindMemory, "a string of more than %d bytes", in.view.limit)
		}
	}
	return s, nil
}
