package ptrace

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// inStop counts the bytes that a capture reads during the stop. These are read by the thread that stopped the process; bytes that the test reads are
// not counted.
type inStop struct {
	memory
	test, bytes int
}

func (m *inStop) count(n int) {
	if unix.Gettid() != m.test {
		m.bytes += n
	}
}

func (m *inStop) ReadMemory(p []byte, addr machine.Addr) error {
	m.count(len(p))
	return m.memory.ReadMemory(p, addr)
}

func (m *inStop) readMany(wants []system.Want) error {
	for _, w := range wants {
		m.count(len(w.Buf))
	}
	return m.memory.readMany(wants)
}

// TestCaptureWhileJITCompiles requires that, for a JIT that continuously registers objects, the stop reads only the descriptor, and that the list is
// that of the moment of the stop: the tail of the later list.
func TestCaptureWhileJITCompiles(t *testing.T) {
	livetest.Slow(t)
	const n = 9000
	p := livetest.ManyObjects(t, n, "compile")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 3 {
		target := newTarget(p.PID, nil)
		mem := &inStop{memory: target.source, test: unix.Gettid()}
		target.source = mem
		settled, err := target.reading().captureBriefly(Options{StackBytes: defaultStack})
		require.NoError(t, err)
		require.True(t, settled)
		require.Equal(t, descriptorSize, mem.bytes)
		r := target.Registries[0]
		require.Empty(t, r.Broken)

		p.Signal(t, syscall.SIGSTOP)
		require.Eventually(t, func() bool { return system.ThreadState(p.PID, p.PID) == 'T' }, livetest.Patience, 100)
		list := walkList(t, p.PID, r.Descriptor)
		p.Signal(t, syscall.SIGCONT)
		require.GreaterOrEqual(t, len(r.Entries), n)
		require.Greater(t, len(list), len(r.Entries), "it registers all the time")
		read := 0
		for i, want := range list[len(list)-len(r.Entries):] {
			e := r.Entries[i]
			require.Equal(t, listed{uint64(e.Addr), uint64(e.Start), e.Size}, want)
			require.Empty(t, e.Bad)
			if e.image != nil {
				read++
			}
		}
		require.Positive(t, read, "the frame on the stack needs its object")
		target.Close()
	}
}
