package roots

import (
	"encoding/binary"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/vmlayout"
)

// heapBytes is a heap at heapStart.
type heapBytes []byte

const heapStart = 0x7f00_0000_0000

func (m heapBytes) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < heapStart || uint64(addr)-heapStart+uint64(len(p)) > uint64(len(m)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
	}
	copy(p, m[uint64(addr)-heapStart:])
	return nil
}

// countedObjects describes objects that begin with the number of their references.
const countedObjects = `
def object(addr):
    n = read(addr)
    return heap_object(addr, 8 + 8 * n, n if n < 8 else "array", range(8, 8 + 8 * n, 8)) if n < 1 << 30 else None

def class_name(c): return "object of %d" % c
`

// objectsOf returns the objects of a heap that a layout describes.
func objectsOf(t testing.TB, text string, heap heapBytes) *Objects {
	t.Helper()
	l, err := vmlayout.Parse("heap.star", []byte(text))
	require.NoError(t, err)
	m := &pages{from: heap}
	target := &vmlayout.Target{Memory: heap, Order: binary.LittleEndian, Symbol: func(string) (machine.Addr, bool) { return 0, false }}
	return &Objects{layout: l, source: vmlayout.ObjectSource(target, m), memory: m, names: map[vmlayout.Class]string{}}
}

// randomHeap writes objects with counts of references, to random objects of the heap or to the next one, and returns their offsets.
func randomHeap(r *rand.Rand, counts []int) (heap heapBytes, starts []uint64) {
	for _, n := range counts {
		starts = append(starts, uint64(len(heap)))
		heap = append(heap, make([]byte, 8+8*n)...)
	}
	for k, n := range counts {
		binary.LittleEndian.PutUint64(heap[starts[k]:], uint64(n))
		for i := range n {
			to := r.Intn(len(counts))
			if n == 1 {
				to = min(k+1, len(counts)-1)
			}
			binary.LittleEndian.PutUint64(heap[starts[k]+8+8*uint64(i):], heapStart+starts[to])
		}
	}
	return heap, starts
}

// reachable counts the objects that an object reaches, by a plain search.
func reachable(heap heapBytes, from uint64) (objects, bytes uint64) {
	seen, list := map[uint64]bool{from: true}, []uint64{from}
	for len(list) > 0 {
		at := list[len(list)-1]
		list = list[:len(list)-1]
		n := binary.LittleEndian.Uint64(heap[at:])
		objects, bytes = objects+1, bytes+8+8*n
		for i := range n {
			if to := binary.LittleEndian.Uint64(heap[at+8+8*i:]) - heapStart; !seen[to] {
				seen[to] = true
				list = append(list, to)
			}
		}
	}
	return objects, bytes
}

func walked(t testing.TB, o *Objects, from ...uint64) *Walk {
	t.Helper()
	r := &Report{}
	for _, at := range from {
		r.starts = append(r.starts, start{bits: heapStart + at})
	}
	require.NoError(t, r.Walk(t.Context(), &Heap{Objects: o}, binary.LittleEndian, func(uint64, uint64) {}))
	return r.Reached
}

// TestWalkOfRandomHeaps requires that a walk reaches the same objects as a plain search: in random graphs with cycles, along a list that is longer than the
// list of waiting objects, and from arrays with more elements than that.
func TestWalkOfRandomHeaps(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	wide, long := []int{maxWaiting + 1000, maxWaiting + 1000}, []int{}
	for range maxWaiting + 2000 {
		wide, long = append(wide, 2), append(long, 1)
	}
	graphs := [][]int{wide, long}
	for range 20 {
		var counts []int
		for range 1 + r.Intn(400) {
			counts = append(counts, r.Intn(5))
		}
		graphs = append(graphs, counts)
	}
	for _, counts := range graphs {
		heap, starts := randomHeap(r, counts)
		w := walked(t, objectsOf(t, countedObjects, heap), starts[0])
		objects, bytes := reachable(heap, starts[0])
		require.Equal(t, []uint64{objects, bytes, 0, 0}, []uint64{w.Objects, w.Bytes, w.Dangling, w.Unread})
		require.Empty(t, w.Ended)
		sum := uint64(0)
		for _, c := range w.Classes {
			sum += c.Objects
		}
		require.Equal(t, objects, sum)
	}
}

// TestWalkOfWrongHeaps requires that a walk ends, and what it reports, where references are wrong or the layout lies.
func TestWalkOfWrongHeaps(t *testing.T) {
	word := func(words ...uint64) (h heapBytes) {
		for _, w := range words {
			h = binary.LittleEndian.AppendUint64(h, w)
		}
		return h
	}
	heap := word(4, heapStart+40, heapStart+48, heapStart+1<<20, 0, 1, heapStart, 1<<31)
	w := walked(t, objectsOf(t, countedObjects, heap), 0)
	require.Equal(t, []uint64{2, 4, 2}, []uint64{w.Objects, w.References, w.Dangling}, "%+v", w)
	require.Equal(t, []Reference{
		{Object{"0x7f0000000000", 40, "object of 4"}, 16, "0x7f0000000030", NoObject}, {Object{"0x7f0000000000", 40, "object of 4"}, 24, "0x7f0000100000", NoObject},
	}, w.First)

	// An object that claims memory that is not there.
	w = walked(t, objectsOf(t, countedObjects, word(1<<20, heapStart)), 0)
	require.Equal(t, []uint64{1, 1}, []uint64{w.Objects, w.Unread})

	// Objects all over the address space, each of which refers to the next. Memory is bounded by the number of chunks.
	everywhere := "def object(addr):\n  return heap_object(addr, 1 << 32, 'x', [0]) if addr >> 44 else None\n"
	w = walked(t, objectsOf(t, everywhere, word(heapStart+1<<32)), 0)
	require.Equal(t, []uint64{2, 1}, []uint64{w.Objects, w.Unread})

	// A function that fails for all but the first object.
	fails := "def object(addr):\n  if addr % 4096: fail('no')\n  return heap_object(addr, 4096, 'x', range(0, 4096, 8))\n"
	var many []uint64
	for k := range uint64(512) {
		many = append(many, heapStart+8*k+8)
	}
	o := objectsOf(t, fails, word(many...))
	w = walked(t, o, 0)
	require.Equal(t, "object(addr) failed 100 times", w.Ended)
	require.Equal(t, &Failure{100, "heap.star:2:23: fail: no", true}, o.failure())
}

// TestWhyInRandomHeaps requires a shortest path to each object that a plain search finds, whose references are in the heap, and none to others.
func TestWhyInRandomHeaps(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	none := 0
	for range 40 {
		var counts []int
		for range 2 + r.Intn(60) {
			counts = append(counts, r.Intn(4))
		}
		heap, starts := randomHeap(r, counts)
		distance, list := map[uint64]int{starts[0]: 0}, []uint64{starts[0]}
		for ; len(list) > 0; list = list[1:] {
			for i := range binary.LittleEndian.Uint64(heap[list[0]:]) {
				to := binary.LittleEndian.Uint64(heap[list[0]+8+8*i:]) - heapStart
				if _, known := distance[to]; !known {
					distance[to] = distance[list[0]] + 1
					list = append(list, to)
				}
			}
		}
		o := objectsOf(t, countedObjects, heap)
		for _, at := range starts {
			p := pathTo(t, o, at)
			want, reached := distance[at]
			require.Equal(t, reached, p.Reaches())
			if !reached {
				none++
				continue
			}
			require.Len(t, p.Steps, want)
			next := starts[0]
			for _, s := range p.Steps {
				require.Equal(t, frame.HexOf(heapStart+next), s.Start)
				next = binary.LittleEndian.Uint64(heap[next+s.Offset:]) - heapStart
			}
			require.Equal(t, at, next)
		}
	}
	require.Positive(t, none)
}

// TestWhyAlongAList requires that a path that is longer than the list of steps has its first and last ones.
func TestWhyAlongAList(t *testing.T) {
	counts := make([]int, 5000)
	for k := range counts {
		counts[k] = 1
	}
	heap, starts := randomHeap(rand.New(rand.NewSource(3)), counts)
	p := pathTo(t, objectsOf(t, countedObjects, heap), starts[4999])
	require.Len(t, p.Steps, maxSteps)
	require.Equal(t, 4999-maxSteps, p.Omitted)
	require.Equal(t, frame.HexOf(heapStart+starts[0]), p.Steps[0].Start)
	require.Equal(t, frame.HexOf(heapStart+starts[4998]), p.Steps[maxSteps-1].Start)
}

func pathTo(t *testing.T, o *Objects, at uint64) *Path {
	t.Helper()
	r := &Report{starts: []start{{bits: heapStart}}, Threads: []Thread{{Frames: []Frame{{Roots: []Root{{}}}}}}}
	require.NoError(t, r.Why(t.Context(), &Heap{Objects: o}, binary.LittleEndian, heapStart+at, func(uint64, uint64) {}))
	return r.Path
}
