package ptrace

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/test/livetest"
)

// Operations of <linux/fuse.h>.
const (
	fuseLookup     = 1
	fuseForget     = 2
	fuseGetattr    = 3
	fuseOpen       = 14
	fuseRead       = 15
	fuseRelease    = 18
	fuseFlush      = 25
	fuseInit       = 26
	fuseInterrupt  = 36
	fusePoll       = 40
	fuseForgetMany = 42

	fuseNoFlush   = 1 << 5  // flag of open: closing the file sends no request
	fuseKeepCache = 1 << 1  // flag of open: cached pages stay valid
	fuseAsyncRead = 1 << 0  // flag of init, which libfuse also sets: a process that waits for a page can be killed
	fuseMaxPages  = 1 << 22 // flag of init: the reply gives the maximum number of pages of a request
)

// servedPages is the number of pages of the file that serve provides. serve never answers a request for a page with an odd number.
const servedPages = 4

// serve implements a file system with one file named file. It answers the kernel's requests from /dev/fuse until the other end of a pipe is closed.
//
// A request to poll the file fails the test. The kernel sends it if the file is added to an epoll instance, as Go's run time does with files that
// os.Open opens. No signal ends the wait for the answer, and all other waits at that instance are blocked (fuse_file_poll of fs/fuse/file.c).
func serve(t *testing.T, fd int, closing *os.File) {
	request := make([]byte, 1<<17)
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(closing.Fd())}}
		if _, err := unix.Poll(ready, -1); err == unix.EINTR {
			continue
		}
		if ready[1].Revents != 0 {
			return
		}
		n, err := unix.Read(fd, request)
		switch {
		case err == unix.EINTR || err == unix.ENOENT: // the request was interrupted
			continue
		case err != nil || n < 40:
			return
		}
		r := request[:n]
		op, unique, node, arguments := binary.NativeEndian.Uint32(r[4:]), r[8:16], binary.NativeEndian.Uint64(r[16:]), r[40:]
		content, failure := []byte(nil), unix.Errno(0)
		switch op {
		case fuseForget, fuseForgetMany, fuseInterrupt: // these requests are not answered
			continue
		case fuseInit:
			content = initialized()
		case fuseLookup:
			if failure = unix.ENOENT; string(arguments) == "file\x00" {
				failure, content = 0, append(binary.NativeEndian.AppendUint64(nil, 2), make([]byte, 32)...)
				content = append(content, attributes(2)...)
			}
		case fuseGetattr:
			content = append(make([]byte, 16), attributes(node)...)
		case fuseOpen:
			content = make([]byte, 16)
			binary.NativeEndian.PutUint32(content[8:], fuseNoFlush|fuseKeepCache)
		case fuseRead:
			page := binary.NativeEndian.Uint64(arguments[8:]) / elfcore.Page
			if page%2 == 1 {
				continue
			}
			content = servedPage(page)
		case fuseFlush, fuseRelease:
		case fusePoll:
			t.Error("the file is polled")
			failure = unix.ENOSYS
		default:
			failure = unix.ENOSYS
		}
		answer := binary.NativeEndian.AppendUint32(nil, uint32(16+len(content)))
		answer = binary.NativeEndian.AppendUint32(answer, uint32(-int32(failure)))
		_, _ = unix.Write(fd, append(append(answer, unique...), content...)) // fails for an interrupted request
	}
}

// initialized returns struct fuse_init_out. It makes the kernel request one page at a time.
func initialized() []byte {
	b := make([]byte, 64)
	binary.NativeEndian.PutUint32(b, 7)
	binary.NativeEndian.PutUint32(b[4:], 31)
	binary.NativeEndian.PutUint32(b[8:], elfcore.Page)
	binary.NativeEndian.PutUint32(b[12:], fuseAsyncRead|fuseMaxPages)
	binary.NativeEndian.PutUint32(b[20:], elfcore.Page)
	binary.NativeEndian.PutUint16(b[28:], 1)
	return b
}

// attributes returns struct fuse_attr of the folder (node 1) or of the file.
func attributes(node uint64) []byte {
	b := make([]byte, 88)
	size, mode := uint64(servedPages*elfcore.Page), uint32(unix.S_IFREG|0o755)
	if node == 1 {
		size, mode = 0, unix.S_IFDIR|0o755
	}
	binary.NativeEndian.PutUint64(b, node)
	binary.NativeEndian.PutUint64(b[8:], size)
	binary.NativeEndian.PutUint32(b[60:], mode)
	binary.NativeEndian.PutUint32(b[64:], 1)
	return b
}

// servedPage returns a page of the file. The first page begins as an ELF image whose section headers are in the second page.
func servedPage(number uint64) []byte {
	b := make([]byte, elfcore.Page)
	for i := range b {
		b[i] = 0xc3
	}
	if number == 0 {
		header := make([]byte, 64)
		copy(header, "\x7fELF\x02\x01\x01")
		binary.LittleEndian.PutUint16(header[16:], 3)  // ET_DYN
		binary.LittleEndian.PutUint16(header[18:], 62) // EM_X86_64
		binary.LittleEndian.PutUint32(header[20:], 1)
		binary.LittleEndian.PutUint64(header[40:], elfcore.Page) // e_shoff
		binary.LittleEndian.PutUint16(header[52:], 64)
		binary.LittleEndian.PutUint16(header[58:], 64)
		binary.LittleEndian.PutUint16(header[60:], 3)
		copy(b, header)
	}
	return b
}

// servedProcess starts the program served, and provides its file system until the test ends.
func servedProcess(t *testing.T) (p *livetest.Process, at map[string]machine.Addr) {
	t.Helper()
	p = program(t, "served.c", nil, t.TempDir())
	var number int
	_, err := fmt.Sscanf(p.Output(), "fuse %d", &number)
	require.NoError(t, err, p.Output())
	process, err := unix.PidfdOpen(p.PID, 0)
	require.NoError(t, err)
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, number, 0)
	require.NoError(t, err)
	closing, closed, err := os.Pipe()
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		serve(t, fd, closing)
	}()
	t.Cleanup(func() { // when the last descriptor is closed, all waits for the file system fail
		p.Kill()
		closed.Close()
		<-served
		closing.Close()
		unix.Close(fd)
	})
	p.AwaitPause(t)
	p.SignalInPause(t, syscall.SIGUSR1)
	require.Eventually(t, func() bool { return strings.Contains(p.Output(), "mapped") }, livetest.Patience, time.Millisecond)
	at = map[string]machine.Addr{}
	for line := range strings.Lines(p.Output()) {
		var name string
		var addr uint64
		if n, _ := fmt.Sscanf(line, "%s %v", &name, &addr); n == 2 && strings.HasPrefix(line[len(name):], " 0x") {
			at[name] = machine.Addr(addr)
		}
	}
	require.Len(t, at, 3, p.Output())
	return p, at
}

// TestPagesOfAFileSystemThatDoesNotAnswer requires that no capture or read waits for pages of a FUSE file that the server never provides. Present
// pages must be read, and absent pages must be unavailable. Breakpoints in absent pages must be refused. The process must resume afterwards.
func TestPagesOfAFileSystemThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const page = elfcore.Page
	p, at := servedProcess(t)
	var b [8]byte
	reads := func(t *testing.T, mem machine.Memory) {
		for _, name := range []string{"code", "data"} {
			require.NoError(t, mem.ReadMemory(b[:], at[name]+64), name)
			require.Equal(t, [8]byte{0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3}, b, name)
			require.ErrorContains(t, mem.ReadMemory(b[:], at[name]+page), "takes too long", name)
		}
		require.Error(t, mem.ReadMemory(b[:], at["only"]+page))
	}
	t.Run("held", func(t *testing.T) {
		target, err := Capture(p.PID, Options{Hold: true})
		require.NoError(t, err)
		defer target.Close()
		reads(t, target)
	})
	t.Run("surveyed", func(t *testing.T) {
		target, err := Survey(p.PID, Options{})
		require.NoError(t, err)
		defer target.Close()
		reads(t, target)
	})
	t.Run("under control", func(t *testing.T) {
		s, err := Open(t.Context(), p.PID)
		require.NoError(t, err)
		target, err := s.Target()
		require.NoError(t, err)
		reads(t, target)
		require.ErrorContains(t, s.Insert(Breakpoint{Addr: at["only"] + page + 16}), "the process itself may not read it")
		require.ErrorContains(t, s.Insert(Breakpoint{Addr: at["code"] + page + 16}), "takes too long")
		require.NoError(t, s.Insert(Breakpoint{Addr: at["code"] + 64}))
		require.NoError(t, s.Detach())
	})
	t.Run("recorded", func(t *testing.T) {
		target, err := Capture(p.PID, Options{Record: true, Hold: true})
		require.NoError(t, err)
		defer target.Close()
		_, err = target.WriteCore(t.Context(), filepath.Join(t.TempDir(), "core"), RecordOptions{Memory: Writable})
		require.NoError(t, err)
	})
	p.Signal(t, syscall.SIGUSR1)
	require.NoError(t, p.Wait())
	require.Contains(t, p.Output(), "done")
}
