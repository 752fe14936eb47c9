//go:build linux && (amd64 || arm64)

package guard

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket is the number of the file that is the guard's end.
const socket = 3

func init() {
	if len(os.Args) > 0 && os.Args[0] == Name {
		serve()
		os.Exit(0)
	}
}

// Start starts a guard. With own it is in a session of its own; what it launches would not have the terminal then. Without, it is in a process
// group of its own, and what it launches is in that of this process. So a signal to a group or from a terminal does not reach it, not
// even before it can catch one.
func Start(own bool) (*Conn, error) {
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
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{Name}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: own, Setpgid: !own}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("cannot start the guard process: %w", err)
	}
	c := &Conn{net: conn.(*net.UnixConn), cmd: cmd}
	c.in = bufio.NewReaderSize(c.net, 1<<16)
	c.decoder, c.encoder = gob.NewDecoder(c.in), gob.NewEncoder(c.net)
	return c, nil
}
