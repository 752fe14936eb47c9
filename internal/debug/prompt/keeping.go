package prompt

import (
	"context"
	"errors"
	"os"

	"example.com/reframe/internal/base/newfile"
	"example.com/reframe/ptrace"
)

// record implements the record command.
func (p *Prompt) record(ctx context.Context, args string) error {
	if args == "" {
		return wrong("")
	}
	core, err := p.Session.Record(ctx, args, ptrace.RecordOptions{Memory: ptrace.Minimal}) // as reframe record does by default
	if err != nil {
		return err
	}
	p.Files.Core = args
	p.printf("%s: %d KiB of memory\n", args, core.Held>>10)
	return nil
}

// script implements the script command.
func (p *Prompt) script(ctx context.Context, args string) error {
	switch {
	case args == "":
		return wrong("")
	case p.Files.Core == "":
		return errors.New("a script requires a core: use record FILE first")
	}
	if err := newfile.Free(args); err != nil {
		return err
	}
	text, err := p.Session.Script(ctx, p.Files.first(args, p.Files.Core))
	if err == nil {
		err = os.WriteFile(args, []byte(text), 0o600)
	}
	if err != nil {
		return err
	}
	p.printf("%s; reframe replay %[1]s runs it\n", args)
	return nil
}

// commit implements the commit command.
func (p *Prompt) commit(ctx context.Context, _ string) error {
	r, stack, err := p.Session.Commit(ctx)
	if err != nil {
		return err
	}
	if err := p.Printer.Resumed(p.out, r, stack); err != nil {
		return err
	}
	return p.here()
}
