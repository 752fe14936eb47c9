package ptrace

import (
	"fmt"
	"slices"
)

// signalNames are the names of Linux's signals by number (signal(7), "Signal numbering for standard signals"). They are used for targets, because
// this program may run on another system.
var signalNames = [...]string{
	1: "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
	"SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU",
	"SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
}

// SignalName returns the name of a signal of a target, such as SIGSEGV, or "signal 40" for a signal without a name.
func SignalName(number int) string {
	if number > 0 && number < len(signalNames) {
		return signalNames[number]
	}
	return fmt.Sprintf("signal %d", number)
}

// SignalNumber returns the number of the signal with a name, or 0 if no signal has the name.
func SignalNumber(name string) int { return max(0, slices.Index(signalNames[:], name)) }
