package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
)

// The files that receive the output of a launched program.
const (
	programOut    = "program.stdout"
	programErrors = "program.stderr"
)

func (c *call) launch() error {
	var in flags.Inputs
	stdin := os.DevNull
	f := c.flags()
	f.SetInterspersed(false) // words after the command's name belong to the command
	in.Add(f, nil)
	f.StringVar(&stdin, "stdin", stdin, "")
	command, err := c.parse(f, 1, many)
	if err != nil {
		return err
	}
	options, err := c.follow(in)
	if err != nil {
		return err
	}
	c.close()
	c.options, c.given = options, in
	if c.session, err = c.start(command, stdin); err != nil {
		return unmet{err}
	}
	return nil
}

// start starts a program as exec does, but traced.
func (c *call) start(command []string, stdin string) (*ptrace.Session, error) {
	for _, word := range command { // any word may name a file that the program reads
		c.file(word)
	}
	path, err := c.find(command[0])
	if err != nil {
		return nil, err
	}
	c.file(path)
	o := ptrace.LaunchOptions{Bound: true, Stdin: c.file(stdin),
		Stdout: filepath.Join(c.work, programOut), Stderr: filepath.Join(c.work, programErrors)}
	o.Dir, o.Env = c.environment()
	s, err := ptrace.LaunchWith(c.ctx, append([]string{path}, command[1:]...), o)
	if err != nil {
		return nil, err
	}
	c.process, _ = os.FindProcess(s.PID()) // no error is possible: the process exists and is stopped
	return s, nil
}

// environment returns the working folder and the environment for programs of the script.
func (c *call) environment() (dir string, env []string) {
	dir = c.ts.MkAbs(".")
	for _, name := range c.vars {
		env = append(env, name+"="+c.ts.Getenv(name))
	}
	return dir, append(env, "PWD="+dir)
}

// find looks up a program as a shell in the script would.
func (c *call) find(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return exec.LookPath(c.ts.MkAbs(name))
	}
	for _, dir := range filepath.SplitList(c.ts.Getenv("PATH")) {
		if path, err := exec.LookPath(filepath.Join(c.ts.MkAbs(dir), name)); err == nil {
			return path, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// running returns an error unless a launched program is still running.
func (c *call) running() error {
	switch {
	case c.session != nil:
		return nil
	case c.exit != nil && c.target == nil:
		return errors.New("the program has ended")
	case c.target != nil:
		return fmt.Errorf("a core does not run; use launch before %s", c.name)
	}
	return errors.New("no program runs; use launch first")
}

func (c *call) until() error {
	o := trace.RunToOptions{Options: c.options, Warn: func(text string) { c.ts.Logf("%s", text) }}
	f := c.flags()
	f.Var(names.Into(&o.Function, names.Loose), "function", "")
	var at *names.Pattern
	f.Var(names.Into(&at, names.Exact), "at", "")
	flags.Hit(f, &o.Hit, nil)
	stop := ""
	flags.Stop(f, &stop, nil)
	args, err := c.parse(f, 0, 1)
	if err != nil {
		return err
	}
	what := ""
	if at != nil {
		o.At, what = []*names.Pattern{at}, "calls of "+at.Text
	}
	switch {
	case (len(args) == 0) == (at == nil), at != nil && o.Function != nil:
		return c.wrong("")
	case o.Hit == 0:
		return c.wrong("--hit 0: must be above 0")
	case len(args) > 0:
		id, err := strconv.ParseUint(args[0], 0, 64)
		if err != nil {
			return c.wrong("%s: expected the number of a record", args[0])
		}
		o.Records, what = []uint64{id}, fmt.Sprintf("record %d", id)
	}

	if o.Stop, err = flags.Condition(f, stop, &c.options, &o.ExitFilter, c.untold(c.given)); err != nil {
		return c.wrong("%v", err)
	}
	if err := c.running(); err != nil {
		return err
	}
	c.moved()
	o.Describe = c.describer(c.given)
	m, err := trace.RunTo(c.ctx, c.session, o)
	if early := (*trace.NotReachedError)(nil); errors.As(err, &early) {
		if late := c.ended(early.End.ExitCode, early.End.Signal); late != nil {
			return late
		}
		return unmet{fmt.Errorf("%s: %w", what, err)}
	}
	if err != nil {
		return err
	}
	c.view = m.View
	if m.Frame != nil && m.Frame.Record != nil {
		c.frame, c.thread = m.Frame, &m.View.Threads[0]
	}
	return nil
}

// goOn implements the continue command.
func (c *call) goOn() error {
	if len(c.args) > 0 {
		return c.wrong("")
	}
	if err := c.running(); err != nil {
		return err
	}
	c.moved()
	for {
		e, err := c.session.Next(c.ctx)
		if err != nil {
			return err
		}
		if e.Kind == ptrace.Ended {
			return c.ended(e.ExitCode, e.Signal)
		}
	}
}

// maxPrinted bounds the output of a program that a script can read, in bytes.
const maxPrinted = 64 << 20

// ended stores how the program ended and what it printed, and releases the process.
func (c *call) ended(code, signal int) error {
	_ = c.process.Release()
	s := c.session
	c.session, c.process, c.exit = nil, nil, &exit{code, signal}
	if err := s.Detach(); err != nil {
		return err
	}
	printed, err := c.printedTo(programOut, c.out())
	if err != nil {
		return err
	}
	c.printed = &printed
	_, err = c.printedTo(programErrors, c.ts.Stderr())
	return err
}

// printedTo reads the output of the program from a file, and writes it to to.
func (c *call) printedTo(name string, to io.Writer) (string, error) {
	f, err := os.Open(filepath.Join(c.work, name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPrinted+1))
	if err == nil && len(text) > maxPrinted {
		err = fmt.Errorf("the program printed more than %d MiB to %s", maxPrinted>>20, name)
	}
	if err != nil {
		return "", err
	}
	_, err = to.Write(text)
	return string(text), err
}

// record implements the record command.
func (c *call) record() error {
	o := ptrace.RecordOptions{}
	f := c.flags()
	flags.Record(f, &o, nil)
	args, err := c.parse(f, 1, 1)
	if err != nil {
		return err
	}
	if err := flags.CheckMemory(o.Memory); err != nil {
		return c.wrong("%v", err)
	}
	if err := c.running(); err != nil {
		return err
	}
	v, err := c.look()
	if err != nil {
		return err
	}
	o.Thread = v.Threads[0].ID
	target, err := c.session.Target()
	if err != nil {
		return err
	}
	file := c.ts.MkAbs(args[0])
	inside, err := filepath.Rel(c.work, file)
	o.Replace = err == nil && filepath.IsLocal(inside) // a file outside of $WORK does not belong to the script, so it is not replaced
	_, err = target.WriteCore(c.ctx, file, o)
	return err
}
