package prompt

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/ptrace"
)

// goOn implements the continue command.
func (p *Prompt) goOn(ctx context.Context, args string) error {
	if args != "" {
		return wrong("")
	}
	stop, err := p.Session.Continue(ctx)
	if err != nil {
		return err
	}
	return p.stopped(stop)
}

// stopped prints the reason and the place of a stop of the process.
func (p *Prompt) stopped(stop session.Stop) error {
	p.listed = 0
	switch stop.Why {
	case session.Ended:
		if stop.End.Kind == trace.EndKilled {
			p.printf("the process was killed by %s\n", ptrace.SignalName(stop.End.Signal))
		} else {
			p.printf("the process exited with status %d\n", stop.End.ExitCode)
		}
		return nil
	case session.AtExit:
		p.printf("breakpoint %d, %s\n", stop.Breakpoint.Number, p.Printer.Printable(stop.Breakpoint.String()))
	case session.Interrupted:
		p.printf("interrupted\n")
	case session.AtBegin:
		p.printf("start of the recording: cannot go back further\n")
	case session.AtEntry:
		p.printf("the entry of the activation\n")
	}
	return p.here()
}

// here prints the selected frame, and the line of the IR at which it is stopped.
func (p *Prompt) here() error {
	t, err := p.Session.Thread()
	if err != nil {
		return err
	}
	at, err := p.Session.Level()
	if err != nil {
		p.printf("%s\n", p.Printer.Thread(t))
		return err
	}
	if v, _ := p.Session.View(); len(v.Threads) > 1 {
		p.printf("%s\n", p.Printer.Thread(t))
	}
	if at.Physical != nil {
		p.Printer.Frame(p.out, &at.Physical.Frame)
	} else {
		p.runLine(at)
	}
	p.lineOf(at)
	return nil
}

// lineOf prints the line of the IR at which a frame is stopped, or its instruction, if it is known.
func (p *Prompt) lineOf(at session.Level) {
	if at.VM != nil {
		p.vmInstruction(at)
	}
	if i := at.Place(); i != nil {
		p.printf("%s\n", p.irLine(i.Line, i.Block.Func.Module.LineText(i.Line), true, ""))
	}
}

// breakAt implements the break command.
func (p *Prompt) breakAt(_ context.Context, args string) error { return p.setBreakpoint(args, false) }

// breakOnce implements the tbreak command.
func (p *Prompt) breakOnce(_ context.Context, args string) error { return p.setBreakpoint(args, true) }

func (p *Prompt) setBreakpoint(args string, once bool) error {
	b, err := parseBreakpoint(args)
	if err != nil {
		return err
	}
	b.Once = once
	set, err := p.Session.Break(b)
	if err != nil {
		return err
	}
	n, err := p.Session.Places(set)
	if err != nil {
		return err
	}
	where := "pending: no such place yet"
	if n > 0 {
		where = places(n)
	}
	p.printf("breakpoint %d: %s (%s)\n", set.Number, p.Printer.Printable(set.String()), where)
	return nil
}

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

// parseBreakpoint parses the arguments of break.
func parseBreakpoint(args string) (b session.Breakpoint, err error) {
	words := strings.Fields(args)
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		next := func() (string, error) {
			if len(words) == 0 {
				return "", wrong("%s requires a name after it", word)
			}
			name := words[0]
			words = words[1:]
			return name, nil
		}
		switch {
		case len(words) > 1 && words[0] == "@":
			place, is := condition.Place(word + " @ " + words[1])
			if !is || b.VM != nil {
				return b, wrong("%s @ %s: expected one position of a method", word, words[1])
			}
			b.VM, words = place, words[2:]
		case word == "if":
			_, text, _ := strings.Cut(" "+args, " if ")
			if b.If, err = condition.Parse(strings.TrimSpace(text)); err != nil {
				return b, err
			}
			words = nil
		case word == "at":
			name, err := next()
			if err != nil {
				return b, err
			}
			if b.At, err = names.Exact(name); err != nil {
				return b, err
			}
		case word == "record":
		case slices.Contains(trace.SiteKinds, word):
			b.Sites = append(b.Sites, word)
		default:
			if id, err := strconv.ParseUint(word, 0, 64); err == nil {
				b.Records = append(b.Records, id)
				continue
			}
			name := word
			if word == "function" {
				if name, err = next(); err != nil {
					return b, err
				}
			}
			if b.Function != nil {
				return b, wrong("%s and %s: expected one function, or a regular expression for several", b.Function.Text, name)
			}
			if b.Function, err = names.Loose(strings.TrimPrefix(name, "@")); err != nil {
				return b, err
			}
		}
	}
	if b.At != nil && (len(b.Records)+len(b.Sites) > 0 || b.Function != nil) {
		return b, wrong("at SYMBOL cannot be combined with other arguments: calls of a symbol are not sites")
	}
	return b, nil
}

// listBreakpoints implements the breakpoints command.
func (p *Prompt) listBreakpoints(context.Context, string) error {
	list := p.Session.Breakpoints()
	if len(list) == 0 {
		p.printf("no breakpoints; break sets one\n")
	}
	for _, b := range list {
		more := ""
		if b.Once {
			more += ", once"
		}
		if b.Disabled {
			more += ", disabled"
		}
		p.printf("%-3d %s%s\n", b.Number, p.Printer.Printable(b.String()), more)
		if b.Hits > 0 || b.Passed > 0 {
			said := fmt.Sprintf("stopped %s", times(b.Hits))
			if b.If != nil {
				said += fmt.Sprintf(", condition false %s", times(b.Passed))
			}
			p.printf("    %s\n", p.Printer.Dim(said))
		}
	}
	return nil
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// numbered calls a function for each of the numbered breakpoints.
func (p *Prompt) numbered(args string, do func(*session.Breakpoint)) error {
	words := strings.Fields(args)
	if len(words) == 0 {
		return wrong("")
	}
	var list []*session.Breakpoint
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil {
			return wrong("%s: expected the number of a breakpoint", word)
		}
		b, err := p.Session.Breakpoint(n)
		if err != nil {
			return err
		}
		list = append(list, b)
	}
	for _, b := range list {
		do(b)
	}
	return nil
}

// deleteBreakpoints implements the delete command.
func (p *Prompt) deleteBreakpoints(_ context.Context, args string) error {
	if args == "" {
		for _, b := range slices.Clone(p.Session.Breakpoints()) {
			p.Session.Delete(b.Number)
		}
		return nil
	}
	return p.numbered(args, func(b *session.Breakpoint) { p.Session.Delete(b.Number) })
}

// disable implements the disable command.
func (p *Prompt) disable(_ context.Context, args string) error {
	return p.numbered(args, func(b *session.Breakpoint) { b.Disabled = true })
}

// enable implements the enable command.
func (p *Prompt) enable(_ context.Context, args string) error {
	return p.numbered(args, func(b *session.Breakpoint) { b.Disabled = false })
}

// exits implements the exits command.
func (p *Prompt) exits(_ context.Context, args string) error {
	var only *names.Pattern
	if args != "" {
		var err error
		if only, err = names.Loose(args); err != nil {
			return err
		}
	}
	list, err := p.Session.Exits()
	shown := 0
	for _, planned := range list {
		for _, x := range planned.Exits {
			if only != nil && !only.Match(x.Function) {
				continue
			}
			shown++
			p.printf("%s  %s+%#x  record %d, %s\n", planned.Address, p.Printer.Printable(names.Short(x.Function)), x.Offset, x.Record, x.Site)
		}
	}
	switch {
	case shown > 0:
	case err != nil:
		return err
	default:
		return fmt.Errorf("there are no exits of %s", args)
	}
	return nil
}
