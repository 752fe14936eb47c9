package interp

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/machine"
)

// processFuncs holds functions that start or end a program or report errors: those of <stdlib.h>, <errno.h>, <assert.h>, <signal.h> and <unistd.h>.
var processFuncs = map[string]Builtin{
	"exit": procedure(exit), "_exit": procedure(quickExit), "_Exit": procedure(quickExit), "quick_exit": procedure(quickExit),
	"atexit": scalar(atexit), "__cxa_atexit": scalar(cxaAtexit),
	"abort":  procedure(func(c *ccall) { c.fail(troublef(KindAbort, "the program called abort")) }),
	"getenv": always(0), "secure_getenv": always(0), // the environment has no variables
	"getpid":           always(1),
	"__errno_location": scalar(func(c *ccall) uint64 { return uint64(c.errnoAddr()) }),
	"strerror":         scalar(func(c *ccall) uint64 { return c.constantText(errorText(c.int(0))) }),
	"__xpg_strerror_r": scalar(strerrorR), "strerror_r": scalar(func(c *ccall) uint64 { return c.constantText(errorText(c.int(0))) }),
	"__assert_fail":      procedure(assertFail),
	"__stack_chk_fail":   procedure(func(c *ccall) { c.terminated("stack smashing detected") }),
	"__chk_fail":         procedure(func(c *ccall) { c.terminated("buffer overflow detected") }),
	"signal":             always(0), // returns SIG_DFL: no signal arrives here
	"__sysv_signal":      always(0), // signal without BSD extensions
	"pthread_self":       always(1),
	"pthread_mutex_lock": always(0), "pthread_mutex_unlock": always(0), // there is only one thread
}

// exit runs the handlers of atexit and ends the program (C17 7.22.4.4).
func exit(c *ccall) {
	code := c.int(0)
	if c.err == nil {
		c.err = c.in.runHandlers()
	}
	c.fail(&exited{int(code)})
}

// quickExit ends the program without running the handlers of atexit (C17 7.22.4.5). No output is lost, as streams have no buffers.
func quickExit(c *ccall) { c.fail(&exited{int(c.int(0))}) }

func atexit(c *ccall) uint64 {
	c.handle(Value{})
	return 0
}

// cxaAtexit registers a C++ destructor with its object (Itanium C++ ABI, 3.3.6.3 "Runtime API").
func cxaAtexit(c *ccall) uint64 {
	if c.uint(1); c.err == nil {
		c.handle(c.Args[1])
	}
	return 0
}

// handle registers a function to call at exit, with its argument.
func (c *ccall) handle(arg Value) {
	f := c.addr(0)
	if c.err == nil && f == 0 {
		c.err = troublef(KindFault, "@%s of a null pointer", c.Name)
	}
	if c.err == nil {
		c.err = c.in.view.charge(handlerCost)
	}
	if c.err == nil {
		c.in.clib.handler = append(c.in.clib.handler, handler{f, arg})
	}
}

// handlerCost is the number of bytes charged for a registered handler, and for similar small records.
const handlerCost = 64

// runHandlers runs the handlers of atexit, the last one first. If a handler calls exit, the remaining handlers run before the program ends.
func (in *Interp) runHandlers() error {
	for len(in.clib.handler) > 0 {
		last := len(in.clib.handler) - 1
		h := in.clib.handler[last]
		in.clib.handler = in.clib.handler[:last]
		call := &Invocation{Name: "exit", in: in}
		in.view.release(handlerCost)
		var args []Value
		if fn, _ := in.names.funcAt(h.f); !h.arg.IsNone() && fn != nil && len(fn.Sig.Fields) > 0 {
			args = []Value{h.arg}
		}
		if _, err := call.Call(h.f, args...); err != nil {
			return err
		}
	}
	return nil
}

// Call calls the function of the program at address f, and returns its result, none for a void function. It returns an error if the call is invalid,
// or if the run ends during the call. A builtin must return such an error.
func (c *Invocation) Call(f machine.Addr, args ...Value) (Value, error) {
	fn, name := c.in.names.funcAt(f)
	switch {
	case fn == nil && name != "":
		return Value{}, unsupported(c.in.nativeHint(), "a call of @%s by @%s", name, c.Name)
	case fn == nil:
		return Value{}, troublef(KindFault, "@%s calls %v, which is not a function of the module", c.Name, f)
	}
	ret, err := c.in.shapes.of(fn.Sig.Elem)
	if err != nil {
		return Value{}, err
	}
	w := ret.undefined()
	if err := c.in.enterCall(callTarget{fn, name, f}, slices.Clone(args), ret, w); err != nil || ret.words == 0 {
		return Value{}, err
	}
	return Value{ret, w}, nil
}

func errorText(n int64) string {
	if n >= 0 && n < int64(len(errorTexts)) && errorTexts[n] != "" {
		return errorTexts[n]
	}
	return fmt.Sprintf("Unknown error %d", int32(n))
}

// strerrorR implements the POSIX form of strerror_r.
func strerrorR(c *ccall) uint64 {
	text, size := errorText(c.int(0)), c.uint(2)
	c.truncated(c.addr(1), []byte(text), size)
	if uint64(len(text)) >= size {
		return errRange
	}
	return 0
}

// assertFail implements the function that a failed assert calls (C17 7.2.1.1). It prints glibc's message and ends the run.
func assertFail(c *ccall) {
	text, file, line, function := c.text(0), c.text(1), c.uint(2), "(unknown)"
	if a := c.addr(3); a != 0 {
		function = string(c.textAt(a, ^uint64(0)))
	}
	c.printError(fmt.Appendf(nil, "%s: %s:%d: %s: Assertion `%s' failed.\n", c.in.clib.program, file, uint32(line), function, text))
	c.fail(troublef(KindAbort, "the assertion `%s' of %s:%d failed", text, file, uint32(line)))
}

// terminated prints glibc's message for a detected corruption, and ends the program.
func (c *ccall) terminated(what string) {
	c.printError([]byte("*** " + what + " ***: terminated\n"))
	c.fail(troublef(KindAbort, "%s", what))
}
