package interp

import (
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// Builtin runs a function that the module only declares. It returns no value for a void function, else a value of type c.Result.
type Builtin func(c *Invocation) (Value, error)

// Invocation is one call of a [Builtin].
type Invocation struct {
	Name   string       // "" where the program called an address without a known name
	At     machine.Addr // the address that the program called, 0 for a call by name
	Args   []Value
	Result *ir.Type
	in     *Interp
	ret    *shape
	site   *callSite // nil for a call from a built-in function
}

// Uint returns argument i, an integer or pointer, as an unsigned integer. It returns an error if the call has fewer arguments or a bit is undefined.
func (c *Invocation) Uint(i int) (uint64, error) {
	if i >= len(c.Args) {
		return 0, troublef(KindModule, "too few arguments in the call of @%s: got %d", c.Name, len(c.Args))
	}
	v, ok := c.Args[i].Uint()
	if !ok {
		return 0, undefined("argument %d of @%s", i+1, c.Name)
	}
	return v, nil
}

// Int is [Invocation.Uint] for a signed integer.
func (c *Invocation) Int(i int) (int64, error) {
	if _, err := c.Uint(i); err != nil {
		return 0, err
	}
	v, _ := c.Args[i].Int()
	return v, nil
}

// Addr is [Invocation.Uint] for a pointer.
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
		return 0, troublef(KindModule, "argument %d of @%s is not a float", i+1, c.Name)
	}
	return f, nil
}

// Read reads memory as the running program sees it. It returns an error for undefined bytes.
func (c *Invocation) Read(p []byte, addr machine.Addr) error {
	if err := c.in.work(uint64(len(p))); err != nil {
		return err
	}
	return c.in.view.read(p, nil, addr)
}

// Write stores bytes, with the checks of a store by the program.
func (c *Invocation) Write(addr machine.Addr, p []byte) error {
	if err := c.in.work(uint64(len(p))); err != nil {
		return err
	}
	return c.in.view.write(addr, p, nil)
}

// CString reads the string at addr, without its zero byte.
func (c *Invocation) CString(addr machine.Addr) ([]byte, error) {
	return c.in.cstring(addr, ^uint64(0))
}

// Alloc allocates memory that the program can free, as malloc does. If zero is true, Alloc clears it.
func (c *Invocation) Alloc(size uint64, zero bool) (machine.Addr, error) {
	return c.in.heap.alloc(size, 16, zero)
}

// Print writes to the program's standard output.
func (c *Invocation) Print(p []byte) error { return c.in.emit(1, p) }

// Return returns an integer or pointer as the result, reduced to the width of its type.
func (c *Invocation) Return(v uint64) (Value, error) {
	if c.ret.words == 0 {
		return Value{}, nil
	}
	if c.ret.bits == 0 || c.ret.typ.Float() {
		return Value{}, c.mistyped()
	}
	return c.in.scalar(c.ret, v), nil
}

// ReturnFloat returns a float as the result, rounded to its type.
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

// cstring reads a zero-terminated string of at most limit bytes, and returns it without the zero byte.
func (in *Interp) cstring(addr machine.Addr, limit uint64) ([]byte, error) {
	var s []byte
	step := uint64(256)
	for uint64(len(s)) < limit {
		if err := in.work(64); err != nil {
			return nil, err
		}
		a := addr + machine.Addr(len(s))
		// Read as much as possible at once. If that fails, read less, because the string may end earlier.
		step = min(2*step, 256)
		// Read at least one byte, so that the view makes the error for an address that cannot be read. Making that error is slow, so use reach to find the
		// last byte that can be read.
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
