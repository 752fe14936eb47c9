package replay

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"reframe/deopt/names"
	"reframe/deopt/trace"
	"reframe/deopt/verify"
)

// verify is the command of that name.
func (c *call) verify() error {
	var k known
	var o verify.Options
	var records []string
	var all bool
	f := c.flags()
	f.SetInterspersed(false)
	k.flags(f)
	f.StringArrayVar(&records, "record", nil, "")
	f.StringArrayVar(&o.Sites, "site", nil, "")
	f.Var(names.Into(&o.Function, names.Loose), "function", "")
	f.Var(names.IntoAll(&o.At), "at", "")
	f.Uint64Var(&o.Every, "every", 1, "")
	f.Uint64Var(&o.Skip, "skip", 0, "")
	f.Uint64Var(&o.Limit, "limit", 0, "")
	f.Uint64Var(&o.Steps, "steps", 0, "")
	f.DurationVar(&o.Time, "timeout", 0, "")
	f.BoolVar(&all, "all", false, "")
	command, err := c.parse(f, 1, many)
	switch {
	case err != nil:
		return err
	case len(k.modules) == 0:
		return c.wrong("it needs the module that was compiled: --ir FILE.ll")
	case o.Time < 0 || o.Every == 0:
		return c.wrong("--timeout and --every are above 0")
	}
	for _, text := range records {
		id, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return c.wrong("--record %s: the number of a record", text)
		}
		o.Records = append(o.Records, id)
	}
	for _, kind := range o.Sites {
		if !slices.Contains(trace.SiteKinds, kind) {
			return c.wrong("--site %s: one of %s", kind, strings.Join(trace.SiteKinds, ", "))
		}
	}

	if o.Options, err = c.read(k); err != nil {
		return err
	}
	o.Wait, o.Warn = true, func(text string) { c.ts.Logf("%s", text) }
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

// verdict is what a verification says.
func verdict(s *verify.Summary) error {
	switch {
	case s.Different > 0:
		return otherwise("interpreter and native code differ at %d of %d exits", s.Different, s.Exits)
	case s.Exits == 0 && s.Passed > 0:
		return errors.New("no exit was verified: all were passed")
	case s.Exits == 0:
		return errors.New("there was no exit")
	case s.Same == 0:
		return fmt.Errorf("no exit could be verified: %s", strings.Join(s.Why(), "; "))
	}
	return nil
}
