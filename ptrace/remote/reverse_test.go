package remote

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/test/livetest"
)

const reverses = "ReverseStep+;ReverseContinue+"

// slot is watched memory.
var slot = machine.Range{Start: 0x1008, End: 0x1010}

// TestBackToBegin requires the stop Began at the start of the recording. rr reports the start. QEMU first stops without a reason, and answers the
// next request with an error.
func TestBackToBegin(t *testing.T) {
	for name, script := range map[string][]exchange{
		"rr":   {{"bc", "T05replaylog:begin;thread:1;"}},
		"QEMU": {{"bc", "T05thread:1;"}, {"bs", "E14"}},
		"at":   {{"bc", "E14"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, done := scripted(t, reverses, script)
			stop, err := c.RunBack(context.Background(), machine.Range{})
			require.NoError(t, err)
			require.Equal(t, holder.Began, stop.Kind)
			done()
		})
	}
	c, done := scripted(t, reverses, []exchange{{"bs", "E14"}})
	stop, err := c.StepBack(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, holder.Began, stop.Kind)
	done()
}

// TestBackRefused requires that another error of the stub is not taken for the start of the recording.
func TestBackRefused(t *testing.T) {
	c, done := scripted(t, reverses, []exchange{{"bs", "E01"}, {"bc", "E01"}})
	_, err := c.StepBack(context.Background(), 1)
	require.ErrorContains(t, err, "the stub cannot run backwards: it answers E01")
	_, err = c.RunBack(context.Background(), machine.Range{})
	require.ErrorContains(t, err, "the stub cannot run backwards: it answers E01")
	done()
}

// TestBackOverSignal requires that running backwards continues at signals, any number of them at one instruction, and does not take them for a write.
func TestBackOverSignal(t *testing.T) {
	var signals []exchange
	for range maxTraps + 10 {
		signals = append(signals, exchange{"bc", "T0bthread:1;"})
	}
	end := exchange{"bc", "T05replaylog:begin;thread:1;"}
	c, done := scripted(t, reverses, append(signals[:len(signals):len(signals)], end))
	stop, err := c.RunBack(context.Background(), machine.Range{})
	require.NoError(t, err)
	require.Equal(t, holder.Began, stop.Kind)
	done()
	script := append([]exchange{{"Z2,1008,8", "OK"}}, signals...)
	c, done = scripted(t, reverses, append(script, end, exchange{"z2,1008,8", "OK"}), exchange{"m1008,8", "0500000000000000"})
	stop, err = c.RunBack(context.Background(), slot)
	require.NoError(t, err)
	require.Equal(t, holder.Began, stop.Kind)
	done()
}

// TestBackToHit requires that running backwards stops with a hit at a breakpoint, and that a step back to one is not a hit.
func TestBackToHit(t *testing.T) {
	c, done := scripted(t, reverses, []exchange{{"Z0,2000,1", "OK"}, {"bs", "T05thread:1;"}, {"bc", "T05thread:1;"}})
	require.NoError(t, c.Insert(0x2000))
	stop, err := c.StepBack(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, holder.Stepped, stop.Kind)
	stop, err = c.RunBack(context.Background(), machine.Range{})
	require.NoError(t, err)
	require.Equal(t, holder.Stop{Kind: holder.Hit, Thread: 1, PC: 0x2000}, stop)
	done()

	// The step that finds the reason of a stop ends at the breakpoint.
	c, done = scripted(t, reverses, []exchange{{"Z0,2000,1", "OK"}, {"bc", at(1, 0x2004, 0x1000)}, {"bs", "T05thread:1;"}})
	require.NoError(t, c.Insert(0x2000))
	stop, err = c.RunBack(context.Background(), machine.Range{})
	require.NoError(t, err)
	require.Equal(t, holder.Stop{Kind: holder.Hit, Thread: 1, PC: 0x2000}, stop)
	done()
}

// TestBackToWrite requires that running backwards ends before the write. rr reports the watchpoint and stops before the write. QEMU stops after it,
// without a reason.
func TestBackToWrite(t *testing.T) {
	set, remove := exchange{"Z2,1008,8", "OK"}, exchange{"z2,1008,8", "OK"}
	for name, script := range map[string][]exchange{
		"rr":   {set, {"bc", "T05watch:1008;thread:1;"}, remove},
		"QEMU": {set, {"bc", at(1, 0x2004, 0x1000)}, {"bs", at(1, 0x2000, 0x1000)}, remove},
	} {
		t.Run(name, func(t *testing.T) {
			c, done := scripted(t, reverses, script, exchange{"m1008,8", "0500000000000000"})
			stop, err := c.RunBack(context.Background(), slot)
			require.NoError(t, err)
			require.Equal(t, holder.Stop{Kind: holder.Written, Thread: 1, PC: 0x2000}, stop) // the script's memory does not change
			done()
		})
	}
	for report, kind := range map[string]holder.StopKind{"T05watch:1008;thread:1;": holder.Written, "T05thread:1;": holder.Hit} { // of an instruction with a breakpoint
		c, done := scripted(t, reverses, []exchange{{"Z0,2000,1", "OK"}, set, {"bc", report}, remove}, exchange{"m1008,8", "0500000000000000"})
		require.NoError(t, c.Insert(0x2000))
		stop, err := c.RunBack(context.Background(), slot)
		require.NoError(t, err)
		require.Equal(t, holder.Stop{Kind: kind, Thread: 1, PC: 0x2000}, stop)
		done()
	}
	c, done := scripted(t, reverses, []exchange{set, {"bc", at(1, 0x3000, 0x1000)}, {"bs", "E14"}, remove}, exchange{"m1008,8", "0500000000000000"})
	stop, err := c.RunBack(context.Background(), slot)
	require.NoError(t, err)
	require.Equal(t, holder.Began, stop.Kind)
	done()
}

// TestNoReverse requires an error that names the feature that the stub lacks, and that no request is sent for this feature.
func TestNoReverse(t *testing.T) {
	c, done := scripted(t, "ReverseStep+", nil)
	_, err := c.StepBack(context.Background(), 1)
	require.ErrorIs(t, err, holder.ErrNoReverse)
	_, err = c.RunBack(context.Background(), machine.Range{})
	require.ErrorIs(t, err, holder.ErrNoReverse)
	done()
	memory := exchange{"m1008,8", "0500000000000000"}
	c, done = scripted(t, reverses, nil, memory, exchange{"Z2,1008,8", ""})
	_, err = c.RunBack(context.Background(), slot)
	require.ErrorIs(t, err, holder.ErrLacks)
	done()
	c, done = scripted(t, reverses, []exchange{{"Z2,1008,8", "E01"}}, memory)
	_, err = c.RunBack(context.Background(), slot)
	require.ErrorIs(t, err, holder.ErrLacks)
	require.ErrorContains(t, err, "the stub cannot set a watchpoint: it answers E01")
	done()
}

// TestInterruptBack requires that the end of the context stops a run backwards, also if the stub ignores the first interrupt.
func TestInterruptBack(t *testing.T) {
	cause := errors.New("stop it")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	script := []exchange{{"bc", ""}, {"^C", ""}, {"^C", interruptReport}}
	sent := make(chan string, 100)
	c, _ := observed(t, reverses, script, func(request string) {
		cancel(cause)
		sent <- request
	})
	c.timeout = 5 * time.Second
	_, err := c.RunBack(ctx, machine.Range{})
	require.ErrorIs(t, err, cause)
	require.False(t, c.running)
	for _, e := range script { // on a slow machine, more interrupts follow before the reply
		require.Equal(t, e.request, <-sent)
	}
}

// TestDetachFromReplay requires that a stub which replays may end before it answers the detach, and that any other failure is an error.
func TestDetachFromReplay(t *testing.T) {
	for reply, want := range map[string]string{"": "", "$*!#00": "malformed"} {
		s, err := open(context.Background(), peer(t, map[string]string{"qSupported": pack("PacketSize=1000;qXfer:features:read+;" + reverses), "D": reply}), livetest.Patience, Options{Control: true})
		require.NoError(t, err)
		if err := s.Control.Detach(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// TestWatchpoints requires aligned words of at most 8 bytes that cover the range.
func TestWatchpoints(t *testing.T) {
	require.Equal(t, []string{",1008,8"}, watchpoints(slot))
	require.Equal(t, []string{",1003,1", ",1004,4", ",1008,2"}, watchpoints(machine.Range{Start: 0x1003, End: 0x100a}))
	require.Equal(t, []string{",0,8", ",8,1"}, watchpoints(machine.Range{Start: 0, End: 9}))
	require.Empty(t, watchpoints(machine.Range{}))
}
