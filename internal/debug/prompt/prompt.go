package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
)

// Prompt runs commands in a session. [New] makes one.
type Prompt struct {
	Session *session.Session
	Printer text.Printer
	Files   Files
	// Leave detaches from the process, or kills it, when the session is over. It is nil for a core.
	Leave func(kill bool) error
	// Launched is true if the process was started for the session: it is killed at the end, as in gdb.
	Launched bool

	out    *output
	last   string // the line that an empty line runs again
	listed int    // the last line that list has shown; 0: list starts at the current line
	left   bool   // the session has detached from the process or killed it
	over   bool   // the user has quit
}

// New returns a prompt that prints to out.
func New(s *session.Session, out io.Writer, p text.Printer) *Prompt {
	return &Prompt{Session: s, Printer: p, out: &output{to: out}}
}

// output keeps the first write error, so that printing code need not check each write.
type output struct {
	to  io.Writer
	err error
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	if o.err == nil {
		_, o.err = o.to.Write(p)
	}
	return len(p), o.err
}

// Err returns the first write error, or nil.
func (p *Prompt) Err() error { return p.out.err }

// Files holds the paths of a target's files, for a script.
type Files struct {
	Core             string // the path of the core; "" for a process
	Options          ptrace.CoreOptions
	Modules, Layouts []string
}

// first returns the arguments for the beginning of a script.
func (f *Files) first(script, core string) replay.First {
	return replay.First{Script: script, Core: core, Options: f.Options, Modules: f.Modules, Layouts: f.Layouts}
}

// printf prints a line, or a part of one.
func (p *Prompt) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// usageError is an error in the use of a command.
type usageError struct {
	command *command
	why     string
}

func (e *usageError) Error() string {
	text := "usage: " + strings.TrimRight(e.command.name()+" "+e.command.usage, " ")
	if e.why != "" {
		text = e.why + "; " + text
	}
	return text
}

// Do runs the command of a line. An empty line repeats the last command, if it is repeatable. When ctx is done Do cancels the command, and the
// session continues. over reports whether the session is over.
func (p *Prompt) Do(ctx context.Context, line string) (over bool, err error) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") {
		return false, nil
	}
	if line == "" {
		line = p.last
	}
	p.last = ""
	if line == "" {
		return false, nil
	}
	word, rest := line, ""
	if n := strings.IndexAny(line, " \t/"); n > 0 {
		word, rest = line[:n], strings.TrimSpace(line[n:])
	}
	c, err := find(word)
	if err != nil {
		return false, err
	}
	if c.repeats {
		p.last = line
	}
	if err = c.do(p, ctx, rest); err != nil {
		p.last = ""
		if wrong := (*usageError)(nil); errors.As(err, &wrong) && wrong.command == nil {
			wrong.command = c
		}
	}
	return p.over, errors.Join(err, p.out.err)
}

// wrong returns an error in the use of the current command.
func wrong(format string, args ...any) error { return &usageError{why: fmt.Sprintf(format, args...)} }

// Close leaves the target: it kills a process that was started for the session, and detaches from any other.
func (p *Prompt) Close() error {
	if p.left || p.Leave == nil {
		return nil
	}
	p.left = true
	return p.Leave(p.Launched)
}
