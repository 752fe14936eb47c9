package ptrace

import (
	"encoding/binary"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
	"reframe/internal/livetest"
)

// attach attaches to a process, and lets it go when the test ends, however it ends.
func attach(t *testing.T, pid int) *Control {
	t.Helper()
	c, err := Attach(pid)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Detach() }) // nothing where the test did so
	return c
}

// A process that was stopped before is stopped afterwards.
func TestControlStopped(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "1")
	p.Signal(t, syscall.SIGSTOP)
	requireState(t, p.PID, 'T')
	require.NoError(t, attach(t, p.PID).Detach())
	requireState(t, p.PID, 'T')
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, byte('T'), threadState(p.PID, p.PID))
	p.Signal(t, syscall.SIGCONT)
	requireState(t, p.PID, 'S')
	requireText(t, p.PID)
	require.Equal(t, "ready\n", p.Output())
}

// A process is run to a function whose arguments are known, and let go again as it was.
func TestControl(t *testing.T) {
	path := executable(t, "steps.c", "-no-pie")
	step := symbols(t, path)["step"]
	require.NotZero(t, step)
	p := program(t, "steps.c", []string{"-no-pie"})
	requireText(t, p.PID)
	for range 3 {
		c := attach(t, p.PID)
		requireState(t, p.PID, 't')
		for range 2 {
			th, err := c.RunTo(step)
			require.NoError(t, err)
			require.Equal(t, p.PID, th.ID)
			require.Equal(t, "steps", th.Name)
			for reg, want := range map[machine.DWARFReg]uint64{5: 0x1122334455667788, 4: 1<<64 - 2, 16: uint64(step)} {
				got, err := th.Registers.Uint(reg)
				require.NoError(t, err)
				require.Equal(t, want, got, machine.AMD64.RegisterName(reg))
			}
			v, err := th.Registers.Bytes(17)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(v), 16)
			require.Equal(t, 2.5, math.Float64frombits(binary.LittleEndian.Uint64(v)))
		}
		target, err := c.Target()
		require.NoError(t, err)
		require.Len(t, target.Threads(), 1)
		pc, err := target.Threads()[0].Registers.Addr(machine.AMD64.PC)
		require.NoError(t, err)
		require.Equal(t, step, pc)
		sp, err := target.Threads()[0].Registers.Addr(machine.AMD64.SP)
		require.NoError(t, err)
		b := make([]byte, 8)
		require.NoError(t, target.ReadMemory(b, sp))
		m := target.ModuleAt(machine.Addr(binary.LittleEndian.Uint64(b)))
		require.NotNil(t, m)
		require.Equal(t, path, m.Path, "the return address lies in main")
		target.Close()
		require.NoError(t, c.Detach())
		requireText(t, p.PID)
		require.Equal(t, "0", statusField(p.PID, "TracerPid"))
	}
	requireState(t, p.PID, 'S')
	// It goes on: what it sleeps for ends.
	before := statusField(p.PID, "voluntary_ctxt_switches")
	require.Eventually(t, func() bool { return statusField(p.PID, "voluntary_ctxt_switches") != before }, 5*time.Second, 10*time.Millisecond)
	require.True(t, p.Alive())
}

// The same registers as a capture gives, vector registers too.
func TestControlRegisters(t *testing.T) {
	path := executable(t, "regs.c", "-no-pie")
	at := symbols(t, path)
	p := program(t, "regs.c", []string{"-no-pie"}, "pause")
	require.Eventually(t, func() bool {
		pc, err := capture(t, p.PID, Options{}).Threads()[1].Registers.Addr(machine.AMD64.PC)
		return err == nil && pc == at["paused"]
	}, 5*time.Second, time.Millisecond)
	want := capture(t, p.PID, Options{})
	c := attach(t, p.PID)
	target, err := c.Target()
	require.NoError(t, err)
	defer target.Close()
	require.Len(t, target.Threads(), 2)
	compared := 0
	for _, th := range target.Threads() {
		for _, w := range want.Threads() {
			if w.ID != th.ID {
				continue
			}
			for reg := range machine.DWARFReg(33) {
				a, err := w.Registers.Bytes(reg)
				require.NoError(t, err)
				b, err := th.Registers.Bytes(reg)
				require.NoError(t, err)
				if th.ID == p.PID && reg >= 17 {
					// Where a thread never used the upper halves, Delve gives none of them.
					a = a[:len(b)]
				}
				require.Equal(t, a, b, machine.AMD64.RegisterName(reg))
				compared++
			}
		}
	}
	require.Equal(t, 66, compared)
	require.NoError(t, c.Detach())
	requireText(t, p.PID)
	requireState(t, p.PID, 'S')
}

// A process that ends instead of getting there.
func TestControlGone(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "1")
	c := attach(t, p.PID)
	main := capturedMain(t, p.PID)
	go p.Kill()
	_, err := c.RunTo(main)
	require.ErrorIs(t, err, ErrGone)
}

func capturedMain(t *testing.T, pid int) machine.Addr {
	t.Helper()
	target, err := Survey(pid)
	require.NoError(t, err)
	defer target.Close()
	sym, ok := target.FindSymbol("main")
	require.True(t, ok)
	return sym.Addr
}
