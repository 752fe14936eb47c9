//go:build linux

package tracer

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// serve is the main function of the tracer process.
func serve() {
	runtime.LockOSThread()                               // the only thread that traces
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // if this fails, the process is named exe, which has no other effect
	// Signals that end or stop programs of a terminal must not end or stop the tracer. It catches them instead of ignoring them, because launched
	// programs would inherit ignored signals. Signals that are already ignored stay ignored (nohup).
	deaf := make(chan os.Signal, 1)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, kick} {
		if !signal.Ignored(s) {
			signal.Notify(deaf, s)
		}
	}
	var conn net.Conn
	socket, err := strconv.Atoi(strings.Join(os.Args[1:], ""))
	end := os.NewFile(uintptr(max(socket, firstExtra)), "guard")
	if err == nil {
		unix.CloseOnExec(socket)
		unix.CloseOnExec(socket + 1)
		conn, err = net.FileConn(end)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reframe: the guard process:", err)
		os.Exit(2)
	}
	end.Close()
	lease, err := openLease(socket + 1)
	if err != nil {
		fmt.Fprintln(os.Stderr, "reframe: the guard process:", err)
		os.Exit(2)
	}
	permitWatchdog()
	if _, err := conn.Write([]byte{0}); err != nil { // tells the client that the tracer has started; an error means that the client has ended
		os.Exit(2)
	}
	s := &server{out: newWriter(conn), threads: map[int]*thread{}, breakpoints: map[uint64]*breakpoint{}, lingering: map[int]*thread{}, memory: memory{file: -1}, ledger: newLedger(),
		client: client{pid: os.Getppid()}, lease: lease}
	k := &kicker{tid: unix.Gettid(), asleep: &s.asleep}
	if err := errors.Join(k.prepare(), noStops()); err != nil {
		fmt.Fprintln(os.Stderr, "reframe: the guard process:", err)
		os.Exit(2)
	}
	s.asked = func() bool { return k.asked() || s.deserted() }
	s.out.asked, s.out.deserted = k.asked, s.deserted
	requests := make(chan Request)
	go k.watch(&s.out.waits, &s.sleeps, &s.looking.wanted)
	go receive(conn, requests, k)
	s.live(requests, k)
	s.linger()
}

// receive forwards the client's requests. When the connection ends for any reason, it closes the channel.
func receive(conn net.Conn, to chan<- Request, k *kicker) {
	decoder := gob.NewDecoder(bufio.NewReader(conn))
	for {
		var r Request
		if decoder.Decode(&r) != nil {
			close(to)
			k.wake()
			return
		}
		k.wake()
		to <- r
	}
}

// live runs the tracer's loop. If the loop panics, live restores the target.
func (s *server) live(requests <-chan Request, k *kicker) {
	defer func() {
		if r := recover(); r != nil {
			s.out.event(&Event{Kind: Broken, Why: fmt.Sprintf("the guard process failed: %v", r)})
			s.detach()
		}
		s.out.drain()
	}()
	for {
		if s.stopped || s.pid == 0 || k.asked() {
			s.out.flush()
			select {
			case r, open := <-requests:
				k.asks.Add(-1)
				if s.serve(r, open) {
					return
				}
			case <-time.After(lookEvery):
				s.lookAtEnds()
				s.yield()
			}
			continue
		}
		var ws unix.WaitStatus
		// Wait here instead of polling, so that the kernel runs the target on this processor. Waking another processor takes longer than the rest of
		// a stop.
		tid, err := s.collect(-1, &ws, unix.WALL)
		switch {
		case err == unix.ECHILD:
			s.end()
		case err == nil:
			s.handle(tid, ws)
		}
		s.look(due)
		s.out.due()
		s.yield()
	}
}

// lookEvery is the interval of the checks whether a stopped target was killed.
const lookEvery = 20 * time.Millisecond

// lookAtEnds collects the reports of stopped threads. The only report of a stopped thread is that it was killed. A thread that did not stop in time
// may report its stop.
func (s *server) lookAtEnds() {
	for s.pid != 0 && s.stopped {
		var ws unix.WaitStatus
		tid, err := s.collect(-1, &ws, unix.WALL|unix.WNOHANG)
		if err == unix.EINTR {
			continue
		}
		if err != nil || tid == 0 {
			return
		}
		switch t := s.threads[tid]; {
		case t == nil:
			s.stranger(tid, ws)
		case ws.Stopped():
			s.took(t, ws) // a thread that stopped late
		default:
			s.threadEnded(t, ws)
		}
	}
}

// wait calls wait4(2), and repeats the call when a signal interrupts it.
func wait(tid int, ws *unix.WaitStatus, options int) (int, error) {
	for {
		got, err := unix.Wait4(tid, ws, options, nil)
		if err != unix.EINTR {
			return got, err
		}
	}
}

// errnoOf returns the error number of a system call's error, so that the client can compare it.
func errnoOf(err error) unix.Errno {
	errno, _ := err.(syscall.Errno)
	return errno
}
