package interp

import (
	"maps"
	"math"
	"math/bits"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// libc holds the built-in functions: functions of the C standard (ISO C17, clause 7) and of POSIX that a module declares and calls, and that need no
// native code. If the standards leave a result open, it is the result of glibc on x86.
var libc = map[string]Builtin{}

func init() {
	for _, table := range []map[string]Builtin{
		memoryFuncs, stringFuncs, searchFuncs, tokenFuncs, checkedFuncs, ctypeFuncs, numberFuncs, sortFuncs,
		processFuncs, timeFuncs, localeFuncs, streamFuncs, inputFuncs, printfFuncs, mathLibFuncs, cxxFuncs, jumpFuncs, exceptionFuncs,
	} {
		maps.Copy(libc, table)
	}
	for name, f := range mathFuncs {
		libc[name], libc[name+"f"] = f.builtin, f.builtin
	}
}

// ccall is a call of a C function. It keeps the first error of the call, and later reads return zero. A function therefore checks err only in loops,
// and where a zero would change what it does.
type ccall struct {
	*Invocation
	err error
}

// subject is a type that implements the functions of one part of the C library over a *ccall, or *ccall itself.
type subject[C any] interface{ of(c *ccall) C }

func (*ccall) of(c *ccall) *ccall         { return c }
func (heapCall) of(c *ccall) heapCall     { return heapCall{c} }
func (stringCall) of(c *ccall) stringCall { return stringCall{c} }
func (sortCall) of(c *ccall) sortCall     { return sortCall{c} }
func (numberCall) of(c *ccall) numberCall { return numberCall{c} }
func (streamCall) of(c *ccall) streamCall { return streamCall{c} }
func (cxxCall) of(c *ccall) cxxCall       { return cxxCall{c} }

// start makes the ccall of an invocation, and wraps it in C, the type of the function's subject.
func start[C subject[C]](i *Invocation) (*ccall, C) {
	c := &ccall{Invocation: i}
	var none C
	return c, none.of(c)
}

// scalar makes a Builtin of a C function that returns an integer or a pointer. It ignores the result of a void function.
func scalar[C subject[C]](f func(c C) uint64) Builtin {
	return func(i *Invocation) (Value, error) {
		c, of := start[C](i)
		v := f(of)
		if c.err != nil {
			return Value{}, c.err
		}
		return i.Return(v)
	}
}

// procedure makes a Builtin of a C function without a result.
func procedure[C subject[C]](f func(c C)) Builtin {
	return func(i *Invocation) (Value, error) {
		c, of := start[C](i)
		f(of)
		return Value{}, c.err
	}
}

// floating makes a Builtin of a C function that returns a float or double.
func floating[C subject[C]](f func(c C) float64) Builtin {
	return func(i *Invocation) (Value, error) {
		c, of := start[C](i)
		v := f(of)
		if c.err != nil {
			return Value{}, c.err
		}
		return i.ReturnFloat(v)
	}
}

// always makes a Builtin that always returns v.
func always(v uint64) Builtin { return scalar(func(*ccall) uint64 { return v }) }

func (c *ccall) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *ccall) uint(i int) uint64 {
	v, err := c.Uint(i)
	c.fail(err)
	return v
}

func (c *ccall) int(i int) int64 {
	v, err := c.Int(i)
	c.fail(err)
	return v
}

func (c *ccall) addr(i int) machine.Addr { return machine.Addr(c.uint(i)) }

func (c *ccall) float(i int) float64 {
	v, err := c.Float(i)
	c.fail(err)
	return v
}

// text reads the string that argument i points to.
func (c *ccall) text(i int) []byte { return c.textAt(c.addr(i), ^uint64(0)) }

// textAt reads a zero-terminated string of at most limit bytes.
func (c *ccall) textAt(a machine.Addr, limit uint64) []byte {
	if c.err != nil {
		return nil
	}
	s, err := c.in.cstring(a, limit)
	c.fail(err)
	return s
}

// bytes reads n bytes, or none after an error.
func (c *ccall) bytes(a machine.Addr, n uint64) []byte {
	if c.err == nil && n > c.in.view.limit {
		c.err = troublef(KindMemory, "@%s reads %d bytes, more than the %d bytes of memory allowed", c.Name, n, c.in.view.limit)
	}
	if c.err == nil {
		c.err = c.in.view.check(a, n, false)
	}
	if c.err != nil {
		return nil
	}
	p := make([]byte, n)
	c.fail(c.Read(p, a))
	return p
}

func (c *ccall) write(a machine.Addr, p []byte) {
	if c.err == nil {
		c.err = c.Write(a, p)
	}
}

// put stores an integer of size bytes in the program's byte order.
func (c *ccall) put(a machine.Addr, size int, v uint64) {
	var p [8]byte
	c.in.opt.Arch.Order.PutUint64(p[:], v)
	if c.in.layout.BigEndian {
		c.write(a, p[8-size:])
		return
	}
	c.write(a, p[:size])
}

// get reads an integer of size bytes in the program's byte order.
func (c *ccall) get(a machine.Addr, size int) uint64 {
	p := c.bytes(a, uint64(size))
	if c.err != nil {
		return 0
	}
	return getBits(p, 0, 8*size, size, c.in.layout.BigEndian)
}

// longSize returns the size in bytes of C's long. On Linux, pointers, size_t and time_t have the same size (the psABIs of x86-64, §3.1.2, and of
// i386, §2.1.1).
func (c *ccall) longSize() int { return c.in.layout.PointerBytes(0) }

// resultBits returns the width of the call's result if the function has forms for long and long long: at least that of a long.
func (c *ccall) resultBits() int { return min(max(c.ret.bits, 8*c.longSize()), 64) }

// move copies memory with its undefined bits.
func (c *ccall) move(to, from machine.Addr, n uint64) {
	if c.err == nil {
		c.err = c.in.move(to, from, n)
	}
}

// fill sets n bytes to b.
func (c *ccall) fill(to machine.Addr, b byte, n uint64) {
	if c.err == nil && n > 0 {
		c.err = c.in.set(to, word{v: uint64(b)}, n)
	}
}

// own allocates zeroed memory for a variable of the C library. The program cannot free it.
func (c *ccall) own(size uint64) machine.Addr {
	if c.err != nil {
		return 0
	}
	a, err := c.in.names.globals.take(size, 16, true)
	c.fail(err)
	return a
}

// constantText returns the address of a string in the C library's own memory. Equal strings share one copy.
func (c *ccall) constantText(s string) uint64 {
	if a, ok := c.in.clib.texts[s]; ok || c.err != nil {
		return uint64(a)
	}
	a := c.own(uint64(len(s)) + 1)
	c.write(a, []byte(s))
	if c.err == nil {
		c.in.clib.keepText(s, a)
	}
	return uint64(a)
}

// copyText writes s and a zero byte to memory.
func (c *ccall) copyText(to machine.Addr, s []byte) uint64 {
	c.write(to, append(s, 0))
	return uint64(to)
}

// truncated writes a prefix of s and a zero byte, at most size bytes together.
func (c *ccall) truncated(to machine.Addr, s []byte, size uint64) {
	if size > 0 {
		c.copyText(to, s[:min(uint64(len(s)), size-1):len(s)])
	}
}

// foreign reports whether an address may belong to the target. It may if there is a target and the address is not in the interpreter's own memory.
func (c *ccall) foreign(a machine.Addr) bool {
	return c.in.view.target != nil && !c.in.view.ranges.own(a)
}

// failed sets errno and returns -1.
func (c *ccall) failed(errno uint64) uint64 {
	c.setErrno(errno)
	return eof
}

// product returns the product of arguments i and j, as a size. If it overflows, product returns a size that no allocation can have.
func (c *ccall) product(i, j int) uint64 {
	high, low := bits.Mul64(c.uint(i), c.uint(j))
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

func (c *ccall) pointer(v uint64) Value {
	s, err := c.in.shapes.of(ir.Ptr)
	c.fail(err)
	if c.err != nil {
		return Value{}
	}
	return c.in.scalar(s, v)
}

// printError writes to standard error.
func (c *ccall) printError(p []byte) {
	if c.err == nil {
		c.err = c.in.emit(2, p)
	}
}

// cursor reads memory byte by byte from an address on. It reads ahead, but only bytes that are accessible, because a string may end at the end of
// accessible memory.
type cursor struct {
	c    *ccall
	at   machine.Addr // address of have[0]
	have []byte
	step uint64 // size of the last read
}

func (c *ccall) from(a machine.Addr) *cursor { return &cursor{c: c, at: a, step: 64} }

// next returns a byte, 0 after an error.
func (r *cursor) next() byte {
	if len(r.have) == 0 {
		r.fetch()
	}
	if r.c.err != nil {
		return 0
	}
	b := r.have[0]
	r.have, r.at = r.have[1:], r.at+1
	return b
}

func (r *cursor) fetch() {
	if r.c.err == nil {
		r.c.err = r.c.in.work(64)
	}
	if r.c.err != nil {
		return
	}
	r.step = min(2*r.step, 64)
	// Do not read past the end of a block: explaining that error takes long.
	block := make([]byte, max(1, r.c.in.view.reach(r.at, r.step)))
	if r.c.in.view.read(block, nil, r.at) != nil {
		r.step, block = 1, block[:1]
		r.c.err = r.c.in.view.read(block, nil, r.at)
	}
	r.have = block
}
