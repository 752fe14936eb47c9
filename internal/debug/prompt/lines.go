package prompt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

// name is the text of the prompt.
const name = "(reframe) "

// Lines is a source of commands. Line returns io.EOF after the last one.
type Lines interface{ Line() (string, error) }

// script reads commands from a file, and prints each after the prompt, as if it had been typed.
type script struct {
	lines *bufio.Scanner
	out   *output
}

// maxLine bounds a line of a script, in bytes.
const maxLine = 1 << 16

// Script returns the commands of a file. It prints each command to the prompt's output when the command is read.
func (p *Prompt) Script(in io.Reader) Lines {
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	return &script{s, p.out}
}

// Line implements [Lines].
func (s *script) Line() (string, error) {
	for s.lines.Scan() {
		line := strings.TrimSpace(s.lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		_, err := fmt.Fprintf(s.out, "%s%s\n", name, line)
		return line, err
	}
	if err := s.lines.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}

// Interact runs the commands of lines until they or the session end. With strict it returns the first error; otherwise it prints errors and
// continues. An interrupt (SIGINT) cancels the running command. When ctx is done it returns the cause.
func (p *Prompt) Interact(ctx context.Context, lines Lines, strict bool) (over bool, err error) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	type read struct {
		line string
		err  error
	}
	next := make(chan read, 1)
	for {
		go func() { // a blocking read cannot be cancelled
			line, err := lines.Line()
			next <- read{line, err}
		}()
		var r read
		for waiting := true; waiting; {
			select {
			case r = <-next:
				waiting = false
			case <-interrupts: // ignore the interrupt, because no command is running
			case <-ctx.Done():
				return false, context.Cause(ctx)
			}
		}
		if errors.Is(r.err, io.EOF) {
			return false, p.out.err
		}
		if r.err != nil {
			return false, r.err
		}
		over, err := p.doInterruptibly(ctx, r.line, interrupts)
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil && (strict || p.out.err != nil):
			return false, err
		case err != nil:
			p.printf("%s\n", p.Printer.Printable(err.Error()))
		case over:
			return true, nil
		}
	}
}

// errInterrupted is the cause of a cancelled command.
var errInterrupted = errors.New("interrupted")

func (p *Prompt) doInterruptibly(ctx context.Context, line string, interrupts <-chan os.Signal) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-interrupts:
			cancel(errInterrupted)
		case <-done:
		}
	}()
	return p.Do(ctx, line)
}
