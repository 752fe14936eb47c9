package isa_test

import (
	"debug/elf"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/test/livetest"
)

// libraries lists the C libraries of other architectures, and patterns for binutils' text of the instructions that this package recognizes.
var libraries = []struct {
	arch         *machine.Arch
	prefix       string         // prefix of the names of the tools, and of the directory of the C library
	call, jump   *regexp.Regexp // match the mnemonic, a space and the operands
	never        *regexp.Regexp // matches jumps that are never taken
	calls, jumps int            // least numbers of calls and jumps
}{
	{machine.PPC64, "powerpc64-linux-gnu", regexp.MustCompile(`^b\w*l[+-]?( |$)`), regexp.MustCompile(`^b\S* .*<`), nil, 10_000, 30_000},
	{machine.PPC64LE, "powerpc64le-linux-gnu", regexp.MustCompile(`^b\w*l[+-]?( |$)`), regexp.MustCompile(`^b\S* .*<`), nil, 10_000, 30_000},
	{machine.RISCV64, "riscv64-linux-gnu", regexp.MustCompile(`^jalr? (ra,|[^,]*$)`), regexp.MustCompile(`^(j|b\w+) .*<`), nil, 10_000, 30_000},
	{machine.S390X, "s390x-linux-gnu", regexp.MustCompile(`^(brasl|bras|bas|basr|bassm) %r14,`), regexp.MustCompile(`^(j\w*|brc|brcl|brct\w*|c\w*rj\w*|c\w*ij\w*|brx\w+) .*<`), regexp.MustCompile(`^jg?nop`), 10_000, 30_000},
}

// instruction is an instruction that objdump prints.
type instruction struct {
	addr   uint64
	code   []byte // the code from the instruction to the end of the section
	length int
	text   string
}

// TestLibraries requires objdump's length, call and jump target for each instruction of real libraries.
func TestLibraries(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, l := range libraries {
		t.Run(l.arch.Name, func(t *testing.T) {
			t.Parallel()
			set := isa.Of(l.arch)
			calls, jumps := 0, 0
			target := regexp.MustCompile(`([0-9a-f]+)( <[^>]*>)?$`)
			for _, i := range listed(t, l.prefix) {
				if strings.HasPrefix(i.text, ".") || i.text == "unimp" {
					continue // objdump does not know it
				}
				isCall := l.call.MatchString(i.text)
				if i.length != set.Length(i.code) || isCall != set.IsCall(i.code) { // avoids a million calls of require
					require.Equal(t, i.length, set.Length(i.code), "%x %s", i.addr, i.text)
					require.Equal(t, isCall, set.IsCall(i.code), "%x %s", i.addr, i.text)
				}
				isJump := l.jump.MatchString(i.text) && (l.never == nil || !l.never.MatchString(i.text)) && !isCall
				to, ok := set.Jump(i.code, machine.Addr(i.addr))
				if isJump {
					m := target.FindStringSubmatch(i.text)
					require.True(t, ok, "%x %s", i.addr, i.text)
					require.Equal(t, m[1], fmt.Sprintf("%x", uint64(to)), "%x %s", i.addr, i.text)
					jumps++
				} else if ok {
					require.False(t, ok, "%x %s", i.addr, i.text)
				}
				if isCall {
					calls++
				}
			}
			t.Logf("%d calls, %d jumps", calls, jumps)
			require.Greater(t, calls, l.calls)
			require.Greater(t, jumps, l.jumps)
		})
	}
}

func listed(t *testing.T, prefix string) (list []instruction) {
	t.Helper()
	library := fmt.Sprintf("/usr/%s/lib/libc.so.6", prefix)
	file, err := elf.Open(library)
	require.NoError(t, err)
	defer file.Close()
	section := file.Section(".text")
	text, err := section.Data()
	require.NoError(t, err)
	for line := range strings.Lines(livetest.Printed(t, prefix+"-objdump", "-d", "-w", "-j", ".text", library)) {
		field := strings.Split(strings.TrimSpace(line), "\t")
		if len(field) < 3 {
			continue
		}
		addr, err := strconv.ParseUint(strings.TrimSuffix(field[0], ":"), 16, 64)
		require.NoError(t, err)
		length := len(strings.ReplaceAll(strings.TrimSpace(field[1]), " ", "")) / 2
		list = append(list, instruction{addr, text[addr-section.Addr:], length, strings.Join(field[2:], " ")})
	}
	require.Greater(t, len(list), 100_000)
	return list
}
