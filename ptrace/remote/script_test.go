package remote

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace/holder"
	"example.com/reframe/test/livetest"
)

// exchange is a request to a scripted stub, with the reply. The request ^C is an interrupt; with the reply "" the stub sends nothing.
type exchange struct{ request, reply string }

// scripted opens a stub that answers requests as in a script, and that has the given features. Requests that only read get the replies of healthy,
// and are not in the script. At the end, done requires that all other requests were those of the script, in its order.
func scripted(t *testing.T, features string, script []exchange, reads ...exchange) (c *control, done func()) {
	t.Helper()
	return observed(t, features, script, func(string) {}, reads...)
}

// observed is like scripted. Before each reply, except to requests that only read, the stub calls observe.
func observed(t *testing.T, features string, script []exchange, observe func(request string), reads ...exchange) (c *control, done func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stub")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	var all sync.Mutex
	var got []string
	reply := func(request string) string {
		for _, e := range reads {
			if e.request == request {
				return pack(e.reply)
			}
		}
		switch {
		case strings.HasPrefix(request, "qSupported"):
			return pack("PacketSize=1000;qXfer:features:read+;" + features)
		case request == "vCont?":
			return pack("vCont;c;C;s;S")
		case strings.HasPrefix(request, "vFile"):
			return pack("")
		case request == "^C" || strings.ContainsAny(request[:1], "bvcCsSzZDk"):
			all.Lock()
			defer all.Unlock()
			got = append(got, request)
			observe(request)
			if n := len(got); n > len(script) || script[n-1].request != request {
				return pack("E99")
			}
			if text := script[len(got)-1].reply; text != "" {
				return pack(text)
			}
			return ""
		}
		for beginning, r := range healthy {
			if strings.HasPrefix(request, beginning) {
				return r
			}
		}
		return pack("")
	}
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for in := bufio.NewReader(conn); ; {
			b, err := in.ReadByte()
			switch {
			case err != nil:
				return
			case b == 3:
				_, err = io.WriteString(conn, reply("^C"))
			case b == '$':
				var request string
				if request, err = in.ReadString('#'); err == nil {
					_, err = in.Discard(2)
				}
				if err == nil {
					_, err = fmt.Fprint(conn, "+"+reply(strings.TrimSuffix(request, "#")))
				}
			}
			if err != nil {
				return
			}
		}
	}()
	s, err := open(context.Background(), "unix:"+path, livetest.Patience, Options{Control: true})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s.Control.(*control), func() {
		t.Helper()
		var want []string
		for _, e := range script {
			want = append(want, e.request)
		}
		all.Lock()
		defer all.Unlock()
		require.Equal(t, want, got)
	}
}

// Reports of the scripted stub, whose thread 1 is at 0x2000.
const (
	hitReport       = "T05swbreak:;thread:1;"
	interruptReport = "T02thread:1;"
)

// at returns the report of a trap at which a thread has another position.
func at(thread, pc, sp int) string {
	word := func(v int) string { return fmt.Sprintf("%02x%02x000000000000", v&0xff, v>>8) }
	return fmt.Sprintf("T05thread:%d;01:%s;00:%s;", thread, word(pc), word(sp))
}

func wait(t *testing.T, c *control) holder.Stop {
	t.Helper()
	stop, err := c.Wait(context.Background())
	require.NoError(t, err)
	return stop
}

// TestDetachAfterInterruptAndHit requires that, if a hit was reported before the stop of an interrupt, this stop is read before the detach. gdbserver
// keeps the interrupt as a SIGINT, which would end the process.
func TestDetachAfterInterruptAndHit(t *testing.T) {
	c, done := scripted(t, "", []exchange{
		{"Z0,2000,1", "OK"}, {"vCont;c", ""}, {"^C", hitReport}, {"z0,2000,1", "OK"}, {"vCont;c", interruptReport}, {"D", "OK"},
	})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	stop, err := c.Interrupt()
	require.NoError(t, err)
	require.Equal(t, holder.Hit, stop.Kind)
	require.NoError(t, c.Detach())
	done()
}

// TestDetachWhileRunning requires that the stop of the interrupt is also read if the hit occurs during the detach. With lldb-server, which ignores an
// interrupt at a stop, the detach must not wait.
func TestDetachWhileRunning(t *testing.T) {
	begin := []exchange{{"Z0,2000,1", "OK"}, {"vCont;c", ""}, {"^C", hitReport}, {"z0,2000,1", "OK"}}
	for features, script := range map[string][]exchange{
		"": {{"vCont;c", interruptReport}, {"D", "OK"}}, "native-signals+": {{"D", "OK"}},
	} {
		c, done := scripted(t, features, append(begin[:len(begin):len(begin)], script...))
		require.NoError(t, c.Insert(0x2000))
		require.NoError(t, c.Resume())
		require.NoError(t, c.Detach())
		done()
	}
}

// TestDropsInterrupt requires that a second interrupt is sent if the stub ignored the first one because the process had stopped.
func TestDropsInterrupt(t *testing.T) {
	c, done := scripted(t, "", []exchange{
		{"Z0,2000,1", "OK"}, {"vCont;c", ""}, {"^C", hitReport}, {"z0,2000,1", "OK"}, {"vCont;c", ""}, {"^C", interruptReport}, {"D", "OK"},
	})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	stop, err := c.Interrupt()
	require.NoError(t, err)
	require.Equal(t, holder.Hit, stop.Kind)
	c.timeout = time.Second
	require.NoError(t, c.Detach())
	done()
}

// TestFailedRemoval requires that removing a breakpoint is tried again if the stub cannot remove it. The failure must not prevent the removal of
// other breakpoints or the detach.
func TestFailedRemoval(t *testing.T) {
	c, done := scripted(t, "", []exchange{
		{"Z0,2000,1", "OK"}, {"Z0,3000,1", "OK"}, {"z0,2000,1", "E01"}, {"z0,2000,1", "E01"}, {"Z0,2000,1", "OK"}, {"z0,2000,1", "E01"}, {"z0,3000,1", "OK"}, {"D", "OK"},
	})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Insert(0x3000))
	require.ErrorContains(t, c.Remove(0x2000), "E01")
	require.ErrorContains(t, c.Remove(0x2000), "E01")
	require.NoError(t, c.Insert(0x2000))
	require.ErrorContains(t, c.Detach(), "E01")
	done()
}

// TestRemovalFromUnmappedCode requires that a breakpoint counts as removed if its memory is unmapped.
func TestRemovalFromUnmappedCode(t *testing.T) {
	c, done := scripted(t, "", []exchange{{"Z0,2000,1", "OK"}, {"z0,2000,1", "E01"}, {"D", "OK"}}, exchange{"m2000,1", "E01"})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Remove(0x2000))
	require.NoError(t, c.Detach())
	done()
}

// TestStaleHit requires that the report of a hit at a removed breakpoint is not taken for the stop of the interrupt. Otherwise the interrupt's SIGINT
// would reach the process later.
func TestStaleHit(t *testing.T) {
	c, done := scripted(t, "", []exchange{{"vCont;c", ""}, {"^C", hitReport}, {"vCont;c", interruptReport}, {"D", "OK"}})
	require.NoError(t, c.Resume())
	stop, err := c.Interrupt()
	require.NoError(t, err)
	require.Equal(t, holder.Interrupted, stop.Kind)
	require.NoError(t, c.Detach())
	done()
}

// TestStopSignals requires that only SIGSTOP, by the stub's numbers, is taken for an interrupt, and neither SIGCONT of gdb's numbers nor SIGCHLD of
// Linux's.
func TestStopSignals(t *testing.T) {
	for report, want := range map[string]string{"T11thread:1;": "vCont;c", "T13thread:1;": "vCont;C13:1;c"} {
		c, done := scripted(t, "", []exchange{{"vCont;c", ""}, {"^C", report}, {want, "W00"}})
		require.NoError(t, c.Resume())
		stop, err := c.Interrupt()
		require.NoError(t, err)
		if want == "vCont;c" {
			require.Equal(t, holder.Interrupted, stop.Kind)
			require.NoError(t, c.Resume())
			stop = wait(t, c)
		}
		require.Equal(t, holder.Exited, stop.Kind)
		done()
	}

	// Lldb-server reports only one stop for both signals.
	c, done := scripted(t, "native-signals+", []exchange{{"vCont;c", ""}, {"^C", "T11thread:1;"}, {"vCont;C11:1;c", "W00"}})
	require.NoError(t, c.Resume())
	stop, err := c.Interrupt()
	require.NoError(t, err)
	require.Equal(t, holder.Interrupted, stop.Kind)
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Exited, wait(t, c).Kind)
	done()
}

// TestStepOverBreakpoint requires that a breakpoint is removed during a step, also if a signal or a fork is reported meanwhile. Signals must be
// delivered afterwards: one of each standard signal, and all real-time signals.
func TestStepOverBreakpoint(t *testing.T) {
	c, done := scripted(t, "", []exchange{
		{"Z0,2000,1", "OK"}, {"vCont;c", hitReport}, {"z0,2000,1", "OK"},
		// Two of SIGUSR1, and two of SIGRTMIN+1.
		{"vCont;s:1", "T1ethread:1;"}, {"vCont;s:1", "T1ethread:1;"}, {"vCont;s:1", "T2dthread:1;"}, {"vCont;s:1", "T2dthread:1;"},
		{"vCont;s:1", "T00thread:2;"}, {"vCont;s:1", at(2, 0x6000, 0x900)}, {"vCont;s:1", at(1, 0x2004, 0x1000)}, {"Z0,2000,1", "OK"},
		{"vCont;C1e:1;C05:2;c", "W00"},
	})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Hit, wait(t, c).Kind)
	require.NoError(t, c.Resume())
	require.Equal(t, []signal{{"1", 45}, {"1", 45}}, c.signals)
	require.Equal(t, holder.Exited, wait(t, c).Kind)
	done()
}

// TestOtherThreadDuringStep requires that a hit of another thread is reported if the stub lets all threads run during a step, and that the step is
// completed afterwards.
func TestOtherThreadDuringStep(t *testing.T) {
	c, done := scripted(t, "", []exchange{
		{"Z0,2000,1", "OK"}, {"Z0,3000,1", "OK"}, {"vCont;c", hitReport}, {"z0,2000,1", "OK"}, {"vCont;s:1", at(2, 0x3000, 0x900)}, {"Z0,2000,1", "OK"},
		{"z0,2000,1", "OK"}, {"vCont;s:1", at(1, 0x2004, 0x1000)}, {"Z0,2000,1", "OK"},
		{"z0,3000,1", "OK"}, {"vCont;s:2", at(2, 0x3004, 0x900)}, {"Z0,3000,1", "OK"}, {"vCont;c", "W00"},
	})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Insert(0x3000))
	for _, thread := range []int{1, 2} {
		require.NoError(t, c.Resume())
		stop := wait(t, c)
		require.Equal(t, []any{holder.Hit, thread}, []any{stop.Kind, stop.Thread})
	}
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Exited, wait(t, c).Kind)
	done()
}

// TestRefusedStep requires that the breakpoint is inserted again after a step that fails.
func TestRefusedStep(t *testing.T) {
	c, done := scripted(t, "", []exchange{
		{"Z0,2000,1", "OK"}, {"vCont;c", hitReport}, {"z0,2000,1", "OK"}, {"vCont;s:1", "E01"}, {"Z0,2000,1", "OK"}, {"z0,2000,1", "OK"}, {"D", "OK"},
	})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	wait(t, c)
	require.ErrorContains(t, c.Resume(), "cannot let the process run: it answers E01")
	require.NoError(t, c.Detach())
	done()
}

// TestBlockedStep requires that the process continues if an instruction waits, and that the hit of the same instruction does not count again.
func TestBlockedStep(t *testing.T) {
	c, done := scripted(t, "", []exchange{
		{"Z0,2000,1", "OK"}, {"vCont;c", hitReport}, {"z0,2000,1", "OK"}, {"vCont;s:1", ""}, {"^C", interruptReport}, {"Z0,2000,1", "OK"}, {"vCont;c", hitReport},
		{"z0,2000,1", "OK"}, {"vCont;s:1", at(1, 0x2004, 0x1000)}, {"Z0,2000,1", "OK"}, {"vCont;c", "W00"},
	})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Hit, wait(t, c).Kind)
	c.timeout = time.Second
	require.NoError(t, c.Resume())
	c.timeout = livetest.Patience
	require.Equal(t, holder.Exited, wait(t, c).Kind)
	done()
}

// TestFaultAtBreakpoint requires only one hit for an instruction that faults and whose signal handler executes it again.
func TestFaultAtBreakpoint(t *testing.T) {
	c, done := scripted(t, "", []exchange{
		{"Z0,2000,1", "OK"}, {"vCont;c", hitReport}, {"z0,2000,1", "OK"}, {"vCont;s:1", "T0bthread:1;"}, {"Z0,2000,1", "OK"}, {"vCont;C0b:1;c", hitReport},
		{"z0,2000,1", "OK"}, {"vCont;s:1", at(1, 0x2004, 0x1000)}, {"Z0,2000,1", "OK"}, {"vCont;c", "W00"},
	})
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Hit, wait(t, c).Kind)
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Exited, wait(t, c).Kind)
	done()
}

// TestJumpOutOfHandler requires that a hit counts again at the position that a handler interrupted, if the thread has left the handler without
// returning, which another hit shows.
func TestJumpOutOfHandler(t *testing.T) {
	step := []exchange{{"z0,2000,1", "OK"}, {"vCont;s:1", at(1, 0x2004, 0x1000)}, {"Z0,2000,1", "OK"}}
	other := []exchange{{"z0,3000,1", "OK"}, {"vCont;s:1", at(1, 0x3004, 0x1000)}, {"Z0,3000,1", "OK"}}
	script := []exchange{{"Z0,2000,1", "OK"}, {"Z0,3000,1", "OK"}, {"vCont;c", hitReport}, {"z0,2000,1", "OK"}, {"vCont;s:1", at(1, 0x5000, 0x800)}, {"Z0,2000,1", "OK"}, {"vCont;c", at(1, 0x3000, 0x1000)}}
	script = append(append(script, other...), exchange{"vCont;c", hitReport})
	script = append(append(script, step...), exchange{"vCont;c", "W00"})
	c, done := scripted(t, "", script)
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Insert(0x3000))
	for _, kind := range []holder.StopKind{holder.Hit, holder.Hit, holder.Hit, holder.Exited} {
		require.NoError(t, c.Resume())
		require.Equal(t, kind, wait(t, c).Kind)
	}
	done()
}

// processes holds the replies of a stub with several processes.
var processes = []exchange{{"qfThreadInfo", "mp1.1"}, {"Hgp1.1", "OK"}, {"Hgp9.9", "OK"}}

// TestOtherProcesses requires that only the session's process is resumed, and that reports about other processes have no effect.
func TestOtherProcesses(t *testing.T) {
	const c1 = "vCont;c:p1.-1"
	c, done := scripted(t, "multiprocess+", []exchange{
		{"Z0,2000,1", "OK"}, {c1, "T05fork:p8.8;thread:p7.7;"}, {c1, "T05exec:61;thread:p7.7;"}, {c1, "T0bthread:p7.7;"}, {c1, "W00;process:7"}, {c1, "W00;process:1"},
	}, processes...)
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Exited, wait(t, c).Kind)
	done()
}

// TestVfork requires that breakpoints which are set or removed while a child of vfork uses the memory are written only afterwards.
func TestVfork(t *testing.T) {
	const c1 = "vCont;c:p1.-1"
	begin := []exchange{
		{"Z0,2000,1", "OK"}, {c1, ""}, {"^C", "T05vfork:p9.9;thread:p1.1;"}, {"z0,2000,1", "OK"}, {"D;9", "OK"}, {c1, "T02thread:p1.1;"},
	}
	lending := func(rest ...exchange) (*control, func()) {
		c, done := scripted(t, "multiprocess+", append(begin[:len(begin):len(begin)], rest...), processes...)
		require.NoError(t, c.Insert(0x2000))
		require.NoError(t, c.Resume())
		stop, err := c.Interrupt()
		require.NoError(t, err)
		require.Equal(t, holder.Interrupted, stop.Kind)
		require.NoError(t, c.Insert(0x3000))
		require.NoError(t, c.Remove(0x2000))
		return c, done
	}
	c, done := lending(exchange{c1, "T05vforkdone:;thread:p1.1;"}, exchange{"Z0,3000,1", "OK"}, exchange{c1, "W00;process:1"})
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Exited, wait(t, c).Kind)
	done()

	c, done = lending(exchange{"D;1", "OK"})
	require.NoError(t, c.Detach())
	done()
}

// TestForkWithFailedRemoval requires that a child is detached, even if the stub refuses to remove a breakpoint from it.
func TestForkWithFailedRemoval(t *testing.T) {
	c, done := scripted(t, "multiprocess+", []exchange{
		{"Z0,2000,1", "OK"}, {"vCont;c:p1.-1", "T05fork:p9.9;thread:p1.1;"}, {"z0,2000,1", "E01"}, {"D;9", "OK"}, {"z0,2000,1", "OK"}, {"D;1", "OK"},
	}, processes...)
	require.NoError(t, c.Insert(0x2000))
	require.NoError(t, c.Resume())
	_, err := c.Wait(context.Background())
	require.ErrorContains(t, err, "E01")
	require.NoError(t, c.Detach())
	done()
}

// TestOwnTraps requires that a program may execute more traps of its own than the limit on unexplained stops.
func TestOwnTraps(t *testing.T) {
	script := []exchange{{"vCont;c", "T05thread:1;"}}
	for range maxTraps + 10 {
		script = append(script, exchange{"vCont;C05:1;c", "T05thread:1;"})
	}
	script = append(script, exchange{"vCont;C05:1;c", "W00"})
	c, done := scripted(t, "", script)
	require.NoError(t, c.Resume())
	require.Equal(t, holder.Exited, wait(t, c).Kind)
	done()
}

// TestKillAfterEnd requires that no kill request is sent for a process that ends when it is interrupted.
func TestKillAfterEnd(t *testing.T) {
	c, done := scripted(t, "", []exchange{{"vCont;c", ""}, {"^C", "W00"}})
	require.NoError(t, c.Resume())
	require.NoError(t, c.Kill())
	done()
}
