// Package perfmap reads the files that just-in-time compilers write for the profiler perf, which give the address of each function. There are two
// formats: the text of /tmp/perf-PID.map (Linux, tools/perf/Documentation/jit-interface.txt) and the binary jitdump
// (tools/perf/Documentation/jitdump-specification.txt, version 1).
//
// Its main type is [Map]: the functions that a file has told of so far. Both formats only grow, so a Map
// reads on where it ended when the file is longer.
//
// # Security
//
// The files are hostile: whoever wrote them may have claimed anything. What is read of one is bounded, what it says
// is not believed where it contradicts itself, and a name is no more than a name. Whose file it is, and whether it is
// about the process at all, is for the caller to say.
package perfmap

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"sort"

	"example.com/reframe/internal/machine"
)

// Format is the format of a file.
type Format string

// The formats, by the names that they have in JSON.
const (
	Text    Format = "perf-map"
	Jitdump Format = "jitdump"
)

// Limits on one file. Real ones have some 100,000 functions.
const (
	maxText      = 256 << 20 // bytes of a perf map
	maxFunctions = 1 << 21
	maxRecords   = 1 << 21 // of a jitdump
	maxNames     = 256 << 20
	maxName      = 1 << 16 // bytes of one name; what is longer is cut
)

// Error says what is wrong with a file.
type Error struct {
	Offset int64 // in the file
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("at %#x: %v", e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// ErrTooLarge says that a file goes beyond what is read of one. Its end, which would say which of the functions before
// are there no more, is then not known.
var ErrTooLarge = errors.New("it is too large to be read")

// Function is a piece of code and its name.
type Function struct {
	Name  string
	Start machine.Addr
	Size  uint64 // in bytes; above 0
	// Code is where the bytes of the code lie in a jitdump, as they were when it was written: a JIT may relocate
	// its code later. 0 where there are none.
	Code int64

	index uint64 // by which a jitdump moves it
}

// Map is the functions that a file has told of.
type Map struct {
	format Format
	at     int64 // where to read on
	err    error
	names  int

	all   []Function // in the order of the file; without a name it only says that what was there is no more
	alive []int      // those of all that are there, by address
	fresh bool       // alive is that of all

	records int
	header  Header
	buffer  []byte
	moved   map[uint64]int // by code index, the function in all
}

// New makes a map of which nothing is known yet.
func New(f Format) *Map { return &Map{format: f} }

// Format is the format of the file.
func (m *Map) Format() Format { return m.format }

// Read reads what a file of that size holds behind what was read of it before. What is not whole at its end, such as half of a
// line, is left for later. The error is an [*Error], and it stays: of a file that contradicts the format nothing is known.
func (m *Map) Read(r io.ReaderAt, size int64) error {
	if m.err != nil || size <= m.at {
		return m.err
	}
	before := len(m.all)
	switch m.format {
	case Jitdump:
		m.err = m.readDump(r, size)
	default:
		m.err = m.readText(r, size)
	}
	if len(m.all) != before {
		m.fresh = false
	}
	if m.err != nil {
		m.all, m.alive, m.moved, m.fresh = nil, nil, nil, true
	}
	return m.err
}

// add takes in a function. One that has no code, or whose code would lie beyond all addresses, is none.
func (m *Map) add(f Function) error {
	if f.Size == 0 || uint64(f.Start)+f.Size < f.Size {
		return nil
	}
	f.Name = f.Name[:min(len(f.Name), maxName)]
	m.names += len(f.Name)
	if len(m.all) == maxFunctions || m.names > maxNames {
		return ErrTooLarge
	}
	m.all = append(m.all, f)
	return nil
}

// At returns the function that an address lies in. Memory is used again: what was told later wins, and a function
// that something told later overlaps is no more, not even where its code would still stand.
func (m *Map) At(addr machine.Addr) (Function, bool) {
	m.settle()
	n := sort.Search(len(m.alive), func(i int) bool { return m.all[m.alive[i]].Start > addr })
	if n == 0 {
		return Function{}, false
	}
	f := m.all[m.alive[n-1]]
	if uint64(addr-f.Start) >= f.Size {
		return Function{}, false
	}
	return f, true
}

// Len counts the functions that are there.
func (m *Map) Len() int {
	m.settle()
	return len(m.alive)
}

// settle finds out which functions are there. From the lowest address to the highest it goes over what was told, the latest
// of which owns each address; a function that owns all of its own is there.
func (m *Map) settle() {
	if m.fresh {
		return
	}
	order := make([]int, len(m.all))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool { return m.all[order[i]].Start < m.all[order[j]].Start })
	owned := make([]uint64, len(m.all))
	var here latest
	var at uint64
	for next := 0; next < len(order) || len(here) > 0; {
		for next < len(order) && (len(here) == 0 || uint64(m.all[order[next]].Start) <= at) {
			heap.Push(&here, order[next])
			at = max(at, uint64(m.all[order[next]].Start))
			next++
		}
		f := &m.all[here[0]]
		end := uint64(f.Start) + f.Size - 1 // its last byte: the end of all addresses is none
		if end < at || at < uint64(f.Start) {
			heap.Pop(&here)
			continue
		}
		if next < len(order) {
			end = min(end, uint64(m.all[order[next]].Start)-1)
		}
		owned[here[0]] += end - at + 1
		if at = end + 1; at == 0 {
			break
		}
	}
	m.alive = m.alive[:0]
	for _, i := range order {
		if owned[i] == m.all[i].Size && m.all[i].Name != "" {
			m.alive = append(m.alive, i)
		}
	}
	m.fresh = true
}

// latest is a heap of functions, the latest first.
type latest []int

func (h latest) Len() int           { return len(h) }
func (h latest) Less(i, j int) bool { return h[i] > h[j] }
func (h latest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *latest) Push(x any)        { *h = append(*h, x.(int)) }
func (h *latest) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
