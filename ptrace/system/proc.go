package system

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ThreadIDs lists the threads of a process.
func ThreadIDs(pid int) ([]int, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var tids []int
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}

// ThreadState returns the state letter of a thread (proc_pid_stat(5)), '?' where
// it cannot be told.
func ThreadState(pid, tid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if err != nil {
		return '?'
	}
	// The name before it may hold anything, a closing parenthesis too.
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' && i+2 < len(stat) {
			return stat[i+2]
		}
	}
	return '?'
}

// Ended says whether a thread is no more than an entry in the process table, or not even that.
func Ended(pid, tid int) bool {
	switch ThreadState(pid, tid) {
	case 'Z', 'X', '?':
		return true
	}
	return false
}

// ThreadName returns the name of a thread, or "" where it has ended since.
func ThreadName(pid, tid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

// A command line longer than this is cut: it is shown to people, and the process may
// have made it as long as it likes.
const maxCommand = 4096

// CommandLine returns the command line of a process, or "" where there is none.
func CommandLine(pid int) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCommand))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
}

// StatFields returns the fields of /proc/PID/stat behind the name, which may hold anything: the first is the third of
// proc_pid_stat(5). There are none where the process is gone.
func StatFields(pid int) []string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// StatusField returns one field of /proc/PID/status, or "".
func StatusField(pid int, field string) string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(status)) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
