package gostack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// bytesAt is memory with code at one address and a stack at another.
type bytesAt map[machine.Addr][]byte

func (m bytesAt) ReadMemory(p []byte, addr machine.Addr) error {
	for start, b := range m {
		if at := uint64(addr - start); at < uint64(len(b)) && len(p) <= len(b)-int(at) {
			copy(p, b[at:])
			return nil
		}
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
}

// TestEmulator runs machine code that was assembled by hand. The stack has the words 0x100, 0x200, 0x300 and 0x400 at 0x9000.
func TestEmulator(t *testing.T) {
	stack := make([]byte, 32)
	for i := range 4 {
		machine.AMD64.Order.PutUint64(stack[8*i:], uint64(0x100*(i+1)))
	}
	for _, c := range []struct {
		name   string
		code   []byte
		pc, sp uint64
		fp     uint64 // 0 for unknown
		err    string
	}{
		{"ret", []byte{0xc3}, 0x100, 0x9008, 0, ""},
		{"pop %rbp; ret", []byte{0x5d, 0xc3}, 0x200, 0x9010, 0x100, ""},
		{"add $0x10,%rsp; pop %rbp; ret", []byte{0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3}, 0x400, 0x9020, 0x300, ""},
		{"mov $0x9008,%rsi; mov %rsi,%rsp; ret", []byte{0x48, 0xc7, 0xc6, 8, 0x90, 0, 0, 0x48, 0x89, 0xf4, 0xc3}, 0x200, 0x9010, 0, ""},
		{"a store is seen: mov $7,(%rsp); ret", []byte{0x48, 0xc7, 0x04, 0x24, 7, 0, 0, 0, 0xc3}, 7, 0x9008, 0, ""},
		{"the goroutine: mov %fs:-8,%rax; mov %rax,(%rsp); ret", []byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48, 0x89, 0x04, 0x24, 0xc3}, 0x9010, 0x9008, 0, ""},
		{"both ways return alike: je +1; nop; ret", []byte{0x74, 1, 0x90, 0xc3}, 0x100, 0x9008, 0, ""},
		{"they do not: je +1; pop %rbp; ret", []byte{0x74, 1, 0x5d, 0xc3}, 0, 0, 0, "different places"},
		{"a loop: jmp -2", []byte{0xeb, 0xfe}, 0, 0, 0, "does not return within 128 instructions"},
		{"unknown conditions: je +0, five times; ret", []byte{0x74, 0, 0x74, 0, 0x74, 0, 0x74, 0, 0x74, 0, 0xc3}, 0, 0, 0, "more than 4 conditions"},
		{"a store to an unknown place: mov %rax,(%rbx)", []byte{0x48, 0x89, 0x03, 0xc3}, 0, 0, 0, "the value or the place is unknown"},
		{"the stack pointer is lost: mov %rax,%rsp; ret", []byte{0x48, 0x89, 0xc4, 0xc3}, 0, 0, 0, "the stack pointer is unknown"},
		{"the stack ends: ret with %rsp outside", []byte{0x48, 0x81, 0xc4, 0, 1, 0, 0, 0xc3}, 0, 0, 0, "not mapped"},
		{"an unknown word: mov %rax,(%rsp); ret", []byte{0x48, 0x89, 0x04, 0x24, 0xc3}, 0, 0, 0, "replaced by an unknown value"},
		{"a part of a word: movl $7,4(%rsp); ret", []byte{0xc7, 0x44, 0x24, 4, 7, 0, 0, 0, 0xc3}, 0, 0, 0, "replaced by an unknown value"},
		{"another thread-local variable: mov %fs:-8,%rax; mov %fs:-16,%rax", []byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xf0, 0xff, 0xff, 0xff}, 0, 0, 0, "a second thread-local variable"},
		{"flags of xor: cmp $0,%rsp; xor %edi,%edi; jne +1; pop %rbp; ret", []byte{0x48, 0x83, 0xfc, 0, 0x31, 0xff, 0x75, 1, 0x5d, 0xc3}, 0, 0, 0, "different places"},
		{"ret $8", []byte{0xc2, 8, 0}, 0, 0, 0, "not supported"},
		{"another instruction: syscall", []byte{0x0f, 0x05}, 0, 0, 0, "not supported"},
		{"no instruction", []byte{0x06}, 0, 0, 0, "cannot decode"},
		{"the code ends: nop", []byte{0x90}, 0, 0, 0, "not mapped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &view{Memory: bytesAt{0x5000: c.code, 0x9000: stack}, arch: machine.AMD64}
			e := emulator{memory: m, g: 0x9010, pc: 0x5000, registers: map[register]uint64{rsp: 0x9000}}
			err := e.run()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []uint64{c.pc, c.sp, c.fp}, []uint64{e.pc, e.registers[rsp], e.registers[rbp]})
		})
	}
}

// FuzzEmulator requires that the emulation of any code ends, without a panic.
func FuzzEmulator(f *testing.F) {
	f.Add([]byte{0x5d, 0xc3})
	f.Add([]byte{0x74, 0xfe, 0x48, 0x89, 0xc4, 0xc3})
	f.Fuzz(func(t *testing.T, code []byte) {
		m := &view{Memory: bytesAt{0x5000: code, 0x9000: make([]byte, 256)}, arch: machine.AMD64}
		e := emulator{memory: m, pc: 0x5000, registers: map[register]uint64{rsp: 0x9000}}
		_ = e.run()
	})
}
