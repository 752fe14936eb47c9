package interp

import (
	"errors"
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// cxx holds the state of the C++ runtime during a run (Itanium C++ ABI: Exception Handling, 2).
type cxx struct {
	thrown   map[machine.Addr]*thrown    // by the address of the object
	flying   map[machine.Addr]*exception // by the address of the header; holds every exception that was thrown and is not destroyed yet
	caught   []*exception                // innermost handler last
	uncaught int
	ids      map[machine.Addr]uint32 // selectors of types, by the address of the std::type_info
	barriers []int                   // frames that no exception may unwind past: a built-in function called them and catches everything
	handler  machine.Addr            // set by set_terminate; 0 for the default handler
	ending   bool                    // std::terminate was called
}

// thrown is the object of an exception. users counts the references to it, such as those of exception_ptr.
type thrown struct {
	object     machine.Addr
	typ        machine.Addr // its std::type_info
	destructor machine.Addr
	users      int
	whole      machine.Addr // start of the heap block that holds the object and its header
}

// exception describes one throw: of a new object, of an object that was thrown before (rethrow_exception), or of an exception from another language.
type exception struct {
	header   machine.Addr // address of the _Unwind_Exception
	object   machine.Addr
	of       *thrown // nil for an exception from another language
	adjusted machine.Addr
	handlers int          // number of active handlers; negative while it is rethrown
	whole    machine.Addr // heap block of the header, if the header is not in the object's block
}

func (x *exception) typ() machine.Addr {
	if x.of == nil {
		return 0
	}
	return x.of.typ
}

// The header before an exception object has the size of libstdc++'s. The _Unwind_Exception is at its end.
const (
	headerSize = 128
	unwindSize = 32
	// gnuClass is the first field of the _Unwind_Exception of a C++ exception: "GNUCC++\0".
	gnuClass = 0x474e5543432b2b00
)

var exceptionFuncs = map[string]Builtin{
	"__cxa_allocate_exception":     scalar(func(c cxxCall) uint64 { return uint64(c.allocateException(c.uint(0))) }),
	"__cxa_free_exception":         procedure(func(c cxxCall) { c.freeException(c.addr(0)) }),
	"__cxa_init_primary_exception": scalar(initException),
	"__cxa_throw":                  procedure(throw),
	"__cxa_rethrow":                procedure(rethrow),
	"__cxa_begin_catch":            scalar(func(c cxxCall) uint64 { return uint64(c.beginCatch(c.exception(0))) }),
	"__cxa_end_catch":              procedure(endCatch),
	"__cxa_get_exception_ptr":      scalar(exceptionPtr),
	"__cxa_current_exception_type": scalar(func(c cxxCall) uint64 { return uint64(c.in.run.cxx.current().typ()) }),
	"__cxa_call_unexpected":        procedure(func(c cxxCall) { c.beginCatch(c.exception(0)); c.terminate() }),
	"__cxa_call_terminate":         procedure(func(c cxxCall) { c.beginCatch(c.exception(0)); c.terminate() }),
	"_ZSt18uncaught_exceptionv":    scalar(func(c cxxCall) uint64 { return truth(c.in.run.cxx.uncaught > 0) }),
	"_ZSt19uncaught_exceptionsv":   scalar(func(c cxxCall) uint64 { return uint64(c.in.run.cxx.uncaught) }),
	"_ZSt9terminatev":              procedure(func(c cxxCall) { c.terminate() }),
	"_ZSt10unexpectedv":            procedure(func(c cxxCall) { c.terminate() }),
	"_ZSt13set_terminatePFvvE":     scalar(setTerminate),
	"_ZSt13get_terminatev":         scalar(func(c cxxCall) uint64 { return uint64(c.in.run.cxx.handler) }),
	"_ZSt14set_unexpectedPFvvE":    refuse("handlers of exception specifications do not run"),
	"_Unwind_RaiseException":       scalar(raiseForeign),
	"_Unwind_Resume":               procedure(func(c cxxCall) { c.fail(c.in.resumeFrom(c.ccall, c.addr(0))) }),
	"_Unwind_Resume_or_Rethrow":    scalar(raiseForeign),
	"_Unwind_DeleteException":      procedure(deleteForeign),
	"__gxx_personality_v0":         refuse("the interpreter reads landing pads itself"),
	"__gcc_personality_v0":         refuse("the interpreter reads landing pads itself"),
	"_ZSt17current_exceptionv":     procedure(currentException),
	"__dynamic_cast":               scalar(dynamicCast),
	"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE":    procedure(rethrowException),
	"_ZNSt15__exception_ptr13exception_ptrC1EPv":                     procedure(func(c cxxCall) { c.setPtr(c.addr(0), c.addr(1)) }),
	"_ZNSt15__exception_ptr13exception_ptrC2EPv":                     procedure(func(c cxxCall) { c.setPtr(c.addr(0), c.addr(1)) }),
	"_ZNSt15__exception_ptr13exception_ptrC1ERKS0_":                  procedure(func(c cxxCall) { c.setPtr(c.addr(0), c.word(c.addr(1))) }),
	"_ZNSt15__exception_ptr13exception_ptrC2ERKS0_":                  procedure(func(c cxxCall) { c.setPtr(c.addr(0), c.word(c.addr(1))) }),
	"_ZNSt15__exception_ptr13exception_ptrC1Ev":                      procedure(func(c cxxCall) { c.setPtr(c.addr(0), 0) }),
	"_ZNSt15__exception_ptr13exception_ptrC2Ev":                      procedure(func(c cxxCall) { c.setPtr(c.addr(0), 0) }),
	"_ZNSt15__exception_ptr13exception_ptrD1Ev":                      procedure(func(c cxxCall) { c.release(c.word(c.addr(0))) }),
	"_ZNSt15__exception_ptr13exception_ptrD2Ev":                      procedure(func(c cxxCall) { c.release(c.word(c.addr(0))) }),
	"_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv":              procedure(func(c cxxCall) { c.retain(c.word(c.addr(0))) }),
	"_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv":            procedure(releasePtr),
	"_ZNKSt15__exception_ptr13exception_ptr6_M_getEv":                scalar(func(c cxxCall) uint64 { return uint64(c.word(c.addr(0))) }),
	"_ZNSt15__exception_ptr13exception_ptraSERKS0_":                  scalar(assignPtr),
	"_ZNSt15__exception_ptr13exception_ptraSEOS0_":                   scalar(moveAssignPtr),
	"_ZNSt15__exception_ptr13exception_ptr4swapERS0_":                procedure(swapPtr),
	"_ZNKSt15__exception_ptr13exception_ptr20__cxa_exception_typeEv": scalar(ptrType),
	"_ZNSt15__exception_ptreqERKNS_13exception_ptrES2_":              scalar(func(c cxxCall) uint64 { return truth(c.word(c.addr(0)) == c.word(c.addr(1))) }),
	"_ZNSt15__exception_ptrneERKNS_13exception_ptrES2_":              scalar(func(c cxxCall) uint64 { return truth(c.word(c.addr(0)) != c.word(c.addr(1))) }),
}

// cxxCall implements the C++ runtime: exceptions, and the guards of static variables.
type cxxCall struct{ *ccall }

func (c cxxCall) word(a machine.Addr) machine.Addr {
	return machine.Addr(c.get(a, c.in.layout.PointerBytes(0)))
}

func (c cxxCall) putWord(a, v machine.Addr) { c.put(a, c.in.layout.PointerBytes(0), uint64(v)) }

// current returns the exception that the innermost handler handles. Outside of all handlers it returns an exception without an object.
func (x *cxx) current() *exception {
	if len(x.caught) == 0 {
		return &exception{}
	}
	return x.caught[len(x.caught)-1]
}

func (c cxxCall) allocateException(size uint64) machine.Addr {
	if c.err == nil && size > c.in.view.limit {
		c.err = c.in.view.charge(size)
	}
	if c.err == nil {
		c.err = c.in.view.charge(handlerCost)
	}
	if c.err != nil {
		return 0
	}
	whole, err := c.in.heap.alloc(headerSize+size, 16, false)
	if err != nil {
		c.fail(err)
		return 0
	}
	c.fill(whole, 0, headerSize)
	x := &c.in.run.cxx
	if x.thrown == nil {
		x.thrown, x.flying = map[machine.Addr]*thrown{}, map[machine.Addr]*exception{}
	}
	t := &thrown{object: whole + headerSize, whole: whole}
	x.thrown[t.object] = t
	return t.object
}

// thrown returns the exception object at an address. If there is none, it fails the call.
func (c cxxCall) thrown(object machine.Addr) *thrown {
	t := c.in.run.cxx.thrown[object]
	switch {
	case t != nil || c.err != nil:
	case object != 0 && c.foreign(object):
		c.err = unsupported("resume a frame further out", "@%s of %v, which native code allocated,", c.Name, object)
	default:
		c.err = troublef(KindFault, "@%s of %v, which __cxa_allocate_exception did not return, or which was destroyed", c.Name, object)
	}
	return t
}

func (c cxxCall) freeException(object machine.Addr) {
	if t := c.thrown(object); c.err == nil {
		delete(c.in.run.cxx.thrown, object)
		delete(c.in.run.cxx.flying, object-unwindSize)
		c.in.view.release(handlerCost)
		c.fail(c.in.heap.free(t.whole))
	}
}

// initException sets the type and the destructor of an exception object, and returns the address of its header.
func initException(c cxxCall) uint64 {
	t := c.thrown(c.addr(0))
	typ, destructor := c.addr(1), c.addr(2)
	if c.err != nil {
		return 0
	}
	t.typ, t.destructor = typ, destructor
	return uint64(t.whole)
}

func throw(c cxxCall) {
	t := c.thrown(c.addr(0))
	typ, destructor := c.addr(1), c.addr(2)
	if c.err != nil {
		return
	}
	t.typ, t.destructor, t.users = typ, destructor, 1
	c.begin(&exception{header: t.object - unwindSize, object: t.object, of: t})
}

// begin registers an exception, writes the class into its header, and starts unwinding.
func (c cxxCall) begin(x *exception) {
	c.put(x.header, 8, gnuClass)
	if c.err != nil {
		return
	}
	x.adjusted = x.object
	c.in.run.cxx.flying[x.header] = x
	c.in.run.cxx.uncaught++
	c.unwindFor(x)
}

// unwindFor starts unwinding to the handler of x. If there is no handler, it ends the program and leaves the stack unchanged.
func (c cxxCall) unwindFor(x *exception) {
	u, err := c.in.raise(x)
	if err != nil {
		c.fail(err)
		return
	}
	if u != nil {
		c.fail(u)
		return
	}
	c.beginCatch(x)
	c.terminate()
}

// exceptionAt returns the thrown exception whose header is at an address.
func (in *Interp) exceptionAt(header machine.Addr) (*exception, error) {
	if x := in.run.cxx.flying[header]; x != nil {
		return x, nil
	}
	if !in.view.ranges.own(header) && in.view.target != nil {
		return nil, unsupported("resume a frame further out", "an exception that native code threw")
	}
	return nil, troublef(KindFault, "%v is not a thrown exception, or it was destroyed", header)
}

func (c cxxCall) exception(arg int) *exception {
	a := c.addr(arg)
	if c.err != nil {
		return nil
	}
	x, err := c.in.exceptionAt(a)
	c.fail(err)
	return x
}

// beginCatch records that a handler is entered. It returns the address of the object to handle, or 0 for an exception from another language.
func (c cxxCall) beginCatch(x *exception) machine.Addr {
	if c.err != nil {
		return 0
	}
	cxx := &c.in.run.cxx
	if x.of == nil {
		if len(cxx.caught) > 0 {
			c.terminate()
			return 0
		}
		cxx.caught = append(cxx.caught, x)
		return 0 // the object of an exception from another language is unknown
	}
	if x.handlers < 0 {
		x.handlers = -x.handlers
	}
	x.handlers++
	cxx.uncaught--
	if cxx.current() != x {
		if c.err = c.in.view.charge(handlerCost); c.err != nil {
			return 0
		}
		cxx.caught = append(cxx.caught, x)
	}
	return x.adjusted
}

// endCatch records that the innermost handler is left. When the last handler of an exception is left, endCatch destroys the exception, unless it is
// being rethrown.
func endCatch(c cxxCall) {
	cxx := &c.in.run.cxx
	if len(cxx.caught) == 0 {
		if c.in.whole() {
			return
		}
		c.fail(unsupported("resume a frame further out", "the end of a handler that native code entered"))
		return
	}
	x := cxx.current()
	last := false
	switch {
	case x.of == nil:
		cxx.caught = cxx.caught[:len(cxx.caught)-1]
		c.destroyForeign(x)
		return
	case x.handlers < 0:
		x.handlers++
		if x.handlers == 0 {
			cxx.caught = cxx.caught[:len(cxx.caught)-1]
			c.in.view.release(handlerCost)
		}
		return
	default:
		x.handlers--
		last = x.handlers == 0
	}
	if last {
		cxx.caught = cxx.caught[:len(cxx.caught)-1]
		c.in.view.release(handlerCost)
		c.dispose(x)
	}
}

// dispose frees the header of a handled exception if it has its own block, and releases the object.
func (c cxxCall) dispose(x *exception) {
	if x.whole != 0 {
		delete(c.in.run.cxx.flying, x.header)
		c.fail(c.in.heap.free(x.whole))
	}
	c.release(x.object)
}

// retain increments the reference count of an object.
func (c cxxCall) retain(object machine.Addr) {
	if c.err != nil || object == 0 {
		return
	}
	if t := c.thrown(object); c.err == nil {
		t.users++
	}
}

// release decrements the reference count of an object, and destroys the object when the count reaches zero.
func (c cxxCall) release(object machine.Addr) {
	if c.err != nil || object == 0 {
		return
	}
	t := c.thrown(object)
	if c.err != nil {
		return
	}
	if t.users--; t.users > 0 {
		return
	}
	if t.destructor != 0 {
		c.run(t.destructor, object)
	}
	if c.err == nil {
		c.freeException(object)
	}
}

// run calls a function of the program with pointers as arguments.
func (c cxxCall) run(f machine.Addr, args ...machine.Addr) Value {
	if c.err != nil {
		return Value{}
	}
	s, err := c.in.shapes.of(ir.Ptr)
	if err != nil {
		c.fail(err)
		return Value{}
	}
	values := make([]Value, len(args))
	for k, a := range args {
		values[k] = c.in.scalar(s, uint64(a))
	}
	v, err := c.Call(f, values...)
	c.fail(err)
	return v
}

func exceptionPtr(c cxxCall) uint64 {
	x := c.exception(0)
	if c.err != nil {
		return 0
	}
	return uint64(x.adjusted)
}

// rethrow throws the exception of the innermost handler again.
func rethrow(c cxxCall) {
	cxx := &c.in.run.cxx
	if len(cxx.caught) == 0 {
		if !c.in.whole() {
			c.fail(unsupported("resume a frame further out", "rethrowing an exception that native code caught"))
			return
		}
		c.terminate()
		return
	}
	x := cxx.current()
	cxx.uncaught++ // never decremented for an exception from another language, as in libstdc++
	if x.of == nil {
		cxx.caught = cxx.caught[:len(cxx.caught)-1]
	} else {
		x.handlers = -x.handlers
		x.adjusted = x.object
	}
	c.unwindFor(x)
}

// currentException stores an exception_ptr to the current exception at the address in argument 0, because the ABI returns it in memory.
func currentException(c cxxCall) {
	x := c.in.run.cxx.current()
	if x.of == nil {
		c.setPtr(c.addr(0), 0)
		return
	}
	c.setPtr(c.addr(0), x.object)
}

func (c cxxCall) setPtr(at, object machine.Addr) {
	c.putWord(at, object)
	c.retain(object)
}

func releasePtr(c cxxCall) {
	at := c.addr(0)
	object := c.word(at)
	if c.err == nil && object != 0 {
		c.release(object)
		if c.in.run.cxx.thrown[object] == nil {
			c.putWord(at, 0)
		}
	}
}

func assignPtr(c cxxCall) uint64 {
	to, from := c.addr(0), c.addr(1)
	old, object := c.word(to), c.word(from)
	c.setPtr(to, object)
	c.release(old)
	return uint64(to)
}

func moveAssignPtr(c cxxCall) uint64 {
	to, from := c.addr(0), c.addr(1)
	old, object := c.word(to), c.word(from)
	c.putWord(from, 0)
	c.putWord(to, object)
	c.release(old)
	return uint64(to)
}

func swapPtr(c cxxCall) {
	a, b := c.addr(0), c.addr(1)
	x, y := c.word(a), c.word(b)
	c.putWord(a, y)
	c.putWord(b, x)
}

func ptrType(c cxxCall) uint64 {
	if t := c.in.run.cxx.thrown[c.word(c.addr(0))]; t != nil {
		return uint64(t.typ)
	}
	return 0
}

// rethrowException throws the object of an exception_ptr. The throw has a header of its own, because another thread may be handling the object with
// the first header.
func rethrowException(c cxxCall) {
	object := c.word(c.addr(0))
	t := c.thrown(object)
	if c.err != nil {
		return
	}
	whole, err := c.in.heap.alloc(headerSize, 16, true)
	if err != nil {
		c.fail(err)
		return
	}
	t.users++
	c.begin(&exception{header: whole + headerSize - unwindSize, object: object, of: t, whole: whole})
}

// raiseForeign throws an exception from another language, of which only the header is known. It returns _URC_END_OF_STACK if no handler accepts the
// exception.
func raiseForeign(c cxxCall) uint64 {
	header := c.addr(0)
	if c.err != nil {
		return 0
	}
	cxx := &c.in.run.cxx
	if cxx.flying == nil {
		cxx.thrown, cxx.flying = map[machine.Addr]*thrown{}, map[machine.Addr]*exception{}
	}
	x := cxx.flying[header]
	if x == nil {
		if c.err = c.in.view.charge(handlerCost); c.err != nil {
			return 0
		}
		x = &exception{header: header, object: header}
		cxx.flying[header] = x
	}
	u, err := c.in.raise(x)
	switch {
	case err != nil:
		c.fail(err)
	case u != nil:
		c.fail(u)
	}
	return 5
}

// deleteForeign destroys an exception from another language with the cleanup function in its header.
func deleteForeign(c cxxCall) {
	if x := c.exception(0); c.err == nil {
		c.destroyForeign(x)
	}
}

func (c cxxCall) destroyForeign(x *exception) {
	if x.of != nil {
		c.dispose(x)
		return
	}
	delete(c.in.run.cxx.flying, x.header)
	c.in.view.release(handlerCost)
	cleanup := c.word(x.header + 8)
	if c.err != nil || cleanup == 0 {
		return
	}
	reason, err := c.in.shapes.of(ir.I32)
	p, err2 := c.in.shapes.of(ir.Ptr)
	if err = errors.Join(err, err2); err != nil {
		c.fail(err)
		return
	}
	_, err = c.Call(cleanup, c.in.scalar(reason, 1), c.in.scalar(p, uint64(x.header))) // _URC_FOREIGN_EXCEPTION_CAUGHT
	c.fail(err)
}

// resumeFrom continues unwinding after _Unwind_Resume was called. It starts at the frame of the caller, which is removed.
func (in *Interp) resumeFrom(c *ccall, header machine.Addr) error {
	if c.err != nil {
		return c.err
	}
	return in.resumeException(header, in.frames.n-1)
}

// guarded calls a function of the program from which no exception may escape. left reports whether an exception tried to escape.
func (c cxxCall) guarded(f machine.Addr, args ...machine.Addr) (v Value, left bool) {
	cxx := &c.in.run.cxx
	cxx.barriers = append(cxx.barriers, c.in.frames.n)
	v = c.run(f, args...)
	c.in.run.cxx.barriers = slices.Delete(cxx.barriers, len(cxx.barriers)-1, len(cxx.barriers))
	var u *unwinding
	if errors.As(c.err, &u) && u.handler == -1-c.in.frames.n {
		c.err, left = nil, true
	}
	return v, left
}

// refuse returns a built-in function that fails with the hint.
func refuse(hint string) Builtin {
	return func(c *Invocation) (Value, error) { return Value{}, unsupported(hint, "a call of @%s", c.Name) }
}
