package machine

import (
	"fmt"

	"example.com/reframe/deopt/frame"
)

// FloatControl holds the registers of a thread that control floating-point arithmetic, without the exception flags. A function restores them before it
// returns (System V ABI, AMD64 supplement, 3.2.1; AAPCS64, 6.1.2). So a callee's values are also those of its callers, unless the callee is in the middle
// of changing them.
type FloatControl struct {
	MXCSR uint32 // of x86-64, for SSE and AVX (Intel SDM vol. 1, 10.2.3)
	X87   uint16 // of x86-64, the x87 control word (8.1.5)
	FPCR  uint64 // of arm64 (Arm ARM, C5.2.8)
}

// These are the offsets of the registers in struct user_fpregs_struct of asm/user.h, which begins like the FXSAVE area, and in struct user_fpsimd_state of
// asm/ptrace.h.
const (
	x87ControlAt = 0
	mxcsrAt      = 24
	fpcrAt       = 516

	mxcsrFlags = 0x3f
)

// FloatControlOf decodes the registers from the kernel's floating-point register set of a thread (NT_FPREGSET).
func FloatControlOf(a *Arch, b []byte) (FloatControl, error) {
	switch {
	case a == AMD64 && len(b) >= mxcsrAt+4:
		return FloatControl{MXCSR: a.Order.Uint32(b[mxcsrAt:]) &^ mxcsrFlags, X87: a.Order.Uint16(b[x87ControlAt:])}, nil
	case a == ARM64 && len(b) >= fpcrAt+4:
		return FloatControl{FPCR: uint64(a.Order.Uint32(b[fpcrAt:]))}, nil
	case a == AMD64 || a == ARM64:
		return FloatControl{}, frame.Because(frame.FloatsUnread, "the floating-point registers of the thread were not read")
	}
	return FloatControl{}, frame.Because(frame.FloatsUnread, fmt.Sprintf("the floating-point environment of %s is not read", a.Title))
}

// Put writes the registers to the places in a register set from which [FloatControlOf] reads them.
func (c FloatControl) Put(a *Arch, b []byte) {
	switch {
	case a == AMD64 && len(b) >= mxcsrAt+4:
		a.Order.PutUint32(b[mxcsrAt:], c.MXCSR)
		a.Order.PutUint16(b[x87ControlAt:], c.X87)
	case a == ARM64 && len(b) >= fpcrAt+4:
		a.Order.PutUint32(b[fpcrAt:], uint32(c.FPCR))
	}
}

// These are the offsets at which a signal frame saves the floating-point registers of the interrupted code (asm/sigframe.h, asm/ucontext.h and
// asm/sigcontext.h). They count from the stack pointer of the frame that the handler returns to. On x86-64 a pointer to an FXSAVE area lies there. On
// arm64 struct fpsimd_context lies there, the first record after the general registers.
const (
	amd64SignalFloats = 224
	arm64SignalFloats = 592
	fpsimdMagic       = 0x46508001
)

// SignalFloatControl reads the registers that a signal frame saved. sp is the stack pointer of the frame that the handler returns to.
func SignalFloatControl(m Memory, a *Arch, sp Addr) (FloatControl, error) {
	var b [mxcsrAt + 4]byte
	switch a {
	case AMD64:
		at, err := ReadAddr(m, a, sp+amd64SignalFloats)
		if err == nil && at == 0 {
			return FloatControl{}, frame.Because(frame.FloatsUnread, fmt.Sprintf("the signal frame at %v has no floating-point registers", sp))
		}
		if err == nil {
			err = m.ReadMemory(b[:], at)
		}
		if err != nil {
			return FloatControl{}, frame.Because(frame.FloatsUnread, fmt.Sprintf("the floating-point registers of the signal frame at %v cannot be read: %v", sp, err))
		}
		return FloatControlOf(a, b[:])
	case ARM64:
		if err := m.ReadMemory(b[:16], sp+arm64SignalFloats); err != nil {
			return FloatControl{}, frame.Because(frame.FloatsUnread, fmt.Sprintf("the floating-point registers of the signal frame at %v cannot be read: %v", sp, err))
		}
		if a.Order.Uint32(b[:]) != fpsimdMagic {
			return FloatControl{}, frame.Because(frame.FloatsUnread, fmt.Sprintf("the signal frame at %v does not begin with floating-point registers", sp))
		}
		return FloatControl{FPCR: uint64(a.Order.Uint32(b[12:]))}, nil
	}
	return FloatControl{}, frame.Because(frame.FloatsUnread, fmt.Sprintf("the floating-point environment of %s is not read", a.Title))
}

// SetFloatControl sets the registers that control floating-point arithmetic.
func (r *Registers) SetFloatControl(c FloatControl) { r.floats, r.floatsWhy = &c, nil }

// ForgetFloatControl marks the registers that control floating-point arithmetic as unavailable, with a reason.
func (r *Registers) ForgetFloatControl(reason error) { r.floats, r.floatsWhy = nil, reason }

// FloatControl returns the registers that control floating-point arithmetic, or a [frame.Reason].
func (r *Registers) FloatControl() (FloatControl, error) {
	switch {
	case r.floats != nil:
		return *r.floats, nil
	case r.floatsWhy != nil:
		return FloatControl{}, r.floatsWhy
	}
	return FloatControl{}, frame.Because(frame.FloatsUnread, "the floating-point registers of the thread were not read")
}

// sameFloats reports whether r and s have the same values of the registers that control floating-point arithmetic, or both have none.
func (r *Registers) sameFloats(s *Registers) bool {
	if r.floats == nil || s.floats == nil {
		return r.floats == s.floats
	}
	return *r.floats == *s.floats
}
