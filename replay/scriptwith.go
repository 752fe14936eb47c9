package replay

import (
	"context"
	"errors"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/vm/protocol"
)

// resumeWith implements resume --with. The VM's own interpreter runs in the script's current folder, with the script's environment.
func (c *call) resumeWith(v *deopt.View, o *flags.Resume, json bool) error {
	stack, err := handover.Pick(v, o.Choice)
	if err != nil {
		return unmet{err}
	}
	if o.Result != "" {
		if stack.Returned, err = handover.Given(o.Result); err != nil {
			return c.wrong("--result: %v", err)
		}
	}
	request, err := stack.Request()
	if err != nil {
		return unmet{err}
	}
	request.Steps = o.Limits.Steps
	ctx, cancel := context.WithTimeout(c.ctx, o.Timeout)
	defer cancel()
	dir, env := c.interpreter(o.With)
	child, err := protocol.Start(ctx, protocol.Spec{Command: o.With, Hello: handover.Hello(v.Target()), Errors: c.ts.Stderr(), Dir: dir, Env: env})
	if err != nil {
		return unmet{err}
	}
	defer child.Close()
	ran, err := stack.Run(ctx, child, request, nil)
	if err != nil {
		return unmet{err}
	}
	out := ran.Report
	switch {
	case out.With.Unsupported != "":
		return unmet{errors.New("its interpreter cannot continue: " + out.With.Unsupported)}
	case out.With.Malformed != "":
		return unmet{errors.New("its interpreter reports malformed frames: " + out.With.Malformed)}
	}
	c.resumed, c.printed = out, &out.Output
	switch {
	case c.scripts.Printer == nil:
		return nil
	case json:
		return c.scripts.Printer.JSON(c.out(), out)
	}
	return c.scripts.Printer.ResumedWith(c.out(), out, stack)
}

// interpreter returns the folder and the environment for the command of --with.
func (c *call) interpreter(command string) (dir string, env []string) {
	for _, word := range strings.Fields(command) { // any word may name a file that the interpreter reads
		c.file(strings.Trim(word, `'"`))
	}
	return c.environment()
}

// threw returns the text of the exception that left the outermost frame, or nil if none did.
func (c *call) threw() *string {
	if c.resumed == nil || c.resumed.With == nil {
		return nil
	}
	return c.resumed.With.Threw
}

// throws implements the throws command.
func (c *call) throws() error {
	switch {
	case len(c.args) != 1:
		return c.wrong("")
	case c.resumed == nil:
		return errors.New("nothing was resumed; use resume --with first")
	case c.threw() == nil:
		return otherwise("it returned, and did not end with an exception")
	case *c.threw() != c.args[0]:
		return otherwise("it threw %q, not %q", *c.threw(), c.args[0])
	}
	return nil
}
