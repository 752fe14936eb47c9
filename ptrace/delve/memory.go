package delve

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
)

// memory reads the memory of a process, with Delve's breakpoints replaced by the original code.
type memory struct {
	read    func(p []byte, addr machine.Addr) (int, error)
	moved   func() error // returns an error if the process has run since its registers were read
	arch    *machine.Arch
	patches []patch
	lost    error
}

// Read implements [holder.Memory].
func (m *memory) Read(p []byte, addr machine.Addr) (int, error) {
	if m.lost != nil {
		return 0, m.lost
	}
	n, err := 0, m.moved() // while the process runs, the server does not reply to a request for memory
	if err == nil {
		n, err = m.read(p, addr)
		if moved := m.moved(); moved != nil && !errors.Is(err, holder.ErrLost) {
			err = moved
		}
	}
	if errors.Is(err, holder.ErrLost) {
		m.lost = err
		return 0, err
	}
	m.hide(p[:n], addr)
	return n, err
}

// hide replaces breakpoints in memory that was read at addr by the original code. A back end of Delve may already have done so.
func (m *memory) hide(p []byte, addr machine.Addr) {
	trap := trap(m.arch)
	first := sort.Search(len(m.patches), func(i int) bool { return m.patches[i].at >= addr })
	for _, b := range m.patches[first:] {
		at := uint64(b.at - addr)
		if at+uint64(len(trap)) > uint64(len(p)) {
			return
		}
		if bytes.Equal(p[at:][:len(trap)], trap) {
			copy(p[at:], b.code)
		}
	}
}

const (
	maxRead  = 64 << 10 // bytes in one request; ExamineMemoryLengthLimit of Delve's service/rpc2/server.go is greater
	pageSize = 4 << 10
)

// readRPC reads memory through the server, which rejects a request if a part of the memory cannot be read.
func (p *process) readRPC(b []byte, addr machine.Addr) (n int, err error) {
	for n < len(b) {
		part := b[n:min(len(b), n+maxRead)]
		got, err := p.examine(part, addr+machine.Addr(n))
		n += got
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// examine reads at most maxRead bytes, up to the first page that cannot be read.
func (p *process) examine(b []byte, addr machine.Addr) (int, error) {
	err := p.examineAll(b, addr)
	if !errors.As(err, new(refusal)) {
		return len(b), err
	}
	// All pages up to the offset low can be read, but not all up to high.
	whole, last := 0, len(b)
	for {
		middle := (whole + last) / 2
		middle = int((addr+machine.Addr(middle))&^(pageSize-1)) - int(addr)
		if middle <= whole {
			middle = int((addr+machine.Addr(whole))&^(pageSize-1)+pageSize) - int(addr)
		}
		if middle >= last {
			return whole, err
		}
		switch part := p.examineAll(b[whole:middle], addr+machine.Addr(whole)); {
		case part == nil:
			whole = middle
		case errors.As(part, new(refusal)):
			last, err = middle, part
		default:
			return 0, part
		}
	}
}

// examineAll fills b or returns an error, which is a refusal if Delve cannot read all of it.
func (p *process) examineAll(b []byte, addr machine.Addr) error {
	var result struct{ Mem []byte }
	if err := p.call("ExamineMemory", map[string]any{"Address": uint64(addr), "Length": len(b)}, &result); err != nil {
		return err
	}
	if len(result.Mem) != len(b) {
		p.lost = lostError{fmt.Errorf("it returned %d bytes of memory instead of %d", len(result.Mem), len(b))}
		return p.lost
	}
	copy(b, result.Mem)
	return nil
}

// movedThere returns an error if the server's state shows that the process has run since its registers were read, because another client resumed it.
func (p *process) movedThere() error {
	now, err := p.getState()
	switch {
	case errors.Is(err, ErrRunning):
		return errMoved
	case errors.Is(err, holder.ErrLost):
		return err
	case err != nil:
		return lostError{err}
	}
	same := now.PID == p.pid && now.When == p.first.When && slices.EqualFunc(byID(now.Threads), byID(p.first.Threads), func(a, b thread) bool {
		return a.ID == b.ID && a.PC == b.PC && (a.Breakpoint == nil) == (b.Breakpoint == nil) && (a.Breakpoint == nil || a.Breakpoint.Hits == b.Breakpoint.Hits)
	})
	if !same {
		return errMoved
	}
	return nil
}

func byID(list []thread) []thread {
	return slices.SortedFunc(slices.Values(list), func(a, b thread) int { return cmp.Compare(a.ID, b.ID) })
}

// errMoved is the error for a process that has run while it was read.
var errMoved = lostError{errors.New("the process ran while it was read: another client of dlv resumed it")}

// readFile reads memory of a process of this machine from /proc/PID/mem.
func readFile(f *os.File, b []byte, addr machine.Addr) (int, error) {
	n, err := f.ReadAt(b, int64(addr))
	if err != nil && n == 0 && errors.Is(err, io.EOF) {
		return 0, lostError{errors.New("the process has ended")}
	}
	return n, err
}
