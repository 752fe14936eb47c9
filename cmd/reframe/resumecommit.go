package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reframe/deopt"
	"reframe/deopt/commit"
	"reframe/deopt/frame"
	"reframe/internal/fold"
	"reframe/ptrace"
)

// commitOptions say whether what the interpreter did is written to the process.
type commitOptions struct{ commit, dry bool }

func (o commitOptions) check() error {
	if o.dry && !o.commit {
		return usage("--dry-run says what --commit would write; give both")
	}
	return nil
}

// commit runs the chosen frames of a process under control, writes what came of it into the process
// and prints it.
func (a *app) commit(ctx context.Context, k *inputs, dry bool, c deopt.Choice, result string, l deopt.Limits) error {
	if len(k.objects) > 0 {
		return usage("--object does not go with --commit: what the code of an object that nobody registered is to go on with is not written")
	}
	o, err := k.options(a)
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := ptrace.Open(ctx, k.pid)
	if err != nil {
		return err
	}
	stack, out, err := a.committed(ctx, s, o, dry, c, result, l)
	err = errors.Join(err, s.Detach())
	pause := time.Since(began)
	if err != nil && out != nil && !errors.Is(err, ptrace.ErrGone) {
		err = fmt.Errorf("%w (%s)", err, stoodStill(fmt.Sprintf("process %d", k.pid), pause, s.Stopped()))
	}
	if err != nil {
		return err
	}
	out.PauseUS = new(pause.Microseconds())
	if a.json {
		return writeJSON(a.stdout, out)
	}
	stack.Sources(deopt.QuickSources)
	if err := printResumed(fold.To(a.stdout), a.style(), out, stack); err != nil {
		return err
	}
	fmt.Fprintln(fold.To(a.stderr), stoodStill(fmt.Sprintf("pid %d", k.pid), pause, s.Stopped()))
	return nil
}

// committed does it while the process is stopped.
func (a *app) committed(ctx context.Context, s *ptrace.Session, o deopt.Options, dry bool, choice deopt.Choice, result string, l deopt.Limits) (*deopt.Stack, *frame.Resumed, error) {
	t, err := s.Target()
	if err != nil {
		return nil, nil, err
	}
	view, err := deopt.Frames(t, o)
	if err != nil {
		return nil, nil, err
	}
	stack, err := pick(view, choice)
	if err != nil {
		return nil, nil, err
	}
	stack.Result = result
	out, c, err := commit.Prepare(ctx, s, stack, l)
	if err != nil {
		return nil, out, fmt.Errorf("nothing is committed: %w", bounded(err))
	}
	if !dry {
		err = c.Write()
	}
	return stack, out, err
}

// changeRow is how many bytes of memory are shown in a line.
const changeRow = 8

// printChange shows bytes that became others, in rows where they are many.
func printChange(text *strings.Builder, m frame.CommittedMemory) {
	at, err := strconv.ParseUint(strings.TrimPrefix(string(m.Address), "0x"), 16, 64)
	for n := 0; err == nil && 2*changeRow < len(m.Old[n:]); n += 2 * changeRow {
		end := n + 2*changeRow
		fmt.Fprintf(text, "  %s  %s -> %s\n", frame.HexOf(at+uint64(n/2)), m.Old[n:end], m.New[n:end])
	}
	n := max(0, len(m.Old)-1) / (2 * changeRow) * (2 * changeRow)
	fmt.Fprintf(text, "  %s  %s -> %s\n", frame.HexOf(at+uint64(n/2)), m.Old[n:], m.New[n:])
}

// printCommitted says what was written, or would be.
func printCommitted(text *strings.Builder, s style, c *frame.Committed) {
	verb := "written"
	if !c.Written {
		verb = "it would write"
	}
	fmt.Fprintf(text, "%s: %s in %s, %s\n", verb, count(c.Bytes, "byte"), count(len(c.Memory), "place"), count(len(c.Registers), "register"))
	if !c.Written {
		for _, m := range c.Memory {
			printChange(text, m)
		}
		for _, r := range c.Registers {
			if r.Old == r.New {
				fmt.Fprintf(text, "  %-5s %s as it is\n", r.Name, r.Old)
				continue
			}
			fmt.Fprintf(text, "  %-5s %s -> %s\n", r.Name, r.Old, r.New)
		}
	}
	for _, r := range c.Result {
		fmt.Fprintf(text, "result%s %s %s in %s\n", r.Path, printable(r.Type), s.bold(printable(r.Value)), r.Register)
	}
	left := fmt.Sprintf("frame #%d is", c.Left[0])
	if n := len(c.Left); n > 1 {
		left = fmt.Sprintf("frames #%d to #%d are", c.Left[0], c.Left[n-1])
	}
	to := c.Continues
	where := string(to.PC)
	if to.Function != "" && to.Offset != nil {
		where = fmt.Sprintf("%s+%#x", printable(to.Function), *to.Offset)
	}
	fmt.Fprintf(text, "%s left, and the thread goes on at %s, frame #%d\n", left, where, to.Frame)
}
