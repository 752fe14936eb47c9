package interp

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// elsewhere holds the built-in functions that [Options].Native never runs: those that do not return to the instruction after their call, and the
// personality functions, which programs do not call directly.
var elsewhere = map[string]bool{}

func init() { // in init, because the table and its functions refer to each other
	for name := range jumpFuncs {
		elsewhere[name] = true
	}
	for name := range strings.FieldsSeq(`__cxa_throw __cxa_rethrow __cxa_call_unexpected __cxa_call_terminate _ZSt9terminatev _ZSt10unexpectedv
		_Unwind_RaiseException _Unwind_Resume _Unwind_Resume_or_Rethrow _ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE
		__gxx_personality_v0 __gcc_personality_v0`) {
		elsewhere[name] = true
	}
}

// leftToNative reports whether [Options].Native, if set, runs the function of that name. b is the built-in function of that name, or nil.
func leftToNative(name string, b Builtin, effect Effect) bool {
	if b == nil {
		return true
	}
	return !elsewhere[name] && (effect == EffectState || effect == EffectOutside)
}

// LeftToNative reports whether [Options].Native, if set, runs the function of that name. It assumes that no module defines the function, and that the
// target does.
func LeftToNative(name string) bool {
	return leftToNative(name, libc[name], EffectOf(name))
}

// Own reports whether m is the module of libstdc++ that the interpreter itself provides.
func (in *Interp) Own(m *ir.Module) bool { return m == in.runtime }

// Site returns the instruction that made the call, or nil if a built-in function made it.
func (c *Invocation) Site() *ir.Instr {
	if c.site == nil {
		return nil
	}
	return c.site.i
}

// Extent returns the number of accessible bytes from an address of the interpreter's own memory on, at most limit. These are the rest of an alloca, a
// heap block or a global.
func (in *Interp) Extent(addr machine.Addr, limit uint64) (n uint64) {
	for in.view.ranges.own(addr) && n < limit {
		page := min(limit-n, pageSize-uint64(addr)%pageSize)
		have := uint64(0)
		if in.view.lookup(addr) != nil {
			have = in.view.reach(addr, page)
		}
		n += have
		if have < page {
			break
		}
		addr += machine.Addr(have)
	}
	return n
}

// Changed tells the interpreter that memory of the target has changed: addr now contains data. It updates the pages that a run has read; other pages
// are read at their first access. If addr is in the interpreter's own memory, Changed stores data there. It returns a [*FaultError] if it cannot
// store to that memory.
func (in *Interp) Changed(addr machine.Addr, data []byte) error {
	if in.view.ranges.own(addr) {
		if err := in.view.put(addr, data, nil); err != nil {
			return located(err)
		}
		return nil
	}
	for len(data) > 0 {
		off := int(addr % pageSize)
		n := min(len(data), pageSize-off)
		if p := in.view.lookup(addr); p != nil {
			copy(p.data[off:off+n], data)
			clear(p.shadow[off : off+n])
			p.setValid(off, n, true)
		}
		addr, data = addr+machine.Addr(n), data[n:]
	}
	return nil
}

// Unmapped tells the interpreter that pages of the target were unmapped or replaced. The view drops its copies of these pages,
// including the stores that runs made to them.
func (in *Interp) Unmapped(addr machine.Addr, size uint64) {
	v := &in.view
	for number, p := range v.pages {
		if p.kind == targetPage && machine.Addr(number<<pageBits)-addr < machine.Addr(size) {
			v.drop(number)
			v.release(pageSize)
		}
	}
}
