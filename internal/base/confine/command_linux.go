//go:build linux && (amd64 || arm64)

package confine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// name is the process name (argv[0]) from fork until the program is executed. It selects become in init.
const name = "rf-confine"

// failed is the exit status of a process that could not confine itself; shells use it for a command that cannot be executed.
const failed = 126

func init() {
	if len(os.Args) >= 3 && os.Args[0] == name {
		fmt.Fprintln(os.Stderr, become(os.Args[1], os.Args[2:]))
		os.Exit(failed)
	}
}

// Command returns a command that runs the program at path confined, with at most memory bytes of address space. Path is absolute, or relative to the
// working directory.
func Command(ctx context.Context, path string, memory uint64, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{name, strconv.FormatUint(memory, 10), path}, args...)
	return cmd
}

// become confines this process and executes the program in it. It returns only on an error.
func become(memory string, command []string) error {
	runtime.LockOSThread() // only this thread is confined; execve ends the others
	size, err := strconv.ParseUint(memory, 10, 64)
	if err != nil {
		return err
	}
	path, err := syscall.BytePtrFromString(command[0])
	if err != nil {
		return err
	}
	args, err := syscall.SlicePtrFromStrings(command)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	if err := dropPrivileges(command[0]); err != nil {
		return fmt.Errorf("cannot drop its privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot renounce new privileges: %w", err)
	}
	program := filter(uint32(os.Getpid()))
	filters := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	for resource, limit := range map[int]uint64{unix.RLIMIT_AS: size, unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("cannot bound its memory: %w", err)
		}
	}
	// From here to execve, this thread makes only these two system calls.
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(filters))); errno != 0 {
		return fmt.Errorf("cannot filter its system calls (seccomp): %w", errno)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&env[0])))
	runtime.KeepAlive(program)
	return fmt.Errorf("%s: %w", command[0], errno)
}

// dropPrivileges drops all capabilities. A process of root becomes the unprivileged user, if that user exists in this namespace and may run it.
func dropPrivileges(path string) error {
	if os.Geteuid() == 0 && mayRun(path) {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 && errno != unix.EPERM { // a user namespace may deny it
			return errno
		}
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, unprivileged, unprivileged, unprivileged); errno != 0 {
				return errno
			}
		}
	}
	// Without this and an empty bounding set, root would regain the capabilities on execve.
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, secureNoRoot|secureNoRootLocked, 0, 0, 0); err != nil && err != unix.EPERM {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// Securebits flags (capabilities(7)): with them, a program that root executes gets no capabilities.
const (
	secureNoRoot       = 1 << 0
	secureNoRootLocked = 1 << 1
)

// mayRun reports whether the unprivileged user may run a program. The user may be missing in a user namespace, or the program may lie below /root.
func mayRun(path string) bool {
	effective := func(call, id uintptr) bool {
		_, _, errno := unix.RawSyscall(call, ^uintptr(0), id, ^uintptr(0))
		return errno == 0
	}
	may := effective(unix.SYS_SETRESGID, unprivileged) && effective(unix.SYS_SETRESUID, unprivileged) &&
		unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil
	isRoot := effective(unix.SYS_SETRESUID, 0) // before the group: only root may change its group
	return effective(unix.SYS_SETRESGID, 0) && isRoot && may
}
