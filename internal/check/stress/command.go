package stress

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"example.com/reframe/ptrace"
)

// errTime is the cause with which a run that takes too long is canceled.
var errTime = errors.New("it took too long")

// streams holds the standard output and the standard error of one run.
type streams struct {
	stdout, stderr *stream
	began          time.Time
}

func newStreams() (*streams, error) {
	out, err := newStream()
	if err != nil {
		return nil, err
	}
	errs, err := newStream()
	if err != nil {
		out.finish()
		return nil, err
	}
	return &streams{out, errs, time.Now()}, nil
}

// finish records the output of a run that has ended.
func (s *streams) finish(o *Outcome) {
	o.Seconds = time.Since(s.began).Seconds()
	o.Stdout, o.Stderr = s.stdout.finish(), s.stderr.finish()
}

// timed returns a context that is canceled after the time limit of a run.
func (s *stresser) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.options.Time, errTime)
}

// untouched runs the command without ptrace.
func (s *stresser) untouched(ctx context.Context) (*Outcome, error) {
	run, cancel := s.timed(ctx)
	defer cancel()
	io, err := newStreams()
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	defer io.finish(out)
	cmd := exec.CommandContext(run, s.command[0], s.command[1:]...)
	var files []*os.File
	for _, f := range []struct {
		path string
		flag int
	}{{s.options.Stdin, os.O_RDONLY}, {io.stdout.path(), os.O_RDWR}, {io.stderr.path(), os.O_RDWR}} {
		opened, err := os.OpenFile(f.path, f.flag, 0)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		files = append(files, opened)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	err = cmd.Run()
	for _, f := range files[1:] {
		f.Close()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if out.TimedOut = run.Err() != nil; out.TimedOut {
		return out, nil
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	out.ExitCode = cmd.ProcessState.ExitCode()
	if ws, is := cmd.ProcessState.Sys().(syscall.WaitStatus); is && ws.Signaled() {
		out.ExitCode, out.Signal = 0, int(ws.Signal())
	}
	return out, nil
}

// controlled starts the command as a traced process.
func (s *stresser) controlled(ctx context.Context, io *streams) (*ptrace.Session, error) {
	return ptrace.LaunchWith(ctx, s.command, ptrace.LaunchOptions{Stdin: s.options.Stdin, Stdout: io.stdout.path(), Stderr: io.stderr.path(), Bound: true})
}
