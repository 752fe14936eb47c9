package prompt

import (
	"context"
	"fmt"
	"strings"

	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
)

// bisect implements the bisect command.
func (p *Prompt) bisect(ctx context.Context, _ string) error {
	out, err := p.Session.Bisect(ctx)
	if err != nil {
		return err
	}
	p.pair(out.Pair)
	switch {
	case out.By == session.Agreed && out.Why == "":
		p.printf("native code and the interpreter agree from here to the return\n")
		return nil
	case out.Before != nil:
		p.printf("they still agreed at %s\n", place(out.Before))
	default:
		p.printf("they agreed at the exit\n")
	}
	if out.Why != "" {
		p.printf("%s\n", p.Printer.Printable(out.Why))
	}
	if out.Instr == nil {
		return nil
	}
	p.printf("%s\n", p.Printer.Bold("the first value that differs in native code:"))
	p.instr(out.Instr, out.Interpreted)
	if out.Native != "" {
		p.printf("          native code has %s\n", p.Printer.Printable(out.Native))
	}
	for _, o := range out.Operands {
		native := "not recorded at any site"
		if o.Native != "" {
			native = "in native code " + o.Native
		}
		p.printf("          %s = %s, %s\n", p.Printer.Printable(o.Name), p.Printer.Printable(o.Interpreted), p.Printer.Printable(native))
	}
	if len(out.Alike) > 0 {
		p.printf("          the value in native code equals %s of the interpreter: the record may contain that instead\n", p.Printer.Printable(strings.Join(out.Alike, ", ")))
	}
	if len(out.Suspects) > 1 {
		p.printf("it was computed from values that no site records; any of them may be wrong:\n")
		for _, i := range out.Suspects {
			p.instr(i, "")
		}
	}
	return nil
}

// place returns the line, block and function of an instruction.
func place(i *ir.Instr) string {
	return fmt.Sprintf("line %d, block %s of @%s", i.Line, i.Block.Ref(), i.Block.Func.Name)
}

// instr prints the line of an instruction with a value next to it.
func (p *Prompt) instr(i *ir.Instr, value string) {
	p.printf("%s\n", p.irLine(i.Line, i.Block.Func.Module.LineText(i.Line), false, value))
}
