package machine

import (
	"maps"

	"example.com/reframe/deopt/frame"
)

// Registers is the register file of one physical frame, as its function sees it. Each register either has bytes or is unavailable with a reason. The zero
// value is not usable; make one with [NewRegisters].
//
// A register may be partly available: only its first bytes.
type Registers struct {
	arch   *Arch
	have   uint64   // bit set of the entries in words that are available
	words  []uint64 // values, indexed by the architecture's plan
	others map[DWARFReg][]byte
	why    map[DWARFReg]error
	absent func(DWARFReg) error

	floats    *FloatControl // immutable, so clones share it; nil if unavailable
	floatsWhy error
	thread    Addr // the result of ThreadPointer
}

// NewRegisters returns an empty register file. absent is the reason for registers without a specific reason.
func NewRegisters(arch *Arch, absent string) *Registers {
	return &Registers{arch: arch, words: make([]uint64, arch.plan.count), absent: func(reg DWARFReg) error {
		return frame.Because(frame.NotCaptured, arch.RegisterName(reg), absent)
	}}
}

// Caller returns the register file of the caller of the function whose registers r holds, as far as the calling convention determines it. If kept is set,
// callee-saved registers have the same values as here, or the same reasons; otherwise all registers are unavailable. absent returns the reason for
// registers without a specific one; it is called on demand.
func (r *Registers) Caller(kept bool, absent func(DWARFReg) error) *Registers {
	p := &r.arch.plan
	out := &Registers{arch: r.arch, words: make([]uint64, p.count), absent: absent, floats: r.floats, floatsWhy: r.floatsWhy, thread: r.thread}
	if !kept {
		return out
	}
	out.have = r.have & p.kept
	copy(out.words, r.words)
	for reg, b := range r.others {
		if kept := r.arch.Kept(reg); kept > 0 {
			out.Set(reg, b[:min(kept, len(b))])
		}
	}
	for reg, why := range r.why {
		if r.arch.Kept(reg) > 0 {
			out.Forget(reg, why)
		}
	}
	return out
}

// Clone returns a deep copy.
func (r *Registers) Clone() *Registers {
	c := *r
	c.words = append([]uint64(nil), r.words...)
	c.others, c.why = maps.Clone(r.others), maps.Clone(r.why)
	return &c
}

// Same reports whether both have the same available registers with the same bytes. It returns false if either has registers outside of the plan.
func (r *Registers) Same(s *Registers) bool {
	if r.arch != s.arch || r.have != s.have || len(r.others)+len(s.others) > 0 || !r.sameFloats(s) {
		return false
	}
	for i, v := range r.words {
		if r.have>>i&1 != 0 && v != s.words[i] {
			return false
		}
	}
	return true
}

// SameReasons reports whether r and s have the same reason for each callee-saved register that r lacks, of those in the plan.
func (r *Registers) SameReasons(s *Registers) bool {
	for _, reg := range r.arch.order {
		i, ok := r.arch.plan.place(reg)
		if ok && r.arch.plan.kept&^r.have>>i&1 != 0 && r.reason(reg).Error() != s.reason(reg).Error() {
			return false
		}
	}
	return true
}

// Detach computes the reasons of all unavailable registers of the architecture, so that r no longer refers to another register file.
func (r *Registers) Detach() {
	for _, reg := range r.arch.order {
		if i, ok := r.arch.plan.place(reg); ok && r.have>>i&1 != 0 {
			continue
		}
		if _, ok := r.others[reg]; !ok && r.why[reg] == nil {
			r.Forget(reg, r.absent(reg))
		}
	}
	arch := r.arch
	r.absent = func(reg DWARFReg) error { return frame.Because(frame.NotKept, arch.RegisterName(reg)) }
}

// Plain reports whether no register has a specific reason.
func (r *Registers) Plain() bool { return len(r.why) == 0 }

// Whole reports whether all callee-saved registers in the plan are available.
func (r *Registers) Whole() bool { return r.have&r.arch.plan.kept == r.arch.plan.kept }

// But returns the same registers with another reason for those without a specific reason.
func (r *Registers) But(absent func(DWARFReg) error) *Registers {
	out := *r
	out.absent = absent
	return &out
}

// ThreadPointer returns the address that locates the thread's own variables, the same in all frames of a thread: fs_base on x86-64, tpidr_el0 on arm64.
// It returns 0 if unknown.
func (r *Registers) ThreadPointer() Addr { return r.thread }

// SetThreadPointer sets the address that [Registers.ThreadPointer] returns.
func (r *Registers) SetThreadPointer(addr Addr) { r.thread = addr }

// Arch returns the architecture of the registers.
func (r *Registers) Arch() *Arch { return r.arch }

// Set sets reg to b, lowest address first: all of its bytes or only its first. It keeps the slice.
func (r *Registers) Set(reg DWARFReg, b []byte) {
	if len(b) == word {
		r.SetUint(reg, r.arch.Uint(b))
		return
	}
	if i, ok := r.arch.plan.place(reg); ok {
		r.have &^= 1 << i
	}
	if r.others == nil {
		r.others = map[DWARFReg][]byte{}
	}
	r.others[reg] = b
	delete(r.why, reg)
}

// SetUint sets an address-sized register.
func (r *Registers) SetUint(reg DWARFReg, v uint64) {
	if i, ok := r.arch.plan.place(reg); ok {
		r.words[i] = v
		r.have |= 1 << i
		if r.others != nil {
			delete(r.others, reg)
		}
		if r.why != nil {
			delete(r.why, reg)
		}
		return
	}
	b := make([]byte, r.arch.Pointer)
	r.arch.PutUint(b, v)
	if r.others == nil {
		r.others = map[DWARFReg][]byte{}
	}
	r.others[reg] = b
	delete(r.why, reg)
}

// Forget makes reg unavailable with a reason.
func (r *Registers) Forget(reg DWARFReg, reason error) {
	if i, ok := r.arch.plan.place(reg); ok {
		r.have &^= 1 << i
	}
	delete(r.others, reg)
	if r.why == nil {
		r.why = map[DWARFReg]error{}
	}
	r.why[reg] = reason
}

// reason returns the reason why reg is unavailable.
func (r *Registers) reason(reg DWARFReg) error {
	if why, ok := r.why[reg]; ok {
		return why
	}
	return r.absent(reg)
}

// Bytes returns the available bytes of reg, from its first, or a [frame.Reason]. The caller may keep them but must not change them.
func (r *Registers) Bytes(reg DWARFReg) ([]byte, error) {
	if i, ok := r.arch.plan.place(reg); ok && r.have>>i&1 != 0 {
		b := make([]byte, word)
		r.arch.PutUint(b, r.words[i])
		return b, nil
	}
	if b, ok := r.others[reg]; ok {
		return b, nil
	}
	return nil, r.reason(reg)
}

// Uint returns the value of an address-sized register, or a [frame.Reason].
func (r *Registers) Uint(reg DWARFReg) (uint64, error) {
	if i, ok := r.arch.plan.place(reg); ok && r.have>>i&1 != 0 {
		return r.words[i], nil
	}
	if b, ok := r.others[reg]; ok {
		return r.arch.Uint(b), nil
	}
	return 0, r.reason(reg)
}

// Addr is [Registers.Uint] for a register that holds an address.
func (r *Registers) Addr(reg DWARFReg) (Addr, error) {
	v, err := r.Uint(reg)
	return Addr(v), err
}
