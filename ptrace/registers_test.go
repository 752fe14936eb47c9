package ptrace

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// pattern returns the bytes with which regs.c fills vector register n.
func pattern(n, width int) []byte {
	b := make([]byte, width)
	for i := range b {
		b[i] = byte((64*n+i)*7 + n)
	}
	return b
}

// requirePatterns compares vector registers, of width bytes, and mask registers with the patterns of regs.c.
func requirePatterns(t *testing.T, regs *machine.Registers, width int) {
	t.Helper()
	for reg, want := range patterns(width) {
		got, err := regs.Bytes(reg)
		if want == nil {
			require.EqualError(t, err, machine.AMD64.RegisterName(reg)+": the processor has no such register")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got, machine.AMD64.RegisterName(reg))
	}
}

// patterns returns the expected contents of registers, or nil for a register that does not exist with vectors of this width.
func patterns(width int) map[machine.DWARFReg][]byte {
	list := map[machine.DWARFReg][]byte{}
	for n := range 16 {
		list[machine.DWARFReg(17+n)] = pattern(n, width)
		list[machine.DWARFReg(67+n)] = nil
		if width == 64 {
			list[machine.DWARFReg(67+n)] = pattern(16+n, width)
		}
	}
	for n := range 8 {
		list[machine.DWARFReg(118+n)] = nil
		if width == 64 {
			list[machine.DWARFReg(118+n)] = pattern(n, width)[8:16]
		}
	}
	return list
}

// held holds the general registers by DWARF number, as regs.c loads them. The test adds the registers that differ between its two modes.
var held = map[machine.DWARFReg]uint64{
	1: 0x1111111111111111, 3: 0x3333333333333333, 4: 0x4444444444444444, 5: 0x5555555555555555, 6: 0x6666666666666666,
	8: 0x8888888888888888, 9: 0x9999999999999999, 10: 0xaaaaaaaaaaaaaaaa,
	12: 0xcccccccccccccccc, 13: 0xdddddddddddddddd, 14: 0xeeeeeeeeeeeeeeee, 15: 0xffffffffffffffff,
}

func TestRegisters(t *testing.T) {
	path := executable(t, "regs.c", "-no-pie")
	at := symbols(t, path)
	for _, c := range []struct {
		how   string
		label string
		more  map[machine.DWARFReg]uint64
	}{
		{"spin", "spinning", map[machine.DWARFReg]uint64{0: 0x123456789abcdef0, 2: 0x2222222222222222, 11: 0xbbbbbbbbbbbbbbbb}},
		// When a system call that can be restarted is interrupted, rax is -ERESTARTNOHAND (514), and rcx is the address after the call.
		{"pause", "paused", map[machine.DWARFReg]uint64{0: 1<<64 - 514, 2: uint64(at["paused"])}},
	} {
		t.Run(c.how, func(t *testing.T) {
			p := program(t, "regs.c", []string{"-no-pie"}, c.how)
			width := 32
			if strings.Contains(p.Output(), "vectors 64") {
				width = 64
			}
			var target *Target
			var regs *machine.Registers
			require.Eventually(t, func() bool {
				target = capture(t, p.PID, Options{})
				require.Len(t, target.Threads(), 2)
				regs = target.Threads()[1].Registers
				pc, err := regs.Addr(machine.AMD64.PC)
				require.NoError(t, err)
				return pc == at[c.label]
			}, livetest.Patience, time.Millisecond, "it does not get to where it waits")
			for _, list := range []map[machine.DWARFReg]uint64{held, c.more, {7: uint64(at["stack"] + 2048), 16: uint64(at[c.label])}} {
				for reg, want := range list {
					got, err := regs.Uint(reg)
					require.NoError(t, err)
					require.Equal(t, want, got, machine.AMD64.RegisterName(reg))
				}
			}
			requirePatterns(t, regs, width)
			_, err := regs.Bytes(33)
			require.EqualError(t, err, "st0: a capture does not read this register")

			// The stack has 256 words of known content at the stack pointer, and a red zone below it.
			b := make([]byte, 8)
			for i := 256 - 16; i < 512; i++ {
				require.NoError(t, target.ReadMemory(b, at["stack"]+machine.Addr(8*i)))
				require.Equal(t, strings.Repeat(string([]byte{byte(i)}), 8), string(b), "word %d", i)
			}

			compareWithGDB(t, p.PID, target)
		})
	}
}

// compareWithGDB compares every register of every thread that gdb also has.
func compareWithGDB(t *testing.T, pid int, target *Target) {
	t.Helper()
	names := "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip"
	args := []string{"-nx", "-batch", "-p", fmt.Sprint(pid)}
	for _, th := range target.Threads() {
		args = append(args, "-ex", fmt.Sprintf("python [t.switch() for t in gdb.selected_inferior().threads() if t.ptid[1] == %d]", th.ID))
		for _, name := range strings.Fields(names) {
			args = append(args, "-ex", fmt.Sprintf(`printf "%d %s %%lx\n", $%s`, th.ID, name, name))
		}
		for n := range 16 {
			args = append(args, "-ex", fmt.Sprintf(`printf "%d xmm%d %%lx %%lx %%lx %%lx\n", $ymm%d.v4_int64[0], $ymm%d.v4_int64[1], $ymm%d.v4_int64[2], $ymm%d.v4_int64[3]`, th.ID, n, n, n, n, n))
		}
	}
	out, err := exec.Command(livetest.Tool(t, "gdb"), args...).Output()
	require.NoError(t, err)
	numbers := map[string]machine.DWARFReg{}
	for _, reg := range machine.AMD64.Registers() {
		numbers[machine.AMD64.RegisterName(reg)] = reg
	}
	compared := 0
	for _, th := range target.Threads() {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^%d (\w+) (.*)$`, th.ID))
		for _, m := range line.FindAllStringSubmatch(string(out), -1) {
			b, err := th.Registers.Bytes(numbers[m[1]])
			require.NoError(t, err, m[1])
			var words []string
			for i := 0; i+8 <= min(len(b), 32); i += 8 {
				words = append(words, fmt.Sprintf("%x", machine.AMD64.Uint(b[i:i+8])))
			}
			require.Equal(t, m[2], strings.Join(words, " "), "%s of thread %d", m[1], th.ID)
			compared++
		}
	}
	require.Equal(t, 33*len(target.Threads()), compared, "%s", out)
}
