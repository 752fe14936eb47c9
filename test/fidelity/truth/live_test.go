package truth_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// processMemory is the memory of a stopped process.
type processMemory int

// ReadMemory implements [machine.Memory].
func (m processMemory) ReadMemory(p []byte, addr machine.Addr) error {
	if len(p) == 0 {
		return nil
	}
	to := unix.Iovec{Base: &p[0]}
	to.SetLen(len(p))
	n, err := unix.ProcessVMReadv(int(m), []unix.Iovec{to}, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(p)}}, 0)
	if err == nil && n != len(p) {
		err = fmt.Errorf("%d bytes of %d", n, len(p))
	}
	return err
}

// blockOf returns the address of a thread's block.
func (c *comparer) blockOf(memory machine.Memory, tid int) (uint64, error) {
	for k := range c.Threads {
		at := blocks + uint64(k*blockSize)
		b := make([]byte, 8)
		if err := memory.ReadMemory(b, machine.Addr(at+16)); err != nil {
			return 0, err
		}
		if c.order.Uint64(b) == uint64(tid) {
			return at, nil
		}
	}
	return 0, fmt.Errorf("no block of thread %d", tid)
}

// A lostError reports that the program has overwritten its own log, which is not a failure of reframe.
type lostError struct{ error }

// live runs a program and compares each exit with its log. The error says why the program could not run; it is a *notBuilt if a JIT rejected the
// program.
func (c *comparer) live(t testing.TB, b *built) error {
	t.Helper()
	given, err := c.given(b)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	s, err := ptrace.LaunchWith(ctx, b.command, ptrace.LaunchOptions{Stdout: os.DevNull, Stderr: b.module + ".err", Bound: true})
	require.NoError(t, err)
	memory := processMemory(s.PID())
	limit := unix.Rlimit{Cur: c.seconds, Max: c.seconds}
	require.NoError(t, unix.Prlimit(s.PID(), unix.RLIMIT_CPU, &limit, nil))
	var seen atomic.Int64
	go c.watch(ctx, stop, s.PID(), &seen)
	o := trace.Options{Options: given, Full: true, Wait: true, Limit: maxHits(), Warn: func(string) {}}
	hits := 0
	sum, err := trace.Run(ctx, s, o, func(x *trace.Exited) error {
		hits++
		seen.Add(1)
		block, err := c.blockOf(memory, x.Thread.ID)
		if err != nil {
			return err
		}
		entries, err := c.entries(memory, block)
		if err != nil {
			return &lostError{err}
		}
		c.stack(x.Frames, entries, true)
		return nil
	})
	pid := s.PID()
	late := s.Detach()
	if sum.End.Kind != trace.EndExited && sum.End.Kind != trace.EndKilled {
		syscall.Kill(pid, syscall.SIGKILL) // the process is held, so the number still belongs to the started child
	}
	if stuck := (*stuckError)(nil); errors.As(err, &stuck) {
		c.Stuck++
		c.failed = append(c.failed, fmt.Sprintf("behind %d hits of %d: %v", hits, maxHits(), stuck))
		return nil // execution from the place where it was stopped may not end either
	}
	if sum.End.Kind == trace.EndKilled && (sum.End.Signal == int(unix.SIGXCPU) || sum.End.Signal == int(unix.SIGKILL)) {
		why := fmt.Sprintf("it took more than %d seconds of the processor", c.seconds)
		if c.How != "aot" && hits == 0 { // counts like an llc that exceeds its limit
			return &notBuilt{c.How, why}
		}
		c.Stuck++
		c.failed = append(c.failed, fmt.Sprintf("behind %d hits of %d: %s", hits, maxHits(), why))
		return late
	}
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		c.wrong("behind %d hits: %v", hits, err)
		return late
	}
	if mismatch := (*sites.MismatchError)(nil); errors.As(err, &mismatch) {
		c.refuse(mismatch)
		return late
	}
	if err = errors.Join(err, late); err != nil {
		return err
	}
	if sum.End.Kind != trace.EndLimit && (sum.End.Kind != trace.EndExited || sum.End.ExitCode != 0) {
		text, _ := os.ReadFile(b.module + ".err")
		return &notBuilt{b.command[0], fmt.Sprintf("%+v behind %d hits: %s", sum.End, hits, text)}
	}
	return nil
}

// given returns the program's module and layout as options.
func (p *program) given(b *built) (deopt.Options, error) {
	m, err := ir.ParseFile(b.source)
	if err != nil {
		return deopt.Options{}, err
	}
	o := deopt.Options{Modules: []*ir.Module{m}}
	layout, err := p.exitLayout()
	if layout != nil {
		o.Layouts = append(o.Layouts, layout)
	}
	return o, err
}

// refuse records that reframe rejected the module as not the compiled one.
func (c *comparer) refuse(why *sites.MismatchError) {
	c.Refused++
	c.Frames["the module is refused: "+plain(why.Why)]++
	c.refusals = append(c.refusals, why.Error())
}
