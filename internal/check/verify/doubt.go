package verify

import "errors"

// pointerKept is the reason why a difference may not be an error.
const pointerKept = "native code has stored a pointer to an object that the interpreter has elsewhere"

// withdraw removes a difference that is not evidence of an error, because a pointer that native code has kept, or a store of another process, may
// have caused it.
func (c *comparison) withdraw() {
	var why error
	switch {
	case c.out.Status != Different:
		return
	case c.pairs.mixed(c.interp.machine):
		why = errors.New(pointerKept)
	case c.v.readsShared(&c.interp):
		why = errSharedMemory
	default:
		unspecified := unspecifiedByIR(&c.interp, &c.reruns)
		if unspecified == "" {
			return
		}
		why = errors.New(unspecified)
	}
	c.out.Call, c.out.Result, c.out.Memory, c.out.Words = nil, nil, nil, 0
	c.out.Native.Failed, c.out.Interpreter.Failed = "", ""
	c.out.notComparable(why)
}

// whyDoubtful returns the reason why a difference is not evidence of an error, or "". Both sides may be right, or the process may have other code
// than was compiled.
func (c *comparison) whyDoubtful() string {
	if why := unspecifiedByFunctions(&c.interp); why != "" {
		return why
	}
	return patchedCode(c.v.watcher.View(), c.origin, &c.interp)
}

// whyUnsure returns the reason why a difference between native code and the interpreter of a [Lockstep] is not evidence of an error, or "".
func (c *comparison) whyUnsure() string {
	if err := requireNoState(c.interp.called()); err != nil {
		return err.Error()
	}
	if why := c.whyDoubtful(); why != "" {
		return why
	}
	if c.pairs.mixed(c.interp.machine) {
		return pointerKept
	}
	return ""
}

// readsShared reports whether the interpreter has read memory that other processes may store to: native code may have read another value.
func (v *verifier) readsShared(r *interpreted) bool {
	if r.memory == nil || r.memory.shared == 0 {
		return false
	}
	return v.sharedWithOthers(r.memory.shared)
}
