package prompt

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"example.com/reframe/internal/debug/session"
)

// backtrace implements the bt command.
func (p *Prompt) backtrace(context.Context, string) error {
	list, err := p.Session.Levels()
	if err != nil {
		return err
	}
	t, err := p.Session.Thread()
	if err != nil {
		return err
	}
	here, _ := p.Session.Level()
	p.printf("%s\n", p.Printer.Thread(t))
	for _, at := range list {
		mark := "  "
		if at.Number == here.Number {
			mark = "=>"
		}
		if at.Physical == nil {
			p.printf("%s", mark)
			p.runLine(at)
			continue
		}
		f := at.Physical.Frame
		f.Index = at.Number
		var b strings.Builder
		p.Printer.FrameLine(&b, &f)
		p.printf("%s%s", mark, strings.TrimPrefix(b.String(), "  "))
	}
	if !t.End.Complete {
		p.printf("  %s\n", p.Printer.Printable(t.End.Reason))
	}
	return nil
}

// runLine prints the position of an interpreter in a function or a method.
func (p *Prompt) runLine(at session.Level) {
	if at.VM != nil {
		p.vmLine(at)
		return
	}
	i := at.Run.At
	p.printf("%-4s %s  %s, block %s, line %d\n", fmt.Sprintf("#%d", at.Number), p.Printer.Dim("interp"),
		p.Printer.Bold("@"+p.Printer.Printable(at.Run.Func.Name)), p.Printer.Printable(i.Block.Ref()), i.Line)
}

// number parses a number. It returns fallback if args is empty.
func number(args string, fallback int) (int, error) {
	if args == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(args)
	if err != nil || n < 0 {
		return 0, wrong("%s: expected a number", args)
	}
	return n, nil
}

// frame implements the frame command.
func (p *Prompt) frame(_ context.Context, args string) error {
	if args != "" {
		n, err := number(strings.TrimPrefix(args, "#"), 0)
		if err != nil {
			return err
		}
		if err := p.Session.SetLevel(n); err != nil {
			return err
		}
	}
	p.listed = 0
	return p.here()
}

// up implements the up command.
func (p *Prompt) up(ctx context.Context, args string) error { return p.move(ctx, args, 1) }

// down implements the down command.
func (p *Prompt) down(ctx context.Context, args string) error { return p.move(ctx, args, -1) }

func (p *Prompt) move(ctx context.Context, args string, by int) error {
	n, err := number(args, 1)
	if err != nil {
		return err
	}
	at, err := p.Session.Level()
	if err != nil {
		return err
	}
	list, err := p.Session.Levels()
	if err != nil {
		return err
	}
	to := max(0, min(at.Number+by*n, len(list)-1))
	if to == at.Number && n > 0 {
		return fmt.Errorf("this is the %s frame", map[int]string{1: "outermost", -1: "innermost"}[by])
	}
	return p.frame(ctx, strconv.Itoa(to))
}

// threads implements the threads command.
func (p *Prompt) threads(context.Context, string) error {
	list, err := p.Session.Threads()
	if err != nil {
		return err
	}
	here, _ := p.Session.Thread()
	for n := range list {
		t := &list[n]
		mark := "  "
		if here != nil && t.ID == here.ID {
			mark = "=>"
		}
		where := "its frames could not be read"
		if len(t.Frames) > 0 {
			where = p.Printer.Place(&t.Frames[0].Frame)
		}
		p.printf("%s %s  %s\n", mark, p.Printer.Thread(t), where)
	}
	return nil
}

// thread implements the thread command.
func (p *Prompt) thread(_ context.Context, args string) error {
	if args != "" {
		n, err := number(args, 0)
		if err != nil {
			return err
		}
		if err := p.Session.SetThread(n); err != nil {
			return err
		}
	}
	p.listed = 0
	return p.here()
}
