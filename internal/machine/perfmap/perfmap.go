// Package perfmap reads the files in which JIT compilers list their functions for the profiler perf. There are two formats: the text of /tmp/perf-PID.map
// (Linux, tools/perf/Documentation/jit-interface.txt) and the binary jitdump (tools/perf/Documentation/jitdump-specification.txt, version 1).
//
// Its main type is [Map], which holds the functions read so far. Both formats only grow, so a Map continues where it ended when the file has grown.
//
// # Security
//
// The files are hostile. The package reads a limited number of bytes and functions, and rejects a file that contradicts its format. It does not check who
// wrote the file, or which process it describes; the caller must.
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

// These are the formats, by their names in JSON.
const (
	Text    Format = "perf-map"
	Jitdump Format = "jitdump"
)

// Limits on one file. Real ones have some 100,000 functions.
const (
	maxText      = 256 << 20 // bytes of a perf map
	maxFunctions = 1 << 21
	maxRecords   = 1 << 21 // records of a jitdump
	maxNames     = 256 << 20
	maxName      = 1 << 16 // bytes of one name; longer names are cut
)

// Error describes a malformed file.
type Error struct {
	Offset int64 // offset in the file
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("at %#x: %v", e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// ErrTooLarge is returned for a file beyond the limits. Such a file has no functions, because its unread end may replace earlier functions.
var ErrTooLarge = errors.New("too large to read")

// Function is a piece of code with a name.
type Function struct {
	Name  string
	Start machine.Addr
	Size  uint64 // in bytes; greater than 0
	// Code is the offset of the code's bytes in a jitdump, as they were when the record was written; a JIT may relocate its code later. 0 if there are none.
	Code int64

	index uint64 // code index, by which JIT_CODE_MOVE names the function
}

// Map holds the functions of a file.
type Map struct {
	format Format
	at     int64 // offset of the first unread byte
	err    error
	names  int

	all   []Function // in the order of the file; a function without a name only overwrites earlier ones
	alive []int      // indexes in all of the functions that still exist, by address
	fresh bool       // alive is up to date

	records int
	header  Header
	buffer  []byte
	moved   map[uint64]int // index in all, by code index
}

// New returns an empty map.
func New(f Format) *Map { return &Map{format: f} }

// Format returns the format of the file.
func (m *Map) Format() Format { return m.format }

// Read reads the part of a file of this size that it has not read yet. It leaves an incomplete line or record at the end for the next call. The error is an
// [*Error]. After an error the map is empty, and later calls return the same error.
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

// add appends a function. It ignores a function without code, or whose code would exceed the address space.
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

// At returns the function that contains an address. JITs reuse memory, so a later function replaces all earlier ones that it overlaps, even partly.
func (m *Map) At(addr machine.Addr) (Function, bool) {
	m.findAlive()
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

// Len returns the number of functions that exist.
func (m *Map) Len() int {
	m.findAlive()
	return len(m.alive)
}

// findAlive computes which functions exist. It sweeps over the address space; the latest function at an address owns that address. A function that owns all of
// its addresses exists.
func (m *Map) findAlive() {
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
		end := uint64(f.Start) + f.Size - 1 // the last byte, because the end may exceed the address space
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

// latest is a heap of indexes of functions, the latest function first.
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
