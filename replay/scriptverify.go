package replay

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/cli/flags"
)

// verify implements the verify command.
func (c *call) verify() error {
	var in flags.Inputs
	var o verify.Options
	var exits flags.Exits
	var all bool
	f := c.flags()
	f.SetInterspersed(false)
	in.Add(f, nil)
	exits.Add(f, nil)
	flags.Some(f, &o.Every, &o.Limit, nil)
	flags.Verify(f, &o, nil)
	f.StringVar(&o.With, "with", "", "")
	f.BoolVar(&all, "all", false, "")
	command, err := c.parse(f, 1, many)
	switch {
	case err != nil:
		return err
	case f.Changed("with") && strings.TrimSpace(o.With) == "":
		return c.wrong("the command of --with is empty")
	case len(in.Modules) == 0 && o.With == "" && c.describer(in) == nil:
		return c.wrong("verify requires the compiled module, --ir FILE.ll, or --with")
	case o.Time < 0 || o.Every == 0:
		return c.wrong("--timeout and --every must be above 0")
	}
	err = exits.Read(func(text string) (uint64, error) {
		id, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return 0, fmt.Errorf("--record %s: expected the number of a record", text)
		}
		return id, nil
	})
	if err != nil {
		return c.wrong("%v", err)
	}
	o.ExitFilter, o.At = exits.Filter, exits.At
	if o.Options, err = c.follow(in); err != nil {
		return err
	}
	o.Wait, o.Warn = true, func(text string) { c.ts.Logf("%s", text) }
	o.Describe = c.describer(in)
	if o.With != "" {
		o.WithDir, o.WithEnv = c.interpreter(o.With)
		o.Errors = c.ts.Stderr()
	}
	c.close()
	if c.session, err = c.start(command, os.DevNull); err != nil {
		return err
	}
	p := c.scripts.Printer
	sum, err := verify.Run(c.ctx, c.session, o, func(v *verify.Verified) error {
		if p == nil || !all && v.Status != verify.Different {
			return nil
		}
		return p.Verified(c.out(), v)
	})
	if p != nil && err == nil {
		err = p.Summary(c.out(), sum)
	}
	c.close()
	if err != nil {
		return err
	}
	return verdict(sum)
}

// verdict returns the error of a verification.
func verdict(s *verify.Summary) error {
	switch {
	case s.Different > 0:
		return otherwise("interpreter and native code differ at %d of %d exits", s.Different, s.Exits)
	case s.Exits == 0 && s.Skipped > 0:
		return errors.New("no exit was verified: all were skipped")
	case s.Exits == 0:
		return errors.New("no exit occurred")
	case s.Same == 0:
		return fmt.Errorf("no exit could be verified: %s", strings.Join(s.Why(), "; "))
	}
	return nil
}
