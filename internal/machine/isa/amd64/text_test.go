package amd64

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

func TestText(t *testing.T) {
	symbol := func(addr machine.Addr) string {
		return map[machine.Addr]string{0x1010: "f", 0x1000: "g+0x8"}[addr]
	}
	for _, test := range []struct {
		code, want string
		length     int
	}{
		{"\xf3\x0f\x1e\xfa", "endbr64", 4},
		{"\xc5\xf8\x77", "vzeroupper", 3},
		{"\xc5\xfc\x77", "vzeroall", 3},
		{"\xc5\xf0\x77", Bad, 3}, // its vvvv must be all ones
		{"\xe8\x0b\x00\x00\x00", "callq 0x1010 <f>", 5},
		{"\x74\xfe", "je 0x1000 <g+0x8>", 2},
		{"\xeb\x00", "jmp 0x1002", 2},
		{"\x64\x48\x8b\x04\x25\x00\x00\x00\x00", "mov %fs:0x0,%rax", 9},
		{"\x64\x48\x8b\x04\x25\x10\x00\x00\x00", "mov %fs:0x10,%rax", 9},
		{"\x49\x8b\xbc\x24\x88\x00\x00\x00", "mov 0x88(%r12),%rdi", 8},
		{"\x0f\x05\x90", "syscall", 2},
		{"\x06\x90", Bad, 1}, // push %es is invalid in 64-bit mode
		{"\xe8\x00\x00", Bad, 1},
		{"", Bad, 0},
	} {
		text, length := Text([]byte(test.code), 0x1000, symbol)
		require.Equal(t, test.want, text, "% x", test.code)
		require.Equal(t, test.length, length, "% x", test.code)
	}
}

// TestTextOfAnything requires a text, and a length within the bytes, for any bytes.
func TestTextOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		b := make([]byte, random.IntN(Longest+3))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		text, length := Text(b, machine.Addr(random.Uint64()), func(machine.Addr) string { return "" })
		require.NotEmpty(t, text)
		require.LessOrEqual(t, length, len(b))
		require.Equal(t, len(b) > 0, length > 0)
	}
}

// objdumpRow matches a row of objdump -d: address, bytes, text.
var objdumpRow = regexp.MustCompile(`(?m)^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(.*)$`)

// spellings normalizes texts that differ by the version of binutils or by style.
var spellings = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\s*[#<].*$`), ""},
	{regexp.MustCompile(`\s+`), " "},
	{regexp.MustCompile(`^(call|ret|jmp|push|pop)q`), "$1"},
	{regexp.MustCompile(`^movabs`), "mov"},
	{regexp.MustCompile(`^movsxd`), "movslq"},
	{regexp.MustCompile(`^cdqe`), "cltq"},
	{regexp.MustCompile(`^cqo$`), "cqto"},
	{regexp.MustCompile(`^cdq$`), "cltd"},
	{regexp.MustCompile(`^(.*)\bnop.*$`), "nop"}, // prefixes and operands of nops
	{regexp.MustCompile(`^xchg %ax,%ax$`), "nop"},
	{regexp.MustCompile(`^(j\w+|call) ([0-9a-f]+)$`), "$1 0x$2"},
	{regexp.MustCompile(`%st\(0\)`), "%st"},
	{regexp.MustCompile(`,1\)`), ")"},
	{regexp.MustCompile(`\b0x0\(`), "("},
}

func plain(text string) string {
	for _, s := range spellings {
		text = s.from.ReplaceAllString(strings.TrimSpace(text), s.to)
	}
	return text
}

var negative = regexp.MustCompile(`\$-0x[0-9a-f]+`)

// agrees reports whether two texts describe the same instruction. objdump prints a negative number with the width of the operand.
func agrees(ours, theirs string) bool {
	for _, bits := range []int{8, 16, 32, 64} {
		unsigned := negative.ReplaceAllStringFunc(ours, func(n string) string {
			v, err := strconv.ParseInt(n[1:], 0, 64)
			if err != nil {
				return n
			}
			return fmt.Sprintf("$%#x", uint64(v)&(^uint64(0)>>(64-bits)))
		})
		if unsigned == theirs || ours == theirs {
			return true
		}
	}
	return false
}

// TestTextAgainstObjdump requires objdump's text for instructions that compilers emit.
func TestTextAgainstObjdump(t *testing.T) {
	objdump := livetest.Tool(t, "objdump")
	check := func(path string) {
		out, err := exec.Command(objdump, "-d", "--insn-width=16", path).Output()
		require.NoError(t, err)
		rows := objdumpRow.FindAllStringSubmatch(string(out), -1)
		require.NotEmpty(t, rows)
		for _, row := range rows {
			at, err := strconv.ParseUint(row[1], 16, 64)
			require.NoError(t, err)
			code, err := hex.DecodeString(strings.ReplaceAll(row[2], " ", ""))
			require.NoError(t, err)
			got, length := Text(code, machine.Addr(at), func(machine.Addr) string { return "" })
			require.Len(t, code, length, row[0])
			require.NotContains(t, got, ",,", row[0])
			if ours, theirs := plain(got), plain(row[3]); !agrees(ours, theirs) {
				require.Equal(t, theirs, ours, row[0])
			}
		}
	}
	for _, program := range []string{"deoptimize.ll", "jit_pp.ll", "jit_sp.ll", "false_match.ll", "chain.ll", "odd_types.ll", "live_memory.ll"} {
		for _, level := range []string{"-O0", "-O2"} {
			check(livetest.Object(t, 19, program, level))
		}
	}
	for _, source := range []string{"threads.c", "clock.c", "nojit.c"} {
		check(livetest.CBinary(t, source, "-O2"))
	}
}
