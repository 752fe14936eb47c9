//go:build linux

package tracer

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	if len(os.Args) > 0 && os.Args[0] == Name {
		serve()
		os.Exit(0)
	}
}

// maxBirths bounds the number of attempts to start a tracer, if signals end each one before it can catch them.
const maxBirths = 10

// Start starts a tracer. If own is set, the tracer gets its own session, and the programs that it launches have no terminal. Otherwise the tracer and
// these programs are in this process's group, to which timeout(1) and terminals send signals. If such a signal kills the tracer before it can catch
// signals, Start starts another one, because the first has not done anything yet.
func Start(own bool) (c *Conn, err error) {
	if !Supported {
		return nil, errors.ErrUnsupported
	}
	for range maxBirths {
		if c, err = start(own); err != nil {
			return nil, err
		}
		if err = c.born(); err == nil {
			c.watchdog = startWatchdog(c.PID())
			return c, nil
		}
		c.net.Close()
		c.lease.close()
		if ended := c.cmd.Wait(); ended != nil {
			err = ended
		}
		if ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !ws.Signaled() {
			break
		}
	}
	return nil, fmt.Errorf("cannot start the guard process: %w", err)
}

// born waits for the byte that a tracer sends when it catches signals.
func (c *Conn) born() error {
	_, err := c.in.ReadByte()
	return err
}

func start(own bool) (*Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(fds[1]), "guard")
	defer theirs.Close()
	ours := os.NewFile(uintptr(fds[0]), "guard")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	lease, shared, err := newLease()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("cannot start the guard process: %w", err)
	}
	defer shared.Close()
	files, err := inherited()
	if err != nil {
		conn.Close()
		lease.close()
		return nil, fmt.Errorf("cannot start the guard process: %w", err)
	}
	defer closeAll(files)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{Name, strconv.Itoa(firstExtra + len(files))}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = append(slices.Clip(files), theirs, shared)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: own}
	if err := cmd.Start(); err != nil {
		conn.Close()
		lease.close()
		return nil, fmt.Errorf("cannot start the guard process: %w", err)
	}
	c := &Conn{net: conn.(*net.UnixConn), cmd: cmd, lease: lease}
	c.in = bufio.NewReaderSize(c.net, 1<<16)
	c.decoder, c.encoder = gob.NewDecoder(c.in), gob.NewEncoder(c.net)
	return c, nil
}

// firstExtra is the file descriptor of the first of os/exec's ExtraFiles.
const firstExtra = 3

// maxInherited bounds the number of file descriptors that launched programs inherit.
const maxInherited = 1 << 16

// inherited returns copies of the file descriptors, from 3 on, that launched programs inherit. It ends before the first two adjacent numbers that are
// free or close-on-exec, at which the tracer gets its end of the socket and the memory of the lease. A single such number before them is nil. The
// tracer inherits descriptors with higher numbers in any case.
func inherited() (files []*os.File, err error) {
	for fd := firstExtra; fd < maxInherited; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			if n := len(files); n > 0 && files[n-1] == nil {
				return files[:n-1], nil
			}
			files = append(files, nil)
			continue
		}
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, firstExtra)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, os.NewFile(uintptr(copied), "inherited"))
	}
	return files, nil
}

// closeAll closes the files that are not nil.
func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
