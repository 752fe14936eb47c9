package verify

import (
	"errors"

	"example.com/reframe/deopt/interp"
)

// effects holds the memory in which the interpreter runs: the process's memory at the start, with the effects of the native calls since then.
type effects struct {
	first *memoryImage  // the memory at the start
	now   *memoryImage  // the memory at the start, with the effects of all calls
	calls []callEffects // in the order of the calls; nil if they are too large to be kept
	size  int           // bytes that all calls have changed
}

// callEffects holds the effects of native code that ran in place of one call of the interpreter.
type callEffects struct {
	value   interp.Value
	memory  []changed
	after   *memoryImage // the image of memory after the call
	objects []changed    // changes in the interpreter's own memory
}

// maxEffects bounds the bytes of the effects that are kept for a repeated run.
const maxEffects = 64 << 20

// errTooMuch is the reason why a run cannot be repeated if the effects of its native calls are too large to be kept.
var errTooMuch = errors.New("native code stored too much for the run to be repeated")

// start sets the memory in which the interpreter starts.
func (e *effects) start(img *memoryImage) { e.first, e.now = img, img }

// tooLarge reports whether the effects are too large to be kept, so that the run cannot be repeated.
func (e *effects) tooLarge() bool { return e.size > maxEffects }

// add adds the effects of a call to the memory, and keeps them for [effects.replay] unless they are too large.
func (e *effects) add(c callEffects) {
	e.now = e.now.with(c.memory, c.after)
	for _, m := range c.memory {
		e.size += len(m.data)
	}
	if e.tooLarge() {
		e.calls = nil
		return
	}
	e.calls = append(e.calls, c)
}

// applyTo applies the changes of native code to the memory of an interpreter.
func (c *callEffects) applyTo(in *interp.Interp) error {
	for _, list := range [][]changed{c.memory, c.objects} {
		for _, m := range list {
			if m.unmapped > 0 {
				in.Unmapped(m.addr, m.unmapped)
				continue
			}
			if err := in.Changed(m.addr, m.data); err != nil {
				return err
			}
		}
	}
	return nil
}

// replay returns the function that passes the kept effects to a repeated run, call by call. memory is the memory of that run. wait is as in
// [reruns.visit].
func (e *effects) replay(in *interp.Interp, memory *imageMemory, wait func() bool) interp.Builtin {
	n := 0
	return func(*interp.Invocation) (interp.Value, error) {
		for n >= len(e.calls) {
			if wait == nil || !wait() {
				return interp.Value{}, errAbandoned
			}
		}
		c := &e.calls[n]
		n++
		memory.image = memory.image.with(c.memory, c.after)
		return c.value, c.applyTo(in)
	}
}
