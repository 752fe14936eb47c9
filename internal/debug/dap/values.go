package dap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-dap"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/machine"
)

// order returns the target's byte order.
func (c *conn) order() binary.ByteOrder {
	if t, err := c.target.Session.Target(); err == nil {
		return t.Arch().Order
	}
	return binary.LittleEndian
}

// register returns a register as the frame's function sees it, or the reason why it is unavailable.
func (c *conn) register(e *entry, number int) variable {
	registers := e.level.Physical.Physical().Registers
	reg := machine.DWARFReg(number)
	v := said(registers.Arch().RegisterName(reg), "")
	raw, err := registers.Bytes(reg)
	if err != nil {
		v.Value = string(frame.Missing) + ": " + err.Error()
		return v
	}
	v.Value = string(frame.HexBytes(raw, registers.Arch().Order))
	if len(raw) == registers.Arch().Pointer {
		v.MemoryReference = v.Value
	}
	return v
}

func (c *conn) setVariable(r *dap.SetVariableRequest) error {
	a := r.Arguments
	list, err := c.opened(a.VariablesReference, false)
	if err != nil {
		return err
	}
	k := slices.IndexFunc(list, func(v variable) bool { return v.Name == a.Name })
	if k < 0 {
		return fmt.Errorf("%s not found in reference %d", a.Name, a.VariablesReference)
	}
	if list[k].set == "" {
		return fmt.Errorf("%s cannot be set: only named values in the scope Values and values of a virtual machine's frames can be set", a.Name)
	}
	is, _ := c.refs.get(a.VariablesReference) // the reference is valid, because the list above came from it
	var e *entry
	switch is := is.(type) {
	case *scope:
		e = is.entry
	case *object:
		e = is.entry
	default:
		return fmt.Errorf("cannot set a part of a value: set all of it")
	}
	slot, moved, err := c.put(e, list[k].set, a.Value)
	if err != nil {
		return err
	}
	v := c.given(ofSlot(slot, a.Format != nil && a.Format.Hex))
	c.respond(&r.Request, &dap.SetVariableResponse{Body: dap.SetVariableResponseBody{Value: v.Value, Type: v.Type, VariablesReference: v.VariablesReference,
		NamedVariables: v.NamedVariables, IndexedVariables: v.IndexedVariables}})
	c.afterSet(moved)
	return nil
}

func (c *conn) setExpression(r *dap.SetExpressionRequest) error {
	a := r.Arguments
	e, err := c.entry(a.FrameId)
	if err != nil {
		return err
	}
	slot, moved, err := c.put(e, a.Expression, a.Value)
	if err != nil {
		return err
	}
	v := c.given(ofSlot(slot, a.Format != nil && a.Format.Hex))
	c.respond(&r.Request, &dap.SetExpressionResponse{Body: dap.SetExpressionResponseBody{Value: v.Value, Type: v.Type, VariablesReference: v.VariablesReference,
		NamedVariables: v.NamedVariables, IndexedVariables: v.IndexedVariables}})
	c.afterSet(moved)
	return nil
}

// put sets a value of a frame for the interpreter. moved reports whether there was a run, which setting a value moves back to the exit.
func (c *conn) put(e *entry, name, text string) (slot *frame.Slot, moved bool, err error) {
	s := c.target.Session
	if e.level.Run != nil || s.Run() != nil {
		moved = true
	}
	inRun := e.level.Run != nil
	s.LeaveRun()
	if !inRun {
		if err := s.SetThread(e.thread); err != nil {
			return nil, moved, err
		}
		if err := s.SetLevel(e.level.Physical.Index); err != nil {
			return nil, moved, err
		}
	}
	slot, err = s.Set(name, text)
	if inRun {
		if _, again := s.Resume(); again != nil {
			err = errors.Join(err, again)
		}
	}
	if err != nil {
		if moved {
			c.afterSet(true)
		}
		return nil, moved, err
	}
	return slot, moved, nil
}

// afterSet tells the client to read the values again. moved means that the interpreter was moved back to the exit.
func (c *conn) afterSet(moved bool) {
	c.renew()
	if moved {
		c.stoppedAt(stopped{reason: "restart", description: "A value was set: back at the exit"})
	} else if c.client.SupportsInvalidatedEvent {
		c.send(&dap.InvalidatedEvent{Event: event("invalidated"), Body: dap.InvalidatedEventBody{Areas: []dap.InvalidatedAreas{"variables"}}})
	}
}

// words lists the commands of the console, which also evaluates expressions.
var words = []struct{ word, means string }{
	{"exits", "list the places where exits can occur"},
	{"run", "run the interpreter from the exit to the next breakpoint, or to its end"},
	{"output", "show the output of the interpreted program since the exit"},
	{"result VALUE", "set the result of the call that the frame waits for"},
	{"help", "this"},
}

func (c *conn) evaluate(r *dap.EvaluateRequest) error {
	a := r.Arguments
	text := strings.TrimSpace(a.Expression)
	if a.Context == "repl" {
		if done, err := c.command(r, text); done || err != nil {
			return err
		}
	}
	e, err := c.entry(a.FrameId)
	if err != nil {
		return err
	}
	slot, err := c.target.Session.ExpressionAt(e.level, text)
	if err != nil {
		return err
	}
	v := c.given(ofSlot(slot, a.Format != nil && a.Format.Hex))
	c.respond(&r.Request, &dap.EvaluateResponse{Body: dap.EvaluateResponseBody{Result: v.Value, Type: v.Type, PresentationHint: v.PresentationHint,
		VariablesReference: v.VariablesReference, NamedVariables: v.NamedVariables, IndexedVariables: v.IndexedVariables, MemoryReference: v.MemoryReference}})
	return nil
}

// maxListed bounds the exits that are listed.
const maxListed = 200

// command runs the console's command in text. done reports whether the text is a command; otherwise it is an expression.
func (c *conn) command(r *dap.EvaluateRequest, text string) (done bool, err error) {
	s := c.target.Session
	word, rest, _ := strings.Cut(text, " ")
	var b strings.Builder
	switch {
	case text == "help":
		b.WriteString("An expression of values: %i, acc + 1, local[2] > 3. Or:")
		for _, w := range words {
			fmt.Fprintf(&b, "\n  %-12s  %s", w.word, w.means)
		}
	case text == "exits":
		list, err := s.Exits()
		if err != nil {
			return true, err
		}
		n := 0
		for _, p := range list {
			for _, x := range p.Exits {
				if n++; n <= maxListed {
					fmt.Fprintf(&b, "%s  %s+%d  record %d, %s, %s\n", p.Address, x.Function, x.Offset, x.Record, x.Site, x.Moment)
				}
			}
		}
		if n > maxListed {
			fmt.Fprintf(&b, "and %d more", n-maxListed)
		}
	case text == "output":
		run := s.Run()
		if run == nil {
			return true, errors.New("the interpreter has not run from here")
		}
		b.WriteString(run.Output())
	case word == "result" && rest != "":
		moved := s.Run() != nil
		s.SetResult(strings.TrimSpace(rest))
		fmt.Fprintf(&b, "the call returns %s", strings.TrimSpace(rest))
		defer c.afterSet(moved)
	case text == "run":
		if a := r.Arguments.FrameId; a != 0 {
			e, err := c.entry(a)
			if err != nil {
				return true, err
			}
			if s.Run() == nil {
				if err := c.choose(e); err != nil {
					return true, err
				}
			}
		}
		run, err := s.Resume()
		if err != nil {
			return true, fmt.Errorf("the interpreter cannot continue from here: %w", err)
		}
		at := stopped{}
		c.respond(&r.Request, &dap.EvaluateResponse{Body: dap.EvaluateResponseBody{Result: "the interpreter is running"}})
		c.send(&dap.ContinuedEvent{Event: event("continued"), Body: dap.ContinuedEventBody{ThreadId: c.threads[0].Id, AllThreadsContinued: true}})
		c.interpreter(r.Seq, run, &at, func(ctx context.Context) error { return c.interpret(ctx, run, &at) })
		return true, nil
	default:
		return false, nil
	}
	c.respond(&r.Request, &dap.EvaluateResponse{Body: dap.EvaluateResponseBody{Result: strings.TrimSuffix(b.String(), "\n")}})
	return true, nil
}

// nameByte reports whether a byte may be part of the name of a value.
func nameByte(b byte) bool {
	return b >= 0x80 || strings.IndexByte("%._$[]", b) >= 0 || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
}

func (c *conn) completions(r *dap.CompletionsRequest) error {
	a := r.Arguments
	e, err := c.entry(a.FrameId)
	if err != nil {
		return err
	}
	text, line := a.Text, a.Line
	if c.line0 == 1 {
		line--
	}
	if lines := strings.Split(text, "\n"); line > 0 && line < len(lines) {
		text = lines[line]
	}
	end := min(max(a.Column-c.column(), 0), len(text))
	start := end
	for start > 0 && nameByte(text[start-1]) {
		start--
	}
	typed := text[start:end]
	slots, err := c.target.Session.SlotsOf(e.level)
	if err != nil {
		return err
	}
	body := dap.CompletionsResponseBody{Targets: []dap.CompletionItem{}}
	add := func(name, detail string, kind dap.CompletionItemType) {
		if strings.HasPrefix(name, typed) {
			body.Targets = append(body.Targets, dap.CompletionItem{Label: name, Detail: detail, Type: kind, Start: start, Length: end - start})
		}
	}
	for n := range slots {
		if s := &slots[n]; s.Name != "" {
			add(s.Name, s.Type.Source, "variable")
			if plain, cut := strings.CutPrefix(s.Name, "%"); cut && typed != "" {
				add(plain, s.Type.Source, "variable")
			}
		}
	}
	if start == 0 {
		for _, w := range words {
			word, _, _ := strings.Cut(w.word, " ")
			add(word, w.means, "keyword")
		}
	}
	c.respond(&r.Request, &dap.CompletionsResponse{Body: body})
	return nil
}

func (c *conn) exceptionInfo(r *dap.ExceptionInfoRequest) error {
	at := c.stop
	if at.reason != "exception" || at.exit == nil {
		return errors.New("the target is not stopped at an exit by an exception filter")
	}
	body := dap.ExceptionInfoResponseBody{BreakMode: "always", Description: at.text}
	if x := at.exit; x.Record != nil {
		body.ExceptionId = x.Record.Site
		message := fmt.Sprintf("record %d, %s", x.Record.ID, x.Record.Moment)
		if x.Resume != nil {
			message += fmt.Sprintf("; resumes in @%s, block %%%s", x.Resume.Function, x.Resume.Block)
		}
		body.Details = &dap.ExceptionDetails{TypeName: x.Record.Site, Message: message}
	}
	if v := at.verified; v != nil {
		body.ExceptionId = differs
		body.Details = &dap.ExceptionDetails{TypeName: differs, Message: differences(v)}
	}
	c.respond(&r.Request, &dap.ExceptionInfoResponse{Body: body})
	return nil
}

// differences lists the differences between native code and the interpreter.
func differences(v *verify.Verified) string {
	var lines []string
	for _, r := range v.Result {
		if !r.Same {
			lines = append(lines, fmt.Sprintf("result%s, %s in %s: the interpreter has %s, native code %s", r.Path, r.Type, r.Register, r.Interpreter, r.Native))
		}
	}
	if d := v.Call; d != nil {
		line := d.String()
		if d.Only == "" {
			line += fmt.Sprintf(": the interpreter has %s, native code %s", d.Interpreter, d.Native)
		}
		lines = append(lines, line)
	}
	if a := v.Again; a != nil {
		for _, s := range a.Slots {
			lines = append(lines, fmt.Sprintf("%s at the next hit of the record: the interpreter has %s, native code %s", s.Slot, s.Baseline, s.Exit))
		}
	}
	for _, m := range v.Memory {
		lines = append(lines, fmt.Sprintf("memory at %s %s: %s before; the interpreter left %s, native code %s", m.Address, m.Near, m.Before, m.Interpreter, m.Native))
	}
	return strings.Join(lines, "\n")
}
