package machine

import (
	"debug/elf"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// callsOf maps architectures to objdump's text of calls: the mnemonic, a space, the operands.
var callsOf = map[*Arch]struct {
	prefix string // prefix of the names of the tools, and of the directory of the architecture's libc
	calls  *regexp.Regexp
}{
	ARM64:   {"aarch64-linux-gnu", regexp.MustCompile(`^(bl|blr|blra[ab]z?) `)},
	PPC64:   {"powerpc64-linux-gnu", regexp.MustCompile(`^b\w*l[+-]?( |$)`)},
	PPC64LE: {"powerpc64le-linux-gnu", regexp.MustCompile(`^b\w*l[+-]?( |$)`)},
	RISCV64: {"riscv64-linux-gnu", regexp.MustCompile(`^jalr? (ra,|[^,]*$)`)},
	S390X:   {"s390x-linux-gnu", regexp.MustCompile(`^(brasl|bras|bas|basr|bassm) %r14,`)},
}

// TestCallsOfLibraries requires that the calls that objdump prints for the C library of each architecture are the instructions that this package takes for
// calls.
func TestCallsOfLibraries(t *testing.T) {
	livetest.Slow(t)
	for arch, a := range callsOf {
		t.Run(arch.Name, func(t *testing.T) {
			library := fmt.Sprintf("/usr/%s/lib/libc.so.6", a.prefix)
			code := textOf(t, library)
			shortest := 8
			for _, f := range arch.Calls.Forms {
				shortest = min(shortest, f.Size)
			}
			calls, others, alike := 0, 0, 0
			for line := range strings.Lines(livetest.Printed(t, a.prefix+"-objdump", "-d", "-j", ".text", library)) {
				field := strings.Split(strings.TrimSpace(line), "\t")
				if len(field) < 3 {
					continue
				}
				addr, err := strconv.ParseUint(strings.TrimSuffix(field[0], ":"), 16, 64)
				require.NoError(t, err)
				size := len(strings.ReplaceAll(strings.TrimSpace(field[1]), " ", "")) / 2
				text := field[2]
				if len(field) > 3 {
					text += " " + field[3]
				}
				inst := code.at(t, addr, size)
				switch is, said := a.calls.MatchString(text), arch.EndsInCall(inst); {
				case is:
					require.True(t, said, line)
					calls++
				case said:
					// This is the end of a longer instruction.
					require.Greater(t, size, shortest, line)
					alike++
				default:
					others++
				}
			}
			t.Logf("%d calls, %d other instructions, %d that end like a call", calls, others, alike)
			require.Greater(t, calls, 10_000)
			require.Greater(t, others, 100_000)
			require.Less(t, alike, others/500)
		})
	}
}

// segmentCode is code with its address.
type segmentCode struct {
	addr uint64
	data []byte
}

func textOf(t *testing.T, path string) segmentCode {
	t.Helper()
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer file.Close()
	text := file.Section(".text")
	data, err := text.Data()
	require.NoError(t, err)
	return segmentCode{text.Addr, data}
}

func (c segmentCode) at(t *testing.T, addr uint64, size int) []byte {
	t.Helper()
	require.LessOrEqual(t, addr-c.addr+uint64(size), uint64(len(c.data)))
	return c.data[addr-c.addr:][:size]
}

// TestCallForms covers forms that are rare in libraries, as the assembler encodes them.
func TestCallForms(t *testing.T) {
	for _, c := range []struct {
		arch *Arch
		call bool
		code string // bytes in memory, in hexadecimal
	}{
		{ARM64, true, "00083fd7"},         // blraa x0, x0
		{ARM64, true, "1f083fd6"},         // blraaz x0
		{ARM64, true, "3f0d3fd6"},         // blrabz x9
		{ARM64, true, "430d3fd7"},         // blrab x10, x3
		{ARM64, false, "1f081fd6"},        // braaz x0
		{ARM64, false, "00005fd6"},        // ret x0
		{ARM64BE, true, "00003fd6"},       // blr x0: instructions are little-endian
		{PPC64, true, "4e800021"},         // blrl
		{PPC64, true, "4e800461"},         // bctarl
		{PPC64, true, "429f0005"},         // bcl 20,31,.+4
		{PPC64, false, "4e800020"},        // blr
		{PPC64LE, true, "2104804e"},       // bctrl
		{PPC64LE, false, "2004804e"},      // bctr
		{PPC64LE, false, "4e800421"},      // in the wrong byte order
		{RISCV64, true, "8290"},           // c.jalr ra
		{RISCV64, true, "8297"},           // c.jalr a5
		{RISCV64, false, "0290"},          // c.ebreak
		{RISCV64, false, "8297" + "0000"}, // a call, and bytes that may be another instruction
		{RISCV64, true, "e7800500"},       // jalr ra, a1
		{RISCV64, false, "67800500"},      // jr a1
		{RISCV64, false, "e7820200"},      // jalr t0, t0: does not link to ra
		{S390X, true, "0de1"},             // basr %r14,%r1
		{S390X, false, "0de0"},            // basr %r14,0
		{S390X, true, "0ce1"},             // bassm %r14,%r1
		{S390X, true, "4de01000"},         // bas %r14,0(%r1)
		{S390X, false, "0d10"},            // basr %r1,0
		{S390X, false, "c0f400000010"},    // brcl 15: jg
		{LOONG64, true, "00040054"},       // bl .+4
		{LOONG64, true, "8100004c"},       // jirl $ra, $a0, 0
		{LOONG64, false, "2000004c"},      // ret
		{ARM64, false, ""},
		{ARM64, false, "0094"}, // shorter than an instruction
	} {
		code := make([]byte, len(c.code)/2)
		_, err := fmt.Sscanf(c.code, "%x", &code)
		require.True(t, c.code == "" || err == nil)
		require.Equal(t, c.call, c.arch.EndsInCall(code), "%s %s", c.arch.Name, c.code)
		if c.call {
			require.True(t, c.arch.EndsInCall(append(make([]byte, 8), code...)), "%s %s", c.arch.Name, c.code)
		}
	}
	require.False(t, AMD64.EndsInCall([]byte{0xff, 0xd0}))
}
