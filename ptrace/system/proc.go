package system

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// ThreadIDs returns the numbers of the threads of a process.
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

// Rounds bounds the number of searches for threads that start while others are being stopped. Each round stops at least one more thread. A process
// that starts new threads during all these rounds cannot be stopped.
const Rounds = 1000

// EachRound calls f with the threads of a process, and repeats this while f reports that it has found new threads, because threads may start
// meanwhile.
func EachRound(pid int, f func(tids []int) (found bool, err error)) error {
	for range Rounds {
		tids, err := ThreadIDs(pid)
		if err != nil {
			return err
		}
		if found, err := f(tids); err != nil || !found {
			return err
		}
	}
	return fmt.Errorf("new threads kept starting for %d rounds", Rounds)
}

// StopPatience and busyPatience bound the wait for a thread to stop. A thread that takes longer is in an uninterruptible sleep, or the machine is too
// busy to run it.
const (
	StopPatience = 200 * time.Millisecond
	busyPatience = 5 * time.Second
)

// Late reports whether a thread that was requested to stop has exceeded the time limit, and returns its state. waited is the time since the request.
// For a thread that runs or has just stopped, the limit is longer.
func Late(pid, tid int, waited time.Duration) (state byte, late bool) {
	if waited <= StopPatience {
		return 0, false
	}
	state = ThreadState(pid, tid)
	return state, state != 'R' && state != 't' || waited > busyPatience
}

// ThreadState returns the state letter of a thread (proc_pid_stat(5)), or '?' if unknown.
func ThreadState(pid, tid int) byte {
	fields, err := statFields(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if err != nil || len(fields) == 0 {
		return '?'
	}
	return fields[0][0]
}

// Started returns an upper bound of the time when a process started. The kernel reports it in hundredths of a second since boot (proc_pid_stat(5)).
func Started(pid int) (time.Time, error) {
	fields, err := statFields(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Time{}, err
	}
	// Starttime is an index in the fields after the name; USER_HZ is 100 on all supported architectures.
	const starttime, tick = 19, 10 * time.Millisecond
	if len(fields) <= starttime {
		return time.Time{}, fmt.Errorf("process %d: its start time is missing", pid)
	}
	ticks, err := strconv.ParseInt(fields[starttime], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}, err
	}
	text, _, _ := strings.Cut(string(b), " ")
	up, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return time.Time{}, err
	}
	ago := time.Duration(up*float64(time.Second)) - time.Duration(ticks)*tick
	return time.Now().Add(2*tick - ago), nil
}

// Ended reports whether a thread has ended. It may still have an entry in the process table.
func Ended(pid, tid int) bool {
	switch ThreadState(pid, tid) {
	case 'Z', 'X', '?':
		return true
	}
	return false
}

// ThreadName returns the name of a thread, or "" if it has ended.
func ThreadName(pid, tid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

// maxCommand bounds the length of a command line. A process can make it arbitrarily long, and it is only displayed.
const maxCommand = 4096

// CommandLine returns the command line of a process, or "" if it has none.
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

// StatFields returns the fields of /proc/PID/stat after the name. The first is the third field of proc_pid_stat(5).
func StatFields(pid int) ([]string, error) { return statFields(fmt.Sprintf("/proc/%d/stat", pid)) }

// statFields reads a stat file of a process or a thread. The name in it may contain any character, including a closing parenthesis.
func statFields(path string) ([]string, error) {
	stat, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])), nil
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
