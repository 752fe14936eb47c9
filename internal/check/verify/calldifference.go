package verify

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// CallDifference is a native call that only one side makes, or the first argument in which a native call differs.
type CallDifference struct {
	Callee      string `json:"callee"`
	Only        string `json:"only,omitempty"`     // "interpreter" or "native": the side that makes the call
	Argument    int    `json:"argument,omitempty"` // from 1
	Type        string `json:"type,omitempty"`
	Register    string `json:"register,omitempty"` // the argument's register, or its place on the stack: "stack+8"
	At          string `json:"at,omitempty"`       // "+8": offset in the memory to which the argument points
	Interpreter string `json:"interpreter,omitempty"`
	Native      string `json:"native,omitempty"`
	Line        int    `json:"line,omitempty"` // line of the call in the module
}

// String describes the difference without the two values: "argument 2 of @puts, ptr in rsi: the memory it points to differs at +8".
func (d *CallDifference) String() string {
	switch what := fmt.Sprintf("argument %d of %s, %s in %s", d.Argument, d.Callee, d.Type, d.Register); {
	case d.Only == "native":
		return fmt.Sprintf("native code calls %s, and the interpreter does not", d.Callee)
	case d.Only != "":
		return fmt.Sprintf("the interpreter calls %s, and native code returns without it", d.Callee)
	case d.At != "":
		return what + ": the memory it points to differs at " + d.At
	default:
		return what
	}
}

// missedCall sets the outcome if native code returned without making a call that the interpreter makes.
func (c *comparison) missedCall() {
	out, call := c.out, c.interp.pending
	c.interp.pending = nil
	if c.native.mayLack(call) {
		out.notComparable(frame.Errorf("native code returned without the call of %s, or made the call unseen", calleeOf(call)))
		return
	}
	out.Status, out.Call = Different, &CallDifference{Callee: calleeName(call), Only: "interpreter", Line: call.Site().Line}
}

// extraCall returns a call that the module's native code makes and that the interpreter did not reach, or nil.
func (c *comparison) extraCall() *CallDifference {
	if !c.native.ranOutside || c.origin.fn != c.origin.native { // for a layout's baseline, native code calls through a runtime
		return nil
	}
	unwinder := c.v.watcher.View().Unwinder()
	called := map[machine.Addr]bool{}
	for _, at := range c.native.called {
		called[at] = true
		for to := range unwinder.Stubs(at) {
			called[to] = true
		}
	}
	for _, callee := range c.origin.fn.Module.Funcs {
		if !callee.Declared() || strings.HasPrefix(callee.Name, "llvm.") || callee.StoresNothing() || !interp.LeftToNative(callee.Name) ||
			len(c.v.watcher.View().Modules().Definitions(callee.Name)) > 0 {
			continue
		}
		if at, ok := c.interp.symbol(callee.Name); ok && called[at] {
			return &CallDifference{Callee: "@" + callee.Name, Only: "native"}
		}
	}
	return nil
}

// allocates reports whether a compiler may omit calls of a function, or merge two of them.
func allocates(name string) bool {
	return strings.HasPrefix(name, "_Zn") || strings.HasPrefix(name, "_Zd") || // operator new and delete
		slices.Contains([]string{"malloc", "calloc", "realloc", "free", "aligned_alloc", "strdup", "strndup"}, name)
}

// mayBeOmitted reports whether a compiler may omit a call, or whether its callee is unknown.
func mayBeOmitted(c *interp.Invocation) bool {
	var callee *ir.Func
	if site := c.Site(); site != nil && c.Name != "" {
		callee = site.Block.Func.Module.Func(c.Name)
	}
	return callee == nil || callee.StoresNothing() || allocates(c.Name)
}
