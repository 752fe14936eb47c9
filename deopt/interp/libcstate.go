package interp

import (
	"bufio"

	"example.com/reframe/internal/machine"
)

// clib holds the state of the C library between calls. It lasts as long as the Interp.
type clib struct {
	program string // the program's base name
	errno   machine.Addr
	token   machine.Addr // where the next call of strtok continues
	texts   map[string]machine.Addr
	tables  map[string]machine.Addr
	handler []handler // handlers of atexit, in the order of registration
	streams [3]stream
	jumps   uint64 // numbers that setjmp has assigned

	typeKinds map[machine.Addr]typeKind // type_info kinds by vtable address
	stdin     *bufio.Reader
	shared    map[string]machine.Addr // addresses of the C library's variables, by name
}

// handler is a function to call when the program ends, with an optional argument.
type handler struct {
	f   machine.Addr
	arg Value // none for a handler of atexit
}

func (l *clib) keepText(s string, a machine.Addr) {
	if l.texts == nil {
		l.texts = map[string]machine.Addr{}
	}
	l.texts[s] = a
}

func (l *clib) keepTable(name string, a machine.Addr) {
	if l.tables == nil {
		l.tables = map[string]machine.Addr{}
	}
	l.tables[name] = a
}

// Error numbers of Linux on x86.
const (
	errBadFile   = 9
	errNoMemory  = 12
	errInvalid   = 22
	errRange     = 34
	errIllegalCh = 84 // EILSEQ: a wide character that the locale cannot encode
)

// errnoAddr returns the address of errno. With a target, errno is also in the interpreter's own memory: it is thread-local, and its address in the
// target is unknown.
func (c *ccall) errnoAddr() machine.Addr {
	if c.in.clib.errno == 0 {
		c.in.clib.errno = c.own(4)
	}
	return c.in.clib.errno
}

func (c *ccall) setErrno(n uint64) {
	c.keepsState()
	c.put(c.errnoAddr(), 4, n)
}

// libcGlobals makes the variables of the C library that a module may declare. Each has at most eight bytes, and is allocated at its first use. A
// function returns the initial value.
var libcGlobals = map[string]func(in *Interp) (uint64, error){
	"stdin":  func(in *Interp) (uint64, error) { return in.streamAddr(0) },
	"stdout": func(in *Interp) (uint64, error) { return in.streamAddr(1) },
	"stderr": func(in *Interp) (uint64, error) { return in.streamAddr(2) },
	// The environment is empty: environ points to an empty array.
	"environ":   func(in *Interp) (uint64, error) { a, err := in.names.globals.take(8, 8, true); return uint64(a), err },
	"__environ": func(in *Interp) (uint64, error) { a, err := in.names.globals.take(8, 8, true); return uint64(a), err },
	// A char that is 1 while the process has a single thread; std::shared_ptr reads it. Set all bytes of the word, so that the byte order does not
	// matter.
	"__libc_single_threaded": func(*Interp) (uint64, error) { return 0x0101010101010101, nil },
}

// libcGlobal returns the address of a variable of the C library. It is the same address for every module.
func (in *Interp) libcGlobal(name string) (machine.Addr, bool, error) {
	f := libcGlobals[name]
	if f == nil {
		return 0, false, nil
	}
	if a, ok := in.clib.shared[name]; ok {
		return a, true, nil
	}
	v, err := f(in)
	if err != nil {
		return 0, true, err
	}
	a, err := in.names.globals.take(8, 8, true)
	if err != nil {
		return 0, true, err
	}
	if in.clib.shared == nil {
		in.clib.shared = map[string]machine.Addr{}
	}
	in.clib.shared[name] = a
	var p [8]byte
	in.opt.Arch.Order.PutUint64(p[:], v)
	return a, true, in.view.write(a, p[:], nil)
}
