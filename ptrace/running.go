package ptrace

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/reframe/ptrace/system"
)

// Process is a running process.
type Process struct {
	PID     int
	Command string // the command line, with the program's directory removed
	JIT     bool   // the process has executable memory without a file, as a JIT allocates
}

// longCommand bounds the number of bytes of a command line that are read.
const longCommand = 4096

// Running returns the processes of this user, or for root all processes, except this one. Processes with JIT-compiled code come first; each group is
// sorted by number. Kernel threads and ended processes are omitted. Examining a process takes about 30 µs. Processes that were not examined within
// the time count as having no JIT-compiled code.
func Running(within time.Duration) []Process {
	deadline := time.Now().Add(within)
	dirs, _ := os.ReadDir("/proc") // an error means that this system has no /proc
	var all []Process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil || pid == os.Getpid() || !owned(pid) {
			continue
		}
		if p := (Process{PID: pid, Command: commandOf(pid)}); p.Command != "" {
			p.JIT = time.Now().Before(deadline) && hasJITCode(pid)
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Process) int {
		if a.JIT != b.JIT {
			if a.JIT {
				return -1
			}
			return 1
		}
		return a.PID - b.PID
	})
	return all
}

// owned reports whether this user owns the process and may read it (proc_pid_status(5)).
func owned(pid int) bool {
	user := os.Geteuid()
	if user == 0 {
		return true
	}
	ids := strings.Fields(system.StatusField(pid, "Uid"))
	return len(ids) > 1 && ids[1] == strconv.Itoa(user)
}

// commandOf returns the command line of the process (proc_pid_cmdline(5)). It is "" for a kernel thread or an ended process.
func commandOf(pid int) string {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, longCommand)
	n, _ := f.Read(text)
	words := strings.Split(strings.TrimRight(string(text[:n]), "\x00"), "\x00")
	words[0] = filepath.Base("/" + words[0])
	if words[0] == "/" {
		return ""
	}
	return strings.Join(words, " ")
}

// hasJITCode reports whether the process has executable memory without a file.
func hasJITCode(pid int) bool {
	maps, err := readMaps(pid)
	if err != nil {
		return false // this user may not read it
	}
	for _, m := range maps {
		switch {
		case !m.Exec, m.Path == "[vdso]", m.Path == "[vsyscall]", m.Path == "[uprobes]":
		case m.Anonymous(), strings.HasPrefix(m.Path, "/memfd:"), strings.HasPrefix(m.Path, "/dev/zero"):
			return true
		}
	}
	return false
}
