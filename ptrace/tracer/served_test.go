//go:build linux

package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// untouchedFile maps a file of two pages into this process without touching it, and returns the memory of this process, in which the mapping counts
// as served. by is the thread through which pages are read first.
func untouchedFile(t *testing.T, protection, by int) (m memory, mapped []byte, addr uint64) {
	t.Helper()
	size := 2 * unix.Getpagesize()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	mapped, err = unix.Mmap(int(file.Fd()), 0, size, protection, unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Munmap(mapped) })
	addr = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mapped))))
	m, err = openMemory("/proc/self/mem", slices.Values([]int{by, os.Getpid()}))
	require.NoError(t, err)
	t.Cleanup(m.close)
	m.served = &served{[]machine.Range{{Start: machine.Addr(addr), End: machine.Addr(addr) + machine.Addr(size)}}, system.NewMemory(by)}
	require.False(t, m.present(addr, 1))
	return m, mapped, addr
}

// TestFetchByLivingThread requires that a page is fetched even if the thread through which pages are read has ended.
func TestFetchByLivingThread(t *testing.T) {
	livetest.NeedsTools(t)
	ended := exec.CommandContext(t.Context(), "true")
	require.NoError(t, ended.Run())
	m, _, addr := untouchedFile(t, unix.PROT_READ, ended.Process.Pid)
	n, err := m.fetch(addr, 8)
	require.NoError(t, err)
	require.Equal(t, 8, n)
	require.True(t, m.present(addr, 8))
}

// TestExecuteOnlyIsNotFetched requires that a page which only /proc/PID/mem can read is not read unless it is in memory, because the read could wait
// for its file system for ever.
func TestExecuteOnlyIsNotFetched(t *testing.T) {
	livetest.NeedsTools(t)
	m, _, addr := untouchedFile(t, unix.PROT_EXEC, os.Getpid())
	var b [8]byte
	_, err := m.read(b[:], addr)
	require.ErrorIs(t, err, errUnfetched)
	_, err = m.write(b[:], addr)
	require.ErrorIs(t, err, errUnfetched)
	require.False(t, m.present(addr, 1))
	m.served = nil
	_, err = m.read(b[:], addr) // reads as without a served mapping
	require.NoError(t, err)
	m.served = &served{[]machine.Range{{Start: machine.Addr(addr), End: machine.Addr(addr) + 1}}, system.NewMemory(os.Getpid())}
	n, err := m.read(b[:], addr)
	require.NoError(t, err)
	require.Equal(t, len(b), n)
}

// TestReadUpToUnfetchedPage requires that a read ends before the first page that cannot be fetched.
func TestReadUpToUnfetchedPage(t *testing.T) {
	livetest.NeedsTools(t)
	m, mapped, addr := untouchedFile(t, unix.PROT_READ, os.Getpid())
	page := unix.Getpagesize()
	require.NoError(t, unix.Mprotect(mapped[page:], unix.PROT_EXEC))
	n, err := m.read(make([]byte, 16), addr+uint64(page)-8)
	require.NoError(t, err)
	require.Equal(t, 8, n)
}
