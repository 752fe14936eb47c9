package handover

import (
	"context"
	"encoding/binary"
	"io"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// Hello returns the description of a target for an interpreter.
func Hello(t *ptrace.Target) protocol.Hello {
	hello := protocol.Hello{Arch: t.Arch().Name, Order: "little", Pointer: t.Arch().Pointer, Target: "process"}
	if t.Arch().Order == binary.ByteOrder(binary.BigEndian) {
		hello.Order = "big"
	}
	if t.Provider == ptrace.FromCore {
		hello.Target = "core"
	}
	return hello
}

// Start starts an interpreter for a target. Its standard error goes to errors.
func Start(ctx context.Context, command string, t *ptrace.Target, errors io.Writer) (*protocol.Child, error) {
	return protocol.Start(ctx, protocol.Spec{Command: command, Hello: Hello(t), Errors: errors})
}

// Symbol returns a function that looks up a symbol of a target.
func Symbol(t *ptrace.Target) func(name string) (machine.Addr, uint64, bool) {
	return func(name string) (machine.Addr, uint64, bool) {
		sym, ok := t.FindSymbol(name)
		return sym.Addr, sym.Size, ok
	}
}

// Host returns a host, which gives an interpreter the memory and the symbols of the view's target. maps are the target's mappings.
func Host(v *deopt.View, maps []machine.Mapping) *protocol.Host {
	t := v.Target()
	return &protocol.Host{Memory: protocol.NewOverlay(t, maps, t.Arch().Pointer), Symbol: Symbol(t)}
}

// Ran is the result of a run.
type Ran struct {
	Report *frame.Resumed // as `reframe resume --json` prints it
	Answer *protocol.Answer
	Memory *protocol.Overlay // the target's memory with the interpreter's stores
}

// Run sends a request made by [Stack.Request] to the interpreter, and returns the result.
func (s *Stack) Run(ctx context.Context, c *protocol.Child, r *protocol.Resume, progress func(int)) (*Ran, error) {
	maps, err := s.View.Target().Mappings()
	if err != nil {
		return nil, err
	}
	h := Host(s.View, maps)
	h.Progress = progress
	a, err := c.Resume(ctx, r, h)
	if err != nil {
		return nil, err
	}
	return &Ran{s.resumed(c, r, a, h.Memory.Writes()), a, h.Memory}, nil
}

// resumed returns the report of a run.
func (s *Stack) resumed(c *protocol.Child, r *protocol.Resume, a *protocol.Answer, writes int) *frame.Resumed {
	first := s.Frames[0]
	out := &frame.Resumed{Schema: frame.ResumedSchema, Function: first.Function, Demangled: first.Demangled, TID: s.Thread.ID, Frame: first.Index, End: s.End,
		Steps: a.Steps, Output: a.Output, Writes: writes}
	for _, f := range s.Frames {
		is := frame.ResumedFrame{Frame: f.Index, Function: f.Function, Demangled: f.Demangled, Moment: f.Record.Moment}
		if f == first && s.Returned != nil {
			is.Given = &frame.Result{Type: s.Returned.Type, Value: s.Returned.Text}
		}
		out.Frames = append(out.Frames, is)
	}
	outermost := r.Frames[len(r.Frames)-1]
	out.With = &frame.With{Command: c.Command, Interpreter: c.About.Name, Method: outermost.Method, Position: outermost.Position, Unsupported: a.Unsupported, Malformed: a.Malformed,
		Requests: a.Requests, Allocated: a.Allocated, Tail: a.Tail}
	if a.Threw != nil {
		out.With.Threw = &a.Threw.Text
	}
	if v := a.Returned; v != nil {
		out.Result = &frame.Result{Type: v.Type, Value: v.Said()}
		out.With.Bits = frame.Hex(v.Bits)
	}
	return out
}
