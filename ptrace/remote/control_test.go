package remote

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace/holder"
	"example.com/reframe/test/livetest"
)

// controlled opens a stub with the given replies, and returns the control of its process.
func controlled(t *testing.T, replies map[string]string) holder.Control {
	t.Helper()
	all := map[string]string{"vCont?": pack("vCont;c;C;s;S"), "Z": pack("OK"), "z": pack("OK"), "D": pack("OK")}
	for request, reply := range replies {
		all[request] = reply
	}
	s, err := open(context.Background(), peer(t, all), livetest.Patience, Options{Control: true})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s.Control
}

// TestControl requires that a trap at a breakpoint is reported as a hit, and that a trap at another address is not.
func TestControl(t *testing.T) {
	c := controlled(t, map[string]string{"vCont;c": pack("T05swbreak:;thread:1;"), "vCont;s": pack("T05thread:1;")})
	require.NoError(t, c.Insert(0x2000)) // the address of the peer's thread
	require.NoError(t, c.Resume())
	stop, err := c.Wait(context.Background())
	require.NoError(t, err)
	require.Equal(t, holder.Stop{Kind: holder.Hit, Thread: 1, PC: 0x2000}, stop)
	stop, err = c.Step(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, holder.Hit, stop.Kind)
	require.NoError(t, c.Detach())
}

// TestEnds requires the exit status or the signal of a process that ends, in each stub's format.
func TestEnds(t *testing.T) {
	for reply, want := range map[string]holder.Stop{
		"W03": {Kind: holder.Exited, Code: 3}, "W3;process:1": {Kind: holder.Exited, Code: 3}, "X0b": {Kind: holder.Killed, Signal: 11},
		"X0a": {Kind: holder.Killed, Signal: 7}, // gdb's number of SIGBUS
	} {
		c := controlled(t, map[string]string{"vCont;c": pack(reply)})
		require.NoError(t, c.Resume())
		stop, err := c.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, want, stop, reply)
	}
}

// TestWaitEnds requires that Wait returns when its context is done, and that the stub can be used afterwards.
func TestWaitEnds(t *testing.T) {
	c := controlled(t, map[string]string{"vCont;c": "+"})
	require.NoError(t, c.Resume())
	soon, cancel := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, errors.New("enough"))
	defer cancel()
	_, err := c.Wait(soon)
	require.EqualError(t, err, "enough")
	_, err = c.Threads()
	require.NoError(t, err)
}

// TestHostileReports requires an error, within bounded time, for each report that a stub must not send.
func TestHostileReports(t *testing.T) {
	for name, c := range map[string]struct{ reply, want string }{
		"ends":              {"", "the stub closed the connection"},
		"refuses":           {pack("E01"), "cannot let the process run: it answers E01"},
		"unknown":           {pack(""), "does not support it: letting the process run"},
		"no report":         {pack("hello"), "malformed"},
		"no number":         {pack("Tzz"), "malformed"},
		"no thread":         {pack("N"), "no thread runs any more"},
		"thread of no form": {pack("T05fork:xyz;thread:1;"), "a new process without a number"},
		"false traps":       {pack("T05swbreak:;thread:1;"), "stops at 0x2000, where there is no breakpoint"},
		"false signals":     {pack("T00thread:1;"), "stops at"},
		"traps":             {pack("T05thread:1;"), "enough"},                                               // the program may contain traps
		"endless output":    {"!" + pack("O"+strings.Repeat("41", 2000)), "the debugger no longer answers"}, // this peer reads no acknowledgements
		"endless noise":     {"!abc", "does not speak"},
		"wrong checksum":    {"$W00#00", ""},
		"cut short":         {"$W0", "no reply within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c1 := controlled(t, map[string]string{"vCont;c": c.reply, "vCont;C": c.reply})
			ctx := context.Background()
			switch {
			case name == "wrong checksum" || name == "cut short" || name == "endless output": // these end at the time limit
				c1.(*control).timeout = 10 * time.Millisecond
			case c.want == "enough":
				soon, cancel := context.WithTimeoutCause(ctx, 50*time.Millisecond, errors.New("enough"))
				defer cancel()
				ctx = soon
			}
			err := c1.Resume()
			if err == nil {
				_, err = c1.Wait(ctx)
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// TestHostileInterrupt requires an error if a stub does not stop the process, or does not report the end of a step.
func TestHostileInterrupt(t *testing.T) {
	c := controlled(t, map[string]string{"vCont;c": "+"})
	require.NoError(t, c.Resume())
	c.(*control).timeout = 10 * time.Millisecond
	_, err := c.Interrupt()
	require.ErrorContains(t, err, "the stub does not stop the process within 10ms")
	require.ErrorIs(t, err, holder.ErrLost)
	require.ErrorIs(t, c.Detach(), holder.ErrLost)

	c = controlled(t, map[string]string{"vCont;c": pack("T05swbreak:;thread:1;"), "vCont;s": "+"})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	_, err = c.Wait(context.Background())
	require.NoError(t, err)
	c.(*control).timeout = 100 * time.Millisecond
	require.ErrorIs(t, c.Resume(), holder.ErrLost) // the end of the step is not reported
}

// TestLacks requires that an error names the operation that a stub does not support.
func TestLacks(t *testing.T) {
	c := controlled(t, map[string]string{"Z": pack(""), "D": pack("")})
	err := c.Insert(0x2000)
	require.ErrorIs(t, err, holder.ErrLacks)
	require.ErrorContains(t, err, "breakpoints (Z0, Z1)")
	require.ErrorContains(t, c.Detach(), "detach")
	require.ErrorContains(t, controlled(t, map[string]string{"Z": pack("E01")}).Insert(0x2000), "cannot set it at 0x2000: it answers E01")
}

// TestVanishedThread requires that a thread which the stub no longer knows has no registers, and that the session can still detach from the process.
func TestVanishedThread(t *testing.T) {
	c := controlled(t, map[string]string{"Hg7": pack("E01")})
	th, err := c.Thread(7)
	require.NoError(t, err)
	require.Nil(t, th.Registers)
	require.Contains(t, th.Missing, "cannot select the thread")
	require.NoError(t, c.Detach())
}
