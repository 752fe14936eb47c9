package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// shutdown is the time after the first signal in which a second one is ignored, because the verb cleans up.
const shutdown = 5 * time.Second

// orderly lists the verbs that clean up after a signal. Other verbs have nothing to restore, so a signal ends them immediately.
var orderly = []string{"dap", "debug", "demo", "protocol", "record", "replay", "resume", "run", "stress", "trace", "verify"}

// atOnce lets signals end a verb that does not watch its context.
func atOnce(verb string) {
	if !slices.Contains(orderly, verb) {
		signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	}
}

// interruptible returns a context that a signal cancels, with an [interruption] as its cause.
//
// Signals often come in pairs: timeout(1) signals its command and then the process group, and both the shell and the kernel send SIGHUP when a
// terminal closes. Therefore a second signal ends reframe only after the shutdown time, and a third one immediately.
func interruptible() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 3)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup ignores SIGHUP, and the launched program must inherit that
			signal.Notify(signals, s)
		}
	}
	go func() {
		first := (<-signals).(syscall.Signal) // all signals of the channel have this type
		over := time.After(shutdown)
		cancel(interruption{first})
		last := <-signals
		select {
		case last = <-signals:
		case <-over:
		}
		signal.Reset()
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(last) // the default action of the signal ends the program
		}
		if err != nil { // Windows cannot send such a signal to itself
			os.Exit(interruption{last.(syscall.Signal)}.status())
		}
	}()
	return ctx
}

// interruption is the signal that ended a verb.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return "interrupted by a signal: " + i.signal.String() }

// status returns the exit status that a shell shows for a program which the signal ends.
func (i interruption) status() int { return 128 + int(i.signal) }
