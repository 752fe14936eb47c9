package amd64

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

func TestLength(t *testing.T) {
	for _, c := range []struct {
		code string
		want int
		text string
	}{
		{"c3", 1, "ret"},
		{"f3 0f 1e fa", 4, "endbr64"},
		{"49 bb 88 77 66 55 44 33 22 11", 10, "movabs $0x1122334455667788,%r11"},
		{"41 ff d3", 3, "call *%r11"},
		{"66 b8 01 00", 4, "mov $1,%ax"},
		{"66 48 b8 01 02 03 04 05 06 07 08", 11, "data16 movabs: REX.W wins"},
		{"48 66 b8 01 00", 5, "mov $1,%ax: a REX that no opcode follows counts for nothing"},
		{"67 a1 00 00 00 00", 6, "mov 0x0(addr32),%eax"},
		{"48 a1 01 02 03 04 05 06 07 08", 10, "movabs 0x…,%rax"},
		{"c8 10 00 01", 4, "enter $16,$1"},
		{"f6 c1 01", 3, "test $1,%cl"},
		{"f6 d1", 2, "not %cl"},
		{"f7 c1 01 00 00 00", 6, "test $1,%ecx"},
		{"66 f7 c1 01 00", 5, "test $1,%cx"},
		{"8b 05 00 00 00 00", 6, "mov 0(%rip),%eax"},
		{"8b 04 25 00 00 00 00", 7, "mov 0,%eax"},
		{"8b 44 24 08", 4, "mov 8(%rsp),%eax"},
		{"8b 84 24 00 01 00 00", 7, "mov 0x100(%rsp),%eax"},
		{"66 2e 0f 1f 84 00 00 00 00 00", 10, "cs nopw 0(%rax,%rax)"},
		{"66 66 48 e8 00 00 00 00", 8, "data16 data16 rex.W call: a call of __tls_get_addr"},
		{"0f 05", 2, "syscall"},
		{"0f 20 c0", 3, "mov %cr0,%rax"},
		{"0f 0f c1 9e", 4, "pfadd %mm1,%mm0"},
		{"66 0f 38 00 c1", 5, "pshufb %xmm1,%xmm0"},
		{"66 0f 3a 0f c1 08", 6, "palignr $8,%xmm1,%xmm0"},
		{"66 0f 78 c1 01 02", 6, "extrq $2,$1,%xmm1"},
		{"0f 78 c1", 3, "vmread %rax,%rcx"},
		{"c5 f8 77", 3, "vzeroupper"},
		{"c5 f9 70 c1 4e", 5, "vpshufd $0x4e,%xmm1,%xmm0"},
		{"c4 e2 7d 18 00", 5, "vbroadcastss (%rax),%ymm0"},
		{"c4 e3 7d 06 c1 31", 6, "vperm2f128 $0x31,%ymm1,%ymm0,%ymm0"},
		{"62 f1 7c 48 28 40 01", 7, "vmovaps 64(%rax),%zmm0"},
		{"62 f3 7d 48 1f c1 00", 7, "vpcmpd $0,%zmm1,%zmm0,%k0"},
		{"8f e9 78 81 c0", 5, "vfrczpd %xmm0,%xmm0"},
		{"8f ea 78 10 c0 04 01 00 00", 9, "bextr $0x104,%eax,%eax"},
		{"8f c0", 2, "pop %rax"},

		{"", 0, "nothing"},
		{"8b", 0, "cut"},
		{"8b 84 24 00", 0, "cut"},
		{"0f", 0, "cut"},
		{"62 f1", 0, "cut"},
		{"06", 0, "push %es, which 64-bit mode has not"},
		{"66 e8 00 00 00 00", 0, "of another length on AMD's processors than on Intel's"},
		{"66 0f 84 00 00 00 00", 0, "the same"},
		{"d5 00 01 c0", 0, "REX2"},
		{"62 f4 7c 18 01 c1", 0, "EVEX of APX"},
		{"66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", 0, "16 bytes"},
		{"66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", 15, "15 bytes"},
	} {
		var b []byte
		for _, f := range strings.Fields(c.code) {
			var v byte
			_, err := fmt.Sscanf(f, "%02x", &v)
			require.NoError(t, err)
			b = append(b, v)
		}
		require.Equal(t, c.want, Length(b), "%s  %s", c.code, c.text)
		for n := range min(c.want, len(b)) {
			require.Zero(t, Length(b[:n]), "%s, cut to %d bytes", c.code, n)
		}
	}
}

// TestLibraries requires objdump's length for each instruction of real libraries.
func TestLibraries(t *testing.T) {
	livetest.Slow(t)
	libLLVM := filepath.Join(strings.TrimSpace(run(t, livetest.LLVM(t, 19, "llvm-config"), "--libdir")), "libLLVM.so.19.1")
	for _, c := range []struct {
		path  string
		limit uint64 // number of bytes of .text that are compared
	}{
		{strings.TrimSpace(run(t, livetest.Tool(t, "gcc"), "-print-file-name=libc.so.6")), 4 << 20},
		{strings.TrimSpace(run(t, livetest.Tool(t, "gcc"), "-print-file-name=libstdc++.so.6")), 4 << 20},
		{libLLVM, 3 << 20}, // all 14,057,222 instructions in its 59 MB agreed when this was written
	} {
		f, err := elf.Open(c.path)
		require.NoError(t, err)
		text := f.Section(".text")
		code, err := text.Data()
		require.NoError(t, err)
		f.Close()
		stop := fmt.Sprintf("--stop-address=%#x", text.Addr+min(text.Size, c.limit))
		list := disassembled(t, "objdump", c.path, ".text", "-w", stop)
		require.Greater(t, len(list), 100000)
		for i, in := range list[:len(list)-Longest] { // the last instruction may be truncated
			if strings.HasPrefix(in.text, "(bad)") || strings.HasPrefix(in.text, ".byte") {
				continue // padding between functions
			}
			if n := Length(code[in.addr-text.Addr:]); list[i+1].addr-in.addr != uint64(n) {
				require.Equal(t, list[i+1].addr-in.addr, uint64(n), "%s %#x %s", c.path, in.addr, in.text)
			}
		}
	}
}

// TestOpcodes requires the length on which the disassemblers of binutils and LLVM agree. It tries each opcode of each map with every kind of
// addressing and the prefixes that change lengths.
func TestOpcodes(t *testing.T) {
	livetest.Slow(t)
	const slot = 16
	var code []byte
	add := func(parts ...[]byte) {
		at := len(code)
		for _, p := range parts {
			code = append(code, p...)
		}
		for len(code) < at+slot {
			code = append(code, 0x90)
		}
	}
	forms := []byte{0x00, 0x04, 0x05, 0x44, 0x84, 0x80, 0xc0, 0xd8}
	for op := range 256 {
		for _, m := range forms {
			tail := []byte{byte(op), m, 0x25} // as a SIB byte, 25 has no base
			for _, prefix := range [][]byte{nil, {0x66}, {0xf2}, {0xf3}, {0x48}, {0x67}} {
				for _, start := range [][]byte{nil, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}} {
					add(prefix, start, tail)
				}
			}
			for _, pp := range []byte{0xf8, 0xf9, 0xfd} {
				add([]byte{0xc5, pp}, tail)
			}
			for field := byte(1); field <= 6; field++ {
				add([]byte{0xc4, 0xe0 | field, 0x79}, tail)
				add([]byte{0xc4, 0xe0 | field, 0xfd}, tail)
				add([]byte{0x62, 0xf0 | field, 0x7d, 0x48}, tail)
				add([]byte{0x62, 0xf0 | field, 0xfe, 0x48}, tail)
			}
			for field := byte(8); field <= 10; field++ {
				add([]byte{0x8f, 0xe0 | field, 0x78}, tail)
			}
		}
	}
	dir := t.TempDir()
	source, object := filepath.Join(dir, "code.s"), filepath.Join(dir, "code.o")
	text := []byte(".text\n")
	for at := 0; at < len(code); at += 8 {
		text = fmt.Appendf(text, ".quad %#x\n", binary.LittleEndian.Uint64(code[at:]))
	}
	require.NoError(t, os.WriteFile(source, text, 0o644))
	run(t, livetest.LLVM(t, 22, "llvm-mc"), "-triple=x86_64", "-filetype=obj", source, "-o", object)
	gnu := lengths(disassembled(t, "objdump", object, ".text", "-w"))
	llvm := lengths(disassembled(t, livetest.LLVM(t, 22, "llvm-objdump"), object, ".text"))

	agreed, none := 0, 0
	for at := 0; at < len(code); at += slot {
		b := code[at : at+slot]
		g, l := gnu[uint64(at)], llvm[uint64(at)]
		if g.n == 0 || g.n != l.n {
			continue // one disassembler does not know the instruction, or processors differ
		}
		switch n := Length(b); n {
		case g.n:
			agreed++
		case 0:
			none++
			padlock := strings.Contains(fmt.Sprintf("%x", b), "0fa6") || strings.Contains(fmt.Sprintf("%x", b), "0fa7") // VIA PadLock
			branch := strings.HasPrefix(fmt.Sprintf("%x", b), "660f8") || b[0] == 0x66 && (b[1] == 0xe8 || b[1] == 0xe9)
			require.True(t, padlock || branch, "% x: %s has %d bytes", b, g.text, g.n)
		default:
			require.Equal(t, g.n, n, "% x: %s", b, g.text)
		}
	}
	require.Greater(t, agreed, 20000)
	require.Less(t, none, 500)
}

type length struct {
	n    int
	text string
}

// lengths returns the lengths of disassembled instructions by address. It omits invalid ones, and prefixes that a disassembler lists separately.
func lengths(list []instruction) map[uint64]length {
	out := make(map[uint64]length, len(list))
	for i, in := range list[:len(list)-1] {
		first, _, _ := strings.Cut(in.text, " ")
		first, _, _ = strings.Cut(first, "\t")
		switch {
		case in.text == "", strings.Contains(in.text, "(bad)"), strings.Contains(in.text, "<unknown>"), strings.HasPrefix(in.text, ".byte"):
		case strings.HasPrefix(first, "rex"), first == in.text && strings.Contains("lock rep repz repnz data16 addr32 cs ds es fs gs ss xacquire xrelease", first):
		default:
			out[in.addr] = length{int(list[i+1].addr - in.addr), in.text}
		}
	}
	return out
}

// instruction is a line of a disassembler's output.
type instruction struct {
	addr uint64
	text string
}

// disassembled returns the instructions of a section that an objdump prints.
func disassembled(t *testing.T, tool, path, section string, more ...string) []instruction {
	t.Helper()
	var list []instruction
	for line := range strings.Lines(run(t, tool, append([]string{"-d", "-j", section, "-z", "--no-show-raw-insn", path}, more...)...)) {
		head, rest, ok := strings.Cut(line, ":")
		addr, err := strconv.ParseUint(strings.TrimSpace(head), 16, 64)
		if !ok || err != nil || !strings.HasPrefix(line, " ") {
			continue
		}
		list = append(list, instruction{addr, strings.TrimSpace(rest)})
	}
	return list
}

// run runs a tool and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if slices.Contains(args, "-o") {
		livetest.Make(t, name, args...)
		return ""
	}
	return livetest.Printed(t, name, args...)
}
