package tracer

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/livetest"
)

// traced starts a program, traced by the thread of the test, and stopped before its first instruction.
func traced(t *testing.T) *server {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	path := livetest.Tool(t, "true")
	s := &server{threads: map[int]*thread{}, breakpoints: map[uint64]*breakpoint{}, memory: memory{file: -1}}
	require.NoError(t, s.launch([]string{path, path}, Launching{}))
	t.Cleanup(func() {
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
		var ws unix.WaitStatus
		_, err := wait(s.pid, &ws, unix.WALL)
		require.NoError(t, err)
	})
	return s
}

// TestRegistersWithoutVectors requires that a thread whose vector registers the kernel does not provide still has its general registers, also after
// they were sent through the socket.
func TestRegistersWithoutVectors(t *testing.T) {
	s := traced(t)
	thread := s.threads[s.pid]
	raw := Raw{TID: s.pid, Others: [][]byte{{}}}
	require.NoError(t, getRegs(s.pid, &raw.General))
	raw.General.Rbx = 0x1234
	require.NoError(t, thread.setRegisters(&raw))
	var now General
	require.NoError(t, getRegs(s.pid, &now))
	require.Equal(t, uint64(0x1234), now.Rbx)
}

// instruction returns random bytes that often encode an instruction that is emulated: opcodes with two operands and any ModRM byte, and others.
func instruction(random *rand.Rand) []byte {
	pick := func(list ...byte) byte { return list[random.IntN(len(list))] }
	rex := byte(0x40 | random.IntN(16))
	var code []byte
	if random.IntN(6) > 0 {
		code = append(code, rex)
	}
	modrm := byte(random.IntN(256))
	tail := func(n int) { // ModRM with the bytes that it may require, and an immediate
		code = append(code, modrm)
		for range n {
			code = append(code, byte(random.IntN(256)))
		}
		// Make displacements of four bytes small, so that the address stays on the stack.
		if modrm>>6 == 2 || modrm>>6 == 0 && modrm&7 == 5 {
			at := len(code) - n
			if modrm&7 == 4 {
				at++
			}
			code[at+1], code[at+2], code[at+3] = byte(random.IntN(4)), 0, 0
		}
	}
	switch random.IntN(16) {
	case 0:
		code = append(code, pick(0x50, 0x51, 0x53, 0x54, 0x55, 0x57))
	case 1:
		code = append(code, 0xb8|byte(random.IntN(8)), 1, 2, 3, 0x84, 5, 6, 7, 0x88)
	case 2:
		code = append(code, pick(0xe8, 0xe9), byte(random.IntN(256)), 0, 0, pick(0, 0))
	case 3:
		code = []byte{0xeb, byte(random.IntN(256))}
	case 4:
		code = [][]byte{{0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x40, 0}, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, {0xf3, 0x0f, 0x1e, 0xfa}}[random.IntN(5)]
	case 5:
		code = append(code, pick(0x81, 0x83, 0xc7))
		tail(9)
	case 6:
		code = append(code, pick(0xc1, 0xd1))
		tail(6)
	case 7:
		code = append(code, pick(0xf7, 0xff))
		tail(6)
	case 8:
		code = append(code, 0x0f, pick(0xb6, 0xb7, 0xbe, 0xbf))
		tail(6)
	case 10:
		code = append(code, 0x58|byte(random.IntN(8)))
	case 11:
		code = []byte{0x70 | byte(random.IntN(16)), byte(random.IntN(256))}
		if random.IntN(2) == 0 {
			code = []byte{0x0f, 0x80 | byte(random.IntN(16)), byte(random.IntN(256)), 1, 0, 0}
		}
	case 9:
		code = append(code, 0x63)
		tail(6)
	default:
		code = append(code, pick(0x01, 0x03, 0x29, 0x2b, 0x21, 0x23, 0x09, 0x0b, 0x31, 0x33, 0x39, 0x3b, 0x85, 0x89, 0x8b, 0x8d))
		tail(6)
	}
	return code
}

// TestEmulation requires that an emulation has the same effect on registers and stack as executing the instruction.
func TestEmulation(t *testing.T) {
	livetest.Slow(t)
	s := traced(t)
	th := s.threads[s.pid]
	s.acting = s.pid
	var start General
	require.NoError(t, getRegs(s.pid, &start))
	stack := start.Rsp&^0xfff - 0x8000 + 0x800
	random := rand.New(rand.NewPCG(6, 3))
	const window = 0x2000
	emulated := map[string]int{}
	for n := range 30_000 {
		code := instruction(random)
		emulate := emulationOf(code)
		if emulate == nil {
			continue
		}
		regs := start
		regs.Rsp = stack + uint64(random.IntN(64))*8
		for _, r := range []*uint64{&regs.Rax, &regs.Rcx, &regs.Rdx, &regs.Rbx, &regs.Rbp, &regs.Rsi, &regs.Rdi,
			&regs.R8, &regs.R9, &regs.R10, &regs.R11, &regs.R12, &regs.R13, &regs.R14, &regs.R15} {
			switch random.IntN(4) {
			case 0:
				*r = random.Uint64()
			case 1:
				*r = uint64(random.IntN(256))
			default:
				*r = stack + uint64(random.IntN(0x400))
			}
		}
		regs.Eflags = start.Eflags&^(carry|parity|adjust|zero|sign|overflow) | random.Uint64()&(carry|parity|adjust|zero|sign|overflow)
		memory := make([]byte, window)
		for i := range memory {
			memory[i] = byte(random.IntN(256))
		}
		write := func() {
			_, err := s.memory.write(memory, uint64(stack-0x800))
			require.NoError(t, err)
			_, err = s.memory.write(code, uint64(start.Rip))
			require.NoError(t, err)
		}
		read := func() []byte {
			b := make([]byte, window)
			_, err := s.memory.read(b, uint64(stack-0x800))
			require.NoError(t, err)
			return b
		}
		write()
		got := regs
		did := emulate(s, &got)
		gotMemory := read()
		about := fmt.Sprintf("%d: % x", n, code)
		if !did {
			require.Equal(t, regs, got, about)
			require.Equal(t, memory, gotMemory, about)
			continue
		}
		write()
		require.NoError(t, setRegs(s.pid, &regs))
		require.True(t, s.step(th, place{pc: regs.Rip}), about)
		var want General
		require.NoError(t, getRegs(s.pid, &want))
		want.OrigRax = got.OrigRax
		if op := code[0] & 0xf0; op != 0x40 {
			emulated[fmt.Sprintf("%02x", code[0])]++
		} else {
			emulated[fmt.Sprintf("%02x", code[1])]++
		}
		if (want.Eflags^got.Eflags)&^undefined(code) == 0 {
			want.Eflags = got.Eflags
		}
		require.Equal(t, want, got, about)
		require.Equal(t, read(), gotMemory, about)
	}
	t.Log(emulated)
	require.Greater(t, len(emulated), 25)
}

// undefined returns the flags that an instruction leaves undefined (Intel SDM vol. 2): for logical instructions and shifts the adjust flag, and for
// shifts by more than one also the overflow flag.
func undefined(code []byte) uint64 {
	if code[0]&0xf0 == 0x40 {
		code = code[1:]
	}
	switch code[0] {
	case 0x21, 0x23, 0x09, 0x0b, 0x31, 0x33, 0x85:
		return adjust
	case 0x81, 0x83:
		if n := code[1] >> 3 & 7; n == 1 || n == 4 || n == 6 {
			return adjust
		}
	case 0xd1:
		return adjust
	case 0xc1:
		return adjust | overflow
	case 0xf7: // test
		if code[1]>>3&7 < 2 {
			return adjust
		}
	}
	return 0
}

// TestEmulationHeedsProtection requires that nothing is stored at addresses that the target may not write, because the instruction must fault.
func TestEmulationHeedsProtection(t *testing.T) {
	s := traced(t)
	s.acting = s.pid
	var regs General
	require.NoError(t, getRegs(s.pid, &regs))
	regs.Rsp = regs.Rip&^0xfff + 0x800 // code, which is not writable
	for _, code := range [][]byte{{0x50}, {0xe8, 0, 0, 0, 0}, {0x48, 0x89, 0x04, 0x24}, {0x48, 0x83, 0x04, 0x24, 1}} {
		emulate := emulationOf(code)
		require.NotNil(t, emulate, "% x", code)
		before, after := make([]byte, 4096), make([]byte, 4096)
		_, err := s.memory.read(before, uint64(regs.Rsp-0x800))
		require.NoError(t, err)
		got := regs
		require.False(t, emulate(s, &got), "% x", code)
		require.Equal(t, regs, got)
		_, err = s.memory.read(after, uint64(regs.Rsp-0x800))
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

// TestEmulationDoesNotWait requires that the tracer emulates no store to a page that userfaultfd write-protects, because the store would wait until
// the protection is removed.
func TestEmulationDoesNotWait(t *testing.T) {
	p := livetest.C(t, filepath.Join("..", "ptrace", "tracer", "testdata", "protected.c"), []string{"-O1"})
	var page uint64
	_, err := fmt.Sscanf(p.Output(), "page %v", &page)
	require.NoError(t, err, p.Output())
	s := &server{memory: memory{file: -1}, acting: p.PID}
	s.memory, err = openMemory(memoryOf(p.PID, p.PID), func(func(int) bool) {})
	require.NoError(t, err)
	defer s.memory.close()
	made := make(chan []bool)
	go func() {
		var is []bool
		for _, at := range []uint64{page + 0x800, page + pageSize + 0x800} {
			for _, code := range [][]byte{{0x50}, {0xe8, 0, 0, 0, 0}, {0x48, 0x89, 0x04, 0x24}, {0x48, 0x83, 0x04, 0x24, 1}} {
				is = append(is, emulationOf(code)(s, &General{Rsp: at}))
			}
		}
		made <- is
	}()
	select {
	case is := <-made:
		require.Equal(t, []bool{false, false, false, false, true, true, true, true}, is, "only the second page can be written")
	case <-time.After(livetest.Patience):
		require.FailNow(t, "the tracer waits")
	}
}
