package amd64

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

func TestMayWrite(t *testing.T) {
	for _, c := range []struct {
		code   string
		writes Set
		text   string
	}{
		{"89 d8", Of(rax), "mov %ebx,%eax"},
		{"48 ff c3", Of(rbx), "inc %rbx"},
		{"b7 01", Of(rbx), "mov $1,%bh"},
		{"0f a2", Of(rax, rbx, rcx, rdx), "cpuid"},
		{"41 5f", Of(rsp, 15), "pop %r15"},
		{"4d 87 f7", Of(14, 15), "xchg %r14,%r15"},
		{"c4 e2 63 f6 d1", Of(rdx, rbx), "mulx %ecx,%ebx,%edx"},
		{"c4 c2 60 f3 cf", Of(rbx), "blsr %r15d,%ebx"},
		{"c4 42 f9 f7 e7", Of(12), "shlx %rax,%r15,%r12"},
		{"c4 63 fb f0 e0 05", Of(12), "rorx $5,%rax,%r12"},
		{"c4 e1 f9 7e c3", Of(rbx), "vmovq %xmm0,%rbx"},
		{"c5 f9 7e 1b", 0, "vmovd %xmm3,(%rbx)"},
		{"c5 e0 58 db", 0, "vaddps %xmm3,%xmm3,%xmm3"},
		{"c5 fb 93 d9", Of(rbx), "kmovd %k1,%ebx"},
		{"62 61 7c 48 28 db", 0, "vmovaps %zmm3,%zmm27"},
		{"f3 0f c7 fb", Of(rbx, rdi), "rdpid %rbx, which is not known: either"},
		{"8f e9 60 01 cb", Every, "blcfill %ebx,%ebx: XOP"},
		{"62 f4 64 18 01 c3", Every, "add %eax,%ebx,%ebx: APX"},
		{"06", Every, "no instruction"},
		{"", Every, "nothing"},
	} {
		writes, inst := mayWrite(bytesOf(t, c.code))
		require.Equal(t, c.writes, writes, c.text)
		require.LessOrEqual(t, inst.Len, Longest)
	}
	require.Equal(t, Of(rax, rbx, 15), Clobbers(bytesOf(t, "89 d8 c5 e0 58 db 48 ff c3 41 89 c7")))
	require.Equal(t, Every, Clobbers(bytesOf(t, "90 06 90")))
	require.Zero(t, Clobbers(nil))
	require.Zero(t, Clobbers(bytesOf(t, "ff 25 00 00 00 00 06 16 5b 5b 06 16 00 00 90")), "a jump through the word behind it")
	require.Equal(t, Every, Clobbers(bytesOf(t, "ff 25 01 00 00 00 06 16 5b 5b 06 16 00 00 90")), "or a byte further on")
}

// TestMayWriteIsLLVMs requires that an instruction with a VEX or EVEX prefix writes a general register if LLVM disassembles it with one as its destination.
func TestMayWriteIsLLVMs(t *testing.T) {
	var codes []string
	for _, prefix := range []string{"c4", "62"} {
		for opcodes := 1; opcodes <= 6; opcodes++ {
			for w := 0; w < 256; w += 0x80 {
				for pp := range 4 {
					for op := range 256 {
						code := fmt.Sprintf("c4 %02x %02x %02x db 05", 0xe0|opcodes, w|0x78|pp, op) // both registers are number 3; vvvv is unused
						used := fmt.Sprintf("c4 %02x %02x %02x db 05", 0xe0|opcodes, w|0x20|pp, op) // vvvv is register 11
						if prefix == "62" {
							code = fmt.Sprintf("62 %02x %02x 08 %02x db 05", 0xf0|opcodes, w|0x7c|pp, op)
							used = fmt.Sprintf("62 %02x %02x 08 %02x db 05", 0xf0|opcodes, w|0x24|pp, op)
						}
						if opcodes != 4 { // 4 is APX
							codes = append(codes, code, used)
						}
					}
				}
			}
		}
	}
	var in bytes.Buffer
	for _, code := range codes {
		fmt.Fprintf(&in, "[0x%s]\n", strings.ReplaceAll(code, " ", " 0x"))
	}
	mc := exec.Command(livetest.LLVM(t, 22, "llvm-mc"), "-disassemble", "-show-encoding", "-triple=x86_64",
		"-mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512fp16,+avx512bf16,+bmi,+bmi2,+cmpccxadd")
	mc.Stdin = &in
	out, _ := mc.Output() // its exit status reports invalid instructions
	line := regexp.MustCompile(`(?m)^\s*(\S.*[^\s(]%|.*[\s,]%)([a-z0-9]+)\s+# encoding: \[(0x(?:c4|c5|62),[0-9a-fx,]+)\]$`)
	general := map[string]machine.DWARFReg{"ebx": rbx, "rbx": rbx, "bl": rbx, "bx": rbx, "r11": r11, "r11d": r11}
	found := map[string]bool{}
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		reg, is := general[m[2]]
		if !is {
			continue
		}
		writes, _ := mayWrite(bytesOf(t, strings.NewReplacer("0x", "", ",", "").Replace(m[3])))
		require.True(t, writes.Has(reg), m[0])
		found[strings.Fields(m[0])[0]] = true
	}
	for _, mnemonic := range []string{"vcvttsh2usi", "andnq", "vpextrq", "vextractps", "mulxl", "kmovd"} {
		require.True(t, found[mnemonic], mnemonic)
	}
}
