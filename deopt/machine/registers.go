package machine

import (
	"encoding/binary"
	"fmt"
	"maps"
)

// Unavailable says that a value cannot be had, and why. It is the only way in
// which a missing value travels: never as zero, never as an old value.
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
type Registers struct {
	arch   *Arch
	values map[DWARFReg][]byte
	why    map[DWARFReg]string
	absent string
}

// NewRegisters returns an empty register file. absent is the reason given for
// a register of which nothing else was said.
func NewRegisters(arch *Arch, absent string) *Registers {
	return &Registers{arch: arch, values: map[DWARFReg][]byte{}, why: map[DWARFReg]string{}, absent: absent}
}

// Clone returns a copy that can be changed by itself.
func (r *Registers) Clone() *Registers {
	return &Registers{arch: r.arch, values: maps.Clone(r.values), why: maps.Clone(r.why), absent: r.absent}
}

// Arch returns the architecture whose registers these are.
func (r *Registers) Arch() *Arch { return r.arch }

// Set gives reg its bytes, lowest address first. The slice is kept.
func (r *Registers) Set(reg DWARFReg, b []byte) {
	r.values[reg] = b
	delete(r.why, reg)
}

// SetUint gives an address-sized register its value.
func (r *Registers) SetUint(reg DWARFReg, v uint64) {
	b := make([]byte, 8)
	r.arch.Order.PutUint64(b, v)
	if r.arch.Pointer == 4 {
		b = b[:4]
		r.arch.Order.PutUint32(b, uint32(v))
	}
	r.Set(reg, b)
}

// Forget makes reg unavailable with a reason.
func (r *Registers) Forget(reg DWARFReg, reason string) {
	delete(r.values, reg)
	r.why[reg] = reason
}

// Bytes returns the bytes of reg, or an [Unavailable].
func (r *Registers) Bytes(reg DWARFReg) ([]byte, error) {
	if b, ok := r.values[reg]; ok {
		return b, nil
	}
	if why, ok := r.why[reg]; ok {
		return nil, &Unavailable{Reason: why}
	}
	return nil, Unavailablef("%s: %s", r.arch.RegisterName(reg), r.absent)
}

// Uint returns the value of an address-sized register, or an [Unavailable].
func (r *Registers) Uint(reg DWARFReg) (uint64, error) {
	b, err := r.Bytes(reg)
	if err != nil {
		return 0, err
	}
	return r.arch.Uint(b), nil
}

// Addr is [Registers.Uint] for a register that holds an address.
func (r *Registers) Addr(reg DWARFReg) (Addr, error) {
	v, err := r.Uint(reg)
	return Addr(v), err
}

// BigEndian says whether the most significant byte comes first. It is spelled once, because an interface compares only with its like.
func (a *Arch) BigEndian() bool { return a.Order == binary.ByteOrder(binary.BigEndian) }
