package amd64

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		code  string
		size  int
		known bool
		text  string
	}{
		{"48 83 ec 08 c3", 4, true, "sub $0x8,%rsp"},
		{"4c 8d 9c 24 00 b0 ff ff", 8, true, "lea -0x5000(%rsp),%r11"},
		{"f3 0f 1e fa c3", 4, true, "nop"},  // endbr64
		{"c5 f8 77 c3", 3, true, "nop"},     // vzeroupper
		{"c5 fc 77", 3, true, "nop"},        // vzeroall
		{"f3 c3", 2, true, "rep retq"},      // the same as ret
		{"66 4c 0f 38 f6 c1", 6, false, ""}, // adcx %rcx,%r8
		{"48 0f c7 f0", 4, false, ""},       // rdrand %rax
		{"0f c7 f8", 3, false, ""},          // rdseed %eax
		{"06", 0, false, ""},                // invalid
		{"48 83 ec", 0, false, ""},          // truncated
		{"", 0, false, ""},
	} {
		inst, known := Decode(bytesOf(t, c.code))
		require.Equal(t, c.size, inst.Len, c.code)
		require.Equal(t, c.known, known, c.code)
		if known {
			require.Equal(t, c.text, x86asm.GNUSyntax(inst, 0, nil), c.code)
		}
	}
}

func TestIsFiller(t *testing.T) {
	for code, filler := range map[string]bool{
		"90":                            true,
		"66 90":                         true,
		"0f 1f 40 00":                   true,  // nopl (%rax)
		"66 2e 0f 1f 84 00 00 00 00 00": true,  // nopw %cs:(%rax,%rax)
		"f3 0f 1e fa":                   false, // endbr64
		"c5 f8 77":                      false, // vzeroupper
		"f3 90":                         false, // pause
		"48 89 c0":                      false, // mov %rax,%rax
		"06":                            false, // invalid
	} {
		inst, _ := Decode(bytesOf(t, code))
		require.Equal(t, filler, IsFiller(inst), code)
	}
}

// TestDisplacement requires that displacements of four bytes are sign-extended.
func TestDisplacement(t *testing.T) {
	for code, want := range map[string]int64{
		"4c 8d 9c 24 00 b0 ff ff":    -0x5000, // lea -0x5000(%rsp),%r11
		"48 8b 85 c8 f8 ff ff":       -0x738,  // mov -0x738(%rbp),%rax
		"48 8b 85 38 07 00 00":       0x738,   // mov 0x738(%rbp),%rax
		"48 8d 64 04 80":             -0x80,   // lea -0x80(%rsp,%rax),%rsp
		"48 8d 05 f9 ff ff ff":       -7,      // lea -7(%rip),%rax
		"48 8b 04 25 ff ff ff 7f":    0x7fffffff,
		"c5 f8 29 85 00 ff ff ff 90": -0x100, // vmovaps %xmm0,-0x100(%rbp)
	} {
		inst, known := Decode(bytesOf(t, code))
		require.True(t, known, code)
		memory, ok := inst.Args[0].(x86asm.Mem)
		if !ok {
			memory = inst.Args[1].(x86asm.Mem)
		}
		require.Equal(t, want, memory.Disp, code)
	}
}

func TestRead(t *testing.T) {
	m := text("\xc5\xf8\x77\x50")
	inst, known, err := Read(m, 0x1000)
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, 3, inst.Len)
	inst, known, err = Read(m, 0x1003) // only one byte is readable
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, x86asm.PUSH, inst.Op)
	_, known, err = Read(m, 0x1004)
	require.EqualError(t, err, "1 bytes at 0x1004: not mapped")
	require.False(t, known)
}

func TestRegister(t *testing.T) {
	for r, want := range map[x86asm.Reg]struct {
		reg  machine.DWARFReg
		size int
	}{
		x86asm.RAX: {0, 8}, x86asm.RSP: {7, 8}, x86asm.R15: {15, 8}, x86asm.EBX: {3, 4}, x86asm.R12L: {12, 4},
		x86asm.BP: {6, 2}, x86asm.R8W: {8, 2}, x86asm.BL: {3, 1}, x86asm.BH: {3, 1}, x86asm.AH: {0, 1},
		x86asm.SPB: {7, 1}, x86asm.DIB: {5, 1}, x86asm.R14B: {14, 1},
	} {
		reg, size, ok := Register(r)
		require.True(t, ok, r)
		require.Equal(t, want.reg, reg, r)
		require.Equal(t, want.size, size, r)
	}
	for _, r := range []x86asm.Reg{0, x86asm.RIP, x86asm.X0, x86asm.FS, x86asm.K1} {
		_, _, ok := Register(r)
		require.False(t, ok, r)
	}
}

func TestWrites(t *testing.T) {
	for _, c := range []struct {
		code, text string
		want       Set
	}{
		{"48 89 e5", "mov %rsp,%rbp", Of(rbp)},
		{"89 c3", "mov %eax,%ebx", Of(rbx)},
		{"88 c7", "mov %al,%bh", Of(rbx)},
		{"48 39 e5", "cmp %rsp,%rbp", 0},
		{"85 db", "test %ebx,%ebx", 0},
		{"53", "push %rbx", Of(rsp)},
		{"5b", "pop %rbx", Of(rbx, rsp)},
		{"87 dd", "xchg %ebx,%ebp", Of(rbx, rbp)},
		{"0f c1 dd", "xadd %ebx,%ebp", Of(rbx, rbp)},
		{"48 f7 e3", "mul %rbx", Of(rax, rdx)},
		{"48 0f af d8", "imul %rax,%rbx", Of(rbx)},
		{"48 f7 fb", "idiv %rbx", Of(rax, rdx)},
		{"0f a2", "cpuid", Of(rax, rbx, rcx, rdx)},
		{"c9", "leave", Of(rsp, rbp)},
		{"c8 10 00 00", "enter $16,$0", Of(rsp, rbp)},
		{"f3 48 ab", "rep stosq", Of(rcx, rdi)},
		{"f3 a4", "rep movsb", Of(rcx, rsi, rdi)},
		{"f2 0f 10 c1", "movsd %xmm1,%xmm0", 0},
		{"c5 f9 6e c3", "vmovd %ebx,%xmm0", 0},
		{"c5 f9 7e c3", "vmovd %xmm0,%ebx", Of(rbx)},
		{"c5 fb 93 dc", "kmovd %k4,%ebx", Of(rbx)},
		{"c4 e2 e3 f6 c1", "mulx %rcx,%rbx,%rax", Of(rax, rbx)},
		{"c4 e2 e0 f3 c8", "blsr %rax,%rbx", Of(rbx)},
		{"c4 c3 fb f0 dc 07", "rorx $7,%r12,%rbx", Of(rbx)},
		{"0f c7 f3", "rdrand %ebx", Of(rbx)},
		{"48 8b 04 25 00 00 00 00", "mov 0,%rax", Of(rax)},
		{"48 8d 6c 24 08", "lea 8(%rsp),%rbp", Of(rbp)},
		{"0f 05", "syscall", Of(rax, rcx, r11)},
		{"ff d3", "call *%rbx", Of(rsp)},
		{"0f 18 0b", "prefetcht0 (%rbx)", 0},
	} {
		inst, known := Decode(bytesOf(t, c.code))
		require.True(t, known, c.text)
		require.Equal(t, c.want, Writes(inst), c.text)
	}
	require.True(t, Of(rbx, 15).Has(15))
	require.False(t, Of(rbx, 15).Has(rbp))
	require.False(t, Of(rbx).Has(19))
}

func TestStores(t *testing.T) {
	for _, c := range []struct {
		code, text string
		size       int
		at         string
	}{
		{"48 89 6c 24 e8", "mov %rbp,-24(%rsp)", 8, "[RSP-0x18]"},
		{"89 45 f8", "mov %eax,-8(%rbp)", 4, "[RBP-0x8]"},
		{"48 83 0c 24 00", "orq $0,(%rsp)", 8, "[RSP]"},
		{"0f 29 44 24 10", "movaps %xmm0,16(%rsp)", 16, "[RSP+0x10]"},
		{"c5 fc 11 45 c0", "vmovups %ymm0,-64(%rbp)", 32, "[RBP-0x40]"},
		{"db 3c 24", "fstpt (%rsp)", 10, "[RSP]"},
		{"d9 75 e0", "fnstenv -32(%rbp)", 28, "[RBP-0x20]"},
		{"48 0f ae 44 24 40", "fxsave64 64(%rsp)", 512, "[RSP+0x40]"},
		{"f3 48 ab", "rep stosq", 8, "[RDI]"},
		{"8f 44 24 08", "pop 8(%rsp)", 8, "[RSP+0x8]"},
		{"48 8b 45 f8", "mov -8(%rbp),%rax", 0, ""},
		{"ff 74 24 08", "push 8(%rsp)", 0, ""},
		{"48 83 7d f8 00", "cmpq $0,-8(%rbp)", 0, ""},
		{"48 8d 6c 24 08", "lea 8(%rsp),%rbp", 0, ""},
		{"db 2c 24", "fldt (%rsp)", 0, ""},
	} {
		inst, known := Decode(bytesOf(t, c.code))
		require.True(t, known, c.text)
		at, size, ok := Stores(inst)
		require.Equal(t, c.size > 0, ok, c.text)
		require.Equal(t, c.size, size, c.text)
		if ok {
			require.Equal(t, c.at, strings.Replace(at.String(), "+Reg(0)", "", 1), c.text)
		}
	}
}
