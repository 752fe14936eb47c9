package prompt

import (
	"context"

	"example.com/reframe/internal/debug/session"
)

// reverseContinue implements the reverse-continue command.
func (p *Prompt) reverseContinue(ctx context.Context, args string) error {
	if args != "" {
		return wrong("")
	}
	stop, err := p.Session.ReverseContinue(ctx)
	if err != nil {
		return err
	}
	return p.stopped(stop)
}

// reverseStep implements the reverse-stepi command.
func (p *Prompt) reverseStep(ctx context.Context, args string) error {
	n, err := number(args, 1)
	if err != nil {
		return err
	}
	stop, err := p.Session.ReverseStep(ctx, uint64(n))
	if err != nil {
		return err
	}
	return p.stopped(stop)
}

// reverseEntry implements the reverse-entry command.
func (p *Prompt) reverseEntry(ctx context.Context, args string) error {
	if args != "" {
		return wrong("")
	}
	stop, err := p.Session.ReverseEntry(ctx)
	if err != nil {
		return err
	}
	return p.stopped(stop)
}

// reverseWrite implements the reverse-write command.
func (p *Prompt) reverseWrite(ctx context.Context, args string) error {
	if args == "" {
		return wrong("")
	}
	stop, w, err := p.Session.ReverseWrite(ctx, args, func(steps int) { p.printf("went back %d instructions; Ctrl-C stops\n", steps) })
	if err != nil {
		return err
	}
	switch {
	case stop.Why == session.AtWrite && w.Silent:
		p.printf("before the last write of %s (%s), which does not change it\n", args, w.Place)
	case stop.Why == session.AtWrite:
		p.printf("before the last write of %s (%s)\n", args, w.Place)
	case stop.Why == session.AtEntry:
		p.printf("%s (%s) was not written in this activation\n", args, w.Place)
	}
	return p.stopped(stop)
}
