package interp

import (
	"strings"

	"github.com/ianlancetaylor/demangle"

	"example.com/reframe/internal/machine"
)

func setTerminate(c cxxCall) uint64 {
	f := c.addr(0)
	if c.err != nil {
		return 0
	}
	old := c.in.run.cxx.handler
	c.in.run.cxx.handler = f
	return uint64(old)
}

// terminate implements std::terminate: it runs the program's handler, or prints libstdc++'s message, and ends the program.
func (c cxxCall) terminate() {
	if c.err != nil {
		return
	}
	cxx := &c.in.run.cxx
	x := cxx.current()
	what := "std::terminate was called"
	if x.of != nil {
		what = "an exception of type '" + c.in.typeName(x.of.typ) + "' ended the program"
	}
	if cxx.handler != 0 {
		// The program is aborted if its handler returns or throws.
		if c.guarded(cxx.handler); c.err != nil {
			return
		}
		c.fail(troublef(KindAbort, "%s", what))
		return
	}
	switch {
	case cxx.ending:
		c.printError([]byte("terminate called recursively\n"))
	case x.of == nil:
		c.printError([]byte("terminate called without an active exception\n"))
	default:
		cxx.ending = true
		c.printError([]byte("terminate called after throwing an instance of '" + c.in.typeName(x.of.typ) + "'\n"))
		if text, ok := c.what(x); ok {
			c.printError([]byte("  what():  " + text + "\n"))
		}
	}
	c.fail(troublef(KindAbort, "%s", what))
}

// what returns the result of std::exception::what for x, and false if x does not derive from std::exception. An error fails the call.
func (c cxxCall) what(x *exception) (string, bool) {
	base, err := c.in.runtimeAddr("_ZTISt9exception")
	if err != nil {
		return "", false
	}
	object, ok, err := c.in.catches(base, x)
	if err != nil || !ok {
		c.fail(err)
		return "", false
	}
	table := c.word(object)
	f := c.word(table + machine.Addr(2*c.in.layout.PointerBytes(0)))
	v, left := c.guarded(f, object)
	text, ok := v.Uint()
	if left || c.err != nil || !ok {
		return "", false
	}
	s := c.textAt(machine.Addr(text), ^uint64(0))
	return string(s), c.err == nil
}

// typeName returns the demangled name of a type.
func (in *Interp) typeName(a machine.Addr) string {
	t, err := in.typeAt(a)
	if err != nil {
		return "unknown"
	}
	name := strings.TrimPrefix(t.name, "*")
	if s, err := demangle.ToString("_ZTI"+name, demangle.MaxLength(10)); err == nil {
		return strings.TrimPrefix(s, "typeinfo for ")
	}
	return name
}
