package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
)

// Reverses implements [holder.Control].
func (c *control) Reverses() bool {
	return c.features["ReverseStep"] == "+" && c.features["ReverseContinue"] == "+"
}

// StepBack implements [holder.Control].
func (c *control) StepBack(ctx context.Context, tid int) (holder.Stop, error) {
	stop, _, err := c.stepBack(ctx, tid)
	if err == nil && stop.Kind == holder.Hit { // after a step, a breakpoint there is not a hit
		stop.Kind = holder.Stepped
	}
	return stop, err
}

// stepBack goes back by one instruction of a thread. The stop is Hit if the thread is then at a breakpoint.
func (c *control) stepBack(ctx context.Context, tid int) (holder.Stop, backward, error) {
	if id := c.idOf(tid); id.text != "" {
		if _, err := c.ask("Hc" + id.text); err != nil { // Ignore the reply, as gdb does
			return holder.Stop{}, backward{}, err
		}
	}
	return c.goBack(ctx, "bs")
}

// RunBack implements [holder.Control].
func (c *control) RunBack(ctx context.Context, written machine.Range) (stop holder.Stop, err error) {
	var last []byte
	if !written.Empty() {
		last = make([]byte, written.End-written.Start)
		if _, err := c.Read(last, written.Start); err != nil {
			return stop, err
		}
	}
	var set []string
	defer func() {
		for _, packet := range set {
			if c.lost == nil && !c.gone {
				err = errors.Join(err, c.order("z2"+packet, "remove a watchpoint"))
			}
		}
	}()
	for _, packet := range watchpoints(written) {
		if err := c.order("Z2"+packet, "set a watchpoint"); err != nil {
			if c.lost == nil && !errors.Is(err, holder.ErrLacks) { // for example because x86-64 has only 4 watchpoints
				err = fmt.Errorf("%w: %w", holder.ErrLacks, err)
			}
			return stop, err
		}
		set = append(set, packet)
	}
	for {
		if !c.unthreaded {
			every := "Hc-1"
			if c.multi {
				every = fmt.Sprintf("Hcp%x.-1", c.pid)
			}
			if _, err := c.ask(every); err != nil {
				return stop, err
			}
		}
		stop, how, err := c.goBack(ctx, "bc")
		if err != nil || stop.Kind == holder.Began {
			return stop, err
		}
		if stop, done, err := c.explainBack(ctx, stop, how, written, last); err != nil || done {
			return stop, err
		}
		if err := c.idles(stop.PC); err != nil {
			return stop, err
		}
	}
}

// watchpoints returns the arguments of packets that watch a range. Processors watch aligned words of up to 8 bytes.
func watchpoints(r machine.Range) (list []string) {
	for at := r.Start; at < r.End; {
		size := min(8, uint64(at)&-uint64(at), 1<<(bits.Len64(uint64(r.End-at))-1))
		if at == 0 {
			size = 8
		}
		list = append(list, fmt.Sprintf(",%x,%d", uint64(at), size))
		at += machine.Addr(size)
	}
	return list
}

// explainBack finds the reason of a stop when running backwards: a write, a breakpoint, or the start of the recording. rr reports the watchpoint, and
// the process is before the write, as gdb expects. QEMU 7.2 gives no reason: after bc, the process is after the write, or at the start of the
// recording. done is false if none of these is the reason.
func (c *control) explainBack(ctx context.Context, stop holder.Stop, how backward, written machine.Range, last []byte) (_ holder.Stop, done bool, err error) {
	changed := func() (bool, error) {
		now := make([]byte, len(last))
		_, err := c.Read(now, written.Start)
		return !bytes.Equal(now, last), err
	}
	if len(last) > 0 {
		if stop.Changed, err = changed(); err != nil {
			return stop, true, err
		}
	}
	switch {
	case stop.Changed || how.watch && len(last) > 0: // also if the instruction that writes has a breakpoint
		stop.Kind = holder.Written
		return stop, true, nil
	case stop.Kind == holder.Hit:
		return stop, true, nil
	case how.signal: // the program has received it at this moment
		c.idle = traps{}
		return stop, false, nil
	}
	stop, _, err = c.stepBack(ctx, stop.Thread)
	switch {
	case err != nil || stop.Kind == holder.Began:
		return stop, true, err
	case len(last) == 0:
		return stop, stop.Kind == holder.Hit, nil
	}
	stop.Kind = holder.Written
	stop.Changed, err = changed()
	return stop, true, err
}

// backward holds the reasons that the report of a stop gives when running backwards.
type backward struct {
	watch  bool // the thread is before an instruction that writes into watched memory
	signal bool // the stop is a signal other than a trap
}

// goBack sends bs or bc and waits for the stop. The kind is Stepped if the stop is at no breakpoint. If ctx is done, goBack interrupts the stub; the
// error is the cause, and the process is stopped.
func (c *control) goBack(ctx context.Context, packet string) (stop holder.Stop, how backward, err error) {
	if !c.Reverses() {
		return stop, how, holder.ErrNoReverse
	}
	if ctx.Err() != nil {
		return stop, how, context.Cause(ctx)
	}
	clear(c.at)
	clear(c.entered)
	c.signals, c.early = nil, nil // they belong to a later moment of the recording
	if err := c.launch(packet); err != nil {
		return stop, how, err
	}
	reply, err := c.reported(ctx)
	if err != nil && c.lost == nil && ctx.Err() != nil {
		cause := err
		if reply, err = c.halt(); err == nil {
			_, _, err = c.stoppedBack(reply)
			return stop, how, errors.Join(cause, err)
		}
	}
	if err != nil {
		return stop, how, err
	}
	return c.stoppedBack(reply)
}

// halt interrupts a process that runs backwards, and returns the report of the stop. QEMU 7.2 ignores an interrupt while it loads a snapshot, so that
// halt repeats it.
func (c *control) halt() ([]byte, error) {
	const attempts = 20
	for range attempts {
		if err := c.raw(3); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeoutCause(context.Background(), c.timeout/attempts, errInterrupt)
		reply, err := c.reported(ctx)
		cancel()
		if !errors.Is(err, errInterrupt) {
			return reply, err
		}
	}
	c.lost = fmt.Errorf("%w: %w within %v", holder.ErrLost, errInterrupt, c.timeout)
	return nil, c.lost
}

// reported waits for the report of a stop.
func (c *control) reported(ctx context.Context) ([]byte, error) {
	for {
		reply, err := c.await(ctx)
		if err != nil || len(reply) == 0 || reply[0] != 'O' { // O is text that the program prints through the stub
			c.running = c.running && err != nil
			return reply, err
		}
	}
}

// stoppedBack handles the report of a stop after bs or bc.
func (c *control) stoppedBack(reply []byte) (stop holder.Stop, how backward, err error) {
	switch {
	case len(reply) == 0:
		return stop, how, holder.ErrNoReverse
	case string(reply) == "E14": // QEMU's reply at the start of the recording (gdbstub.c, handle_backward)
		return holder.Stop{Kind: holder.Began}, how, nil
	case failed(reply):
		return stop, how, fmt.Errorf("the stub cannot run backwards: it answers %s", clean(reply))
	case reply[0] == 'N' || reply[0] == 'W' || reply[0] == 'X':
		return stop, how, fmt.Errorf("the stub reports the end of the process for a run backwards: %q", clean(reply))
	}
	r, err := parseStop(reply)
	if err != nil {
		return stop, how, err
	}
	id, err := c.stoppedThread(r)
	if err != nil {
		return stop, how, err
	}
	stop.Thread = id.tid
	if r.fields["replaylog"] == "begin" {
		stop.Kind = holder.Began
		return stop, how, nil
	}
	now, err := c.placeOf(id, r)
	if err != nil {
		return stop, how, err
	}
	how.signal = r.number != 0 && r.number != sigTrap
	stop.Kind, stop.PC = holder.Stepped, now.pc
	if c.inserted[now.pc] != nil {
		c.at[id.tid], stop.Kind = now, holder.Hit
	}
	for _, name := range []string{"watch", "awatch"} {
		if _, is := r.fields[name]; is {
			how.watch = true
		}
	}
	return stop, how, nil
}
