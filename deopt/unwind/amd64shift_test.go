package unwind

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestRegionsThatMoveTheStackPointer requires the stack pointer at the start of a patched region whose code moves the stack pointer before its
// call. The unwinder must compute it from the distance by which the code has moved it, or from a register that holds a copy.
func TestRegionsThatMoveTheStackPointer(t *testing.T) {
	const (
		region = machine.Addr(0x1000)
		sp     = uint64(0x7fff0000) // stack pointer at the return address of the call
		bp     = uint64(0x7fff0100)
		lost   = uint64(0)
	)
	call := []byte{0xe8, 0xfb, 0x3f, 0, 0} // calls unmapped memory
	for _, c := range []struct {
		name   string
		before []byte // code before the call
		after  []byte
		want   uint64 // stack pointer at the start of the region
	}{
		{"call", nil, nil, 0x7fff0000},
		{"sub $24, %rsp; call; add $24, %rsp", []byte{0x48, 0x83, 0xec, 0x18}, []byte{0x48, 0x83, 0xc4, 0x18}, 0x7fff0018},
		{"sub $256, %rsp; call; add $256, %rsp", []byte{0x48, 0x81, 0xec, 0, 1, 0, 0}, []byte{0x48, 0x81, 0xc4, 0, 1, 0, 0}, 0x7fff0100},
		{"sub $-128, %rsp; call", []byte{0x48, 0x83, 0xec, 0x80}, nil, 0x7ffeff80},
		{"push $5; call", []byte{0x6a, 5}, nil, 0x7fff0008},
		{"push $5; push $0x12345678; call; add $16, %rsp", []byte{0x6a, 5, 0x68, 0x78, 0x56, 0x34, 0x12}, []byte{0x48, 0x83, 0xc4, 0x10}, 0x7fff0010},
		{"push %rax; call; pop %rax", []byte{0x50}, []byte{0x58}, 0x7fff0008},
		{"push %r11; push $7; call", []byte{0x41, 0x53, 0x6a, 7}, nil, 0x7fff0010},
		{"pushfq; call; popfq", []byte{0x9c}, []byte{0x9d}, 0x7fff0008},
		{"lea -32(%rsp), %rsp; call; lea 32(%rsp), %rsp", []byte{0x48, 0x8d, 0x64, 0x24, 0xe0}, []byte{0x48, 0x8d, 0x64, 0x24, 0x20}, 0x7fff0020},
		{"push $1; push $2; add $16, %rsp; call", []byte{0x6a, 1, 0x6a, 2, 0x48, 0x83, 0xc4, 0x10}, nil, 0x7fff0000},
		{"push $1; pop %rdi; call", []byte{0x6a, 1, 0x5f}, nil, 0x7fff0000},
		{"jmp over data; sub $16, %rsp; call", []byte{0xeb, 2, 0xff, 0xff, 0x48, 0x83, 0xec, 0x10}, nil, 0x7fff0010},
		{"push %rbp; mov %rsp, %rbp; and $-16, %rsp; call", []byte{0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xf0}, nil, 0x7fff0108},
		{"sub %rax, %rsp; call", []byte{0x48, 0x29, 0xc4}, nil, lost},
		{"and $-16, %rsp; call", []byte{0x48, 0x83, 0xe4, 0xf0}, nil, lost},
	} {
		code := append(append(append([]byte{}, c.before...), call...), c.after...)
		w := newWalk(&Unwinder{Arch: machine.AMD64, Memory: segments{{region, code}}})
		pc := region + machine.Addr(len(c.before)+len(call))
		_, m, err := w.leave(&Overwritten{At: region, End: region + machine.Addr(len(code)), From: region}, pc, machine.Range{})
		require.NoError(t, err, c.name)
		regs := machine.NewRegisters(machine.AMD64, "the test gives it none")
		regs.SetUint(machine.AMD64.SP, sp)
		regs.SetUint(rbp, bp)
		got, err := (&patchedFrame{trial: w.trial, f: &Frame{PC: pc, Registers: regs}}).spAt(&m)
		if c.want == lost {
			require.ErrorIs(t, err, errMoved, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
}
