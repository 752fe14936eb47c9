package machine

import (
	"fmt"
	"maps"
)

// Unavailable is the reason why a value cannot be read. A missing value is always represented by it: never by zero, never by an old value.
type Unavailable struct {
	Reason string
}

func (u *Unavailable) Error() string { return u.Reason }

// Unavailablef makes an [Unavailable] with a formatted reason.
func Unavailablef(format string, args ...any) error {
	return &Unavailable{Reason: fmt.Sprintf(format, args...)}
}

// Registers is the register file of one physical frame: what its function sees.
// A register is there with its bytes, or is missing with a reason. The zero
// value has none; make one with [NewRegisters].
//
// A register may be known in part: its first bytes are there and the rest is not.
type Registers struct {
	arch   *Arch
	have   uint64   // which places of words hold a register
	words  []uint64 // by the places of the architecture's plan
	others map[DWARFReg][]byte
	why    map[DWARFReg]string
	absent func(DWARFReg) string

	floats    *FloatControl // never changed; nil where it is not known
	floatsWhy string
}

// NewRegisters returns an empty register file. absent is the reason for registers without a reason of their own.
func NewRegisters(arch *Arch, absent string) *Registers {
	return &Registers{arch: arch, words: make([]uint64, arch.plan.count), absent: func(reg DWARFReg) string {
		return arch.RegisterName(reg) + ": " + absent
	}}
}

// Caller returns the register file of the function that called the one whose registers r holds, as far as the calling convention determines it.
// With kept, callee-saved registers have the values that they have here, or are missing for the same reason; without, all are missing. absent
// returns the reason for the others; it is called on demand.
func (r *Registers) Caller(kept bool, absent func(DWARFReg) string) *Registers {
	p := &r.arch.plan
	out := &Registers{arch: r.arch, words: make([]uint64, p.count), absent: absent, floats: r.floats, floatsWhy: r.floatsWhy}
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

// Clone returns a copy that can be changed by itself.
func (r *Registers) Clone() *Registers {
	c := *r
	c.words = append([]uint64(nil), r.words...)
	c.others, c.why = maps.Clone(r.others), maps.Clone(r.why)
	return &c
}

// Same reports whether both have the same registers, with the same bytes: a function cannot distinguish them.
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

// SameReasons reports whether each register that a callee keeps and that is missing in both, of those
// that frames usually know, is so for the same reason.
func (r *Registers) SameReasons(s *Registers) bool {
	for _, reg := range r.arch.order {
		i, ok := r.arch.plan.place(reg)
		if ok && r.arch.plan.kept&^r.have>>i&1 != 0 && r.reason(reg).Error() != s.reason(reg).Error() {
			return false
		}
	}
	return true
}

// Detach settles the reasons of all registers of the architecture that are missing, so that the file holds on to no other one.
func (r *Registers) Detach() {
	for _, reg := range r.arch.order {
		if i, ok := r.arch.plan.place(reg); ok && r.have>>i&1 != 0 {
			continue
		}
		if _, ok := r.others[reg]; !ok && r.why[reg] == "" {
			r.Forget(reg, r.absent(reg))
		}
	}
	arch := r.arch
	r.absent = func(reg DWARFReg) string { return arch.RegisterName(reg) + " is not kept by the frame that was called" }
}

// Plain reports whether no register is missing for a reason of its own.
func (r *Registers) Plain() bool { return len(r.why) == 0 }

// Whole reports whether all callee-saved registers are available, of those that frames usually have.
func (r *Registers) Whole() bool { return r.have&r.arch.plan.kept == r.arch.plan.kept }

// But returns the same registers, with another reason for those without a reason of their own.
func (r *Registers) But(absent func(DWARFReg) string) *Registers {
	out := *r
	out.absent = absent
	return &out
}

// Arch returns the architecture whose registers these are.
func (r *Registers) Arch() *Arch { return r.arch }

// Set gives reg its bytes, lowest address first: all of them, or its first. The slice is kept.
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

// SetUint gives an address-sized register its value.
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
func (r *Registers) Forget(reg DWARFReg, reason string) {
	if i, ok := r.arch.plan.place(reg); ok {
		r.have &^= 1 << i
	}
	delete(r.others, reg)
	if r.why == nil {
		r.why = map[DWARFReg]string{}
	}
	r.why[reg] = reason
}

// reason returns the reason why reg is unavailable.
func (r *Registers) reason(reg DWARFReg) error {
	if why, ok := r.why[reg]; ok {
		return &Unavailable{Reason: why}
	}
	return &Unavailable{Reason: r.absent(reg)}
}

// Bytes returns the bytes of reg that are there, from its first, or an [Unavailable]. The
// caller may keep them and must not change them.
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

// Uint returns the value of an address-sized register, or an [Unavailable].
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
