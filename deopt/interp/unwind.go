package interp

import (
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// unwinding is a pending exception in the second phase of unwinding. That phase runs cleanups up to the frame whose handler the first phase found
// (Itanium C++ ABI: Exception Handling, 1.3).
type unwinding struct {
	x *exception
	// handler is the index of the frame that handles the exception. It is -1-n if a built-in function handles the exception after unwinding to n frames.
	handler  int
	selector uint32
	adjusted machine.Addr
}

func (u *unwinding) Error() string { return "an exception is being thrown" }

// search is the first phase of unwinding: it finds the handler of x in frame number from or further out. It returns nil if there is none.
func (in *Interp) search(x *exception, from int) (*unwinding, error) {
	least := 0
	if b := in.run.cxx.barriers; len(b) > 0 {
		least = b[len(b)-1]
	}
	for k := min(from, in.frames.n-1); k >= least; k-- {
		if err := in.work(64); err != nil {
			return nil, err
		}
		fr := in.frames.list[k]
		p := fr.waits()
		if p == nil {
			continue
		}
		if p.err != nil {
			return nil, p.err
		}
		u := &unwinding{x: x, handler: k}
		found, err := in.handles(fr, p, u)
		if err == nil && (found || p.cleanup) {
			err = in.landable(k, p)
		}
		if err != nil {
			return nil, err
		}
		if found {
			return u, nil
		}
	}
	if least > 0 || len(in.run.cxx.barriers) > 0 {
		return &unwinding{x: x, handler: -1 - least}, nil
	}
	return nil, nil
}

// handles reports whether a clause of p accepts the exception of u. For the first such clause, it sets the selector of u and the value for the
// handler.
func (in *Interp) handles(fr *frame, p *pad, u *unwinding) (bool, error) {
	for _, c := range p.clauses {
		words := c.types.in(fr)
		if !c.filter {
			if words[0].u != 0 {
				return false, notKnown(words, "the type of a clause")
			}
			t := machine.Addr(words[0].v)
			adjusted, ok, err := in.catches(t, u.x)
			if err == nil && ok {
				u.adjusted = adjusted
				u.selector, err = in.typeid(t)
			}
			if err != nil || ok {
				return ok, err
			}
			continue
		}
		taken := true
		for _, w := range words {
			if w.u != 0 {
				return false, notKnown([]word{w}, "the type of a clause")
			}
			_, ok, err := in.catches(machine.Addr(w.v), u.x)
			if err != nil {
				return false, err
			}
			taken = taken && !ok
		}
		if taken {
			// The selector of a filter is negative; programs only compare it with zero.
			u.selector, u.adjusted = ^uint32(0), u.x.object
			return true, nil
		}
	}
	return false, nil
}

func (u *unwinding) perform(in *Interp, base int) error {
	for in.frames.n > base {
		if err := in.work(64); err != nil {
			return err
		}
		at, fr := in.frames.n-1, in.top()
		if at < u.handler || u.handler < 0 && in.frames.n <= -1-u.handler {
			return troublef(KindInternal, "an exception passed its handler")
		}
		p := fr.waits()
		if p != nil && p.err != nil {
			return p.err
		}
		if p == nil || at != u.handler && !p.cleanup {
			in.leave()
			continue
		}
		selector := uint32(0)
		if at == u.handler {
			selector, u.x.adjusted = u.selector, u.adjusted
		}
		fr.abandon(true)
		if p.out.s.words > 0 {
			fr.w[p.out.at], fr.w[p.out.at+1] = word{v: uint64(u.x.header)}, word{v: uint64(selector)}
		}
		in.run.landed = true
		fr.next = p.to
		return nil
	}
	return u
}

// raise throws x from the running frame. It returns nil if no frame handles x.
func (in *Interp) raise(x *exception) (*unwinding, error) {
	u, err := in.search(x, in.frames.n-1)
	if err == nil && u == nil && !in.whole() {
		return nil, unsupported("resume a frame further out, or run the program from its start",
			"an exception of type '%s', which leaves the outermost interpreted frame,", in.typeName(x.typ()))
	}
	return u, err
}

// whole reports whether the frames include the outermost frame of the program.
func (in *Interp) whole() bool { return in.run.of != nil && in.run.of.after != nil }

// resumeException continues the second phase of unwinding at frame number from. It repeats the search of the first phase, which finds the same
// handler because the outer frames have not changed.
func (in *Interp) resumeException(header machine.Addr, from int) error {
	x, err := in.exceptionAt(header)
	if err != nil {
		return err
	}
	u, err := in.search(x, from)
	if err != nil {
		return err
	}
	if u == nil {
		if !in.whole() {
			return unsupported("resume a frame further out", "an exception that leaves the outermost interpreted frame")
		}
		return troublef(KindAbort, "an exception without a handler was resumed")
	}
	return u
}

// activated holds the additional state of a frame that was made from an [Activation].
type activated struct {
	call  *ir.Instr // the call at which it waits when it is resumed
	given map[ir.Value]bool
}

// landable returns an error if the frame lacks a value that its landing pad needs. A frame that was resumed at a call has only the values that are
// live after the call returns, until it has run.
func (in *Interp) landable(at int, p *pad) error {
	fr := in.frames.list[at]
	if fr.resumed == nil || at+1 >= in.frames.n || in.frames.list[at+1].resumed == nil || fr.resumed.call != fr.at(true) {
		return nil
	}
	live, err := ir.LiveAt(p.in.Block, p.to.to.phis)
	if err != nil {
		return &trouble{KindModule, err}
	}
	for _, phi := range p.in.Block.Instrs[:p.to.to.phis] {
		if k := slices.Index(phi.Blocks, fr.resumed.call.Block); k >= 0 && k < len(phi.Args) && slices.Contains(live, ir.Value(phi)) {
			live = append(live, phi.Args[k])
		}
	}
	var names []string
	for _, v := range live {
		switch i := v.(type) {
		case *ir.Instr:
			if i.Op == ir.OpPhi && i.Block == p.in.Block {
				continue
			}
		case *ir.Param:
		default:
			continue
		}
		if !fr.resumed.given[v] && !slices.Contains(names, v.Ref()) {
			names = append(names, v.Ref())
		}
	}
	if names != nil {
		return troublef(KindArgument, "cannot resume with the exception in @%s, block %%%s: no value for %s", fr.fn.ir.Name, p.in.Block.Name, strings.Join(names, ", "))
	}
	return nil
}
