package roots

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/vmlayout"
)

// Path is a shortest path from a root to an object.
type Path struct {
	Address frame.Hex `json:"address"`           // that was asked about
	Found   Found     `json:"found"`             // its place
	Object  *Object   `json:"object,omitempty"`  // that contains the address
	Root    *PathRoot `json:"root,omitempty"`    // nil if no root reaches the object
	Steps   []Step    `json:"steps,omitempty"`   // from the object of the root to the referrer of the object
	Omitted int       `json:"omitted,omitempty"` // steps in the middle of a long path
	Ended   string    `json:"ended,omitempty"`   // why the search ended early, so that a root may reach the object

	thread, frame, root int
}

// PathRoot identifies a root of the report.
type PathRoot struct {
	TID   int `json:"tid"`
	Frame int `json:"frame"` // index of the frame
	Root  int `json:"root"`  // index of the root's slot
}

// Step is a reference on a path.
type Step struct {
	Object
	Offset uint64 `json:"offset"` // of the reference to the next object
}

// Reaches reports whether a root reaches the object.
func (p *Path) Reaches() bool { return p != nil && p.Root != nil }

// At returns the thread, the frame and the root of the path.
func (r *Report) At(p *Path) (*Thread, *Frame, *Root) {
	t := &r.Threads[p.thread]
	f := &t.Frames[p.frame]
	return t, f, &f.Roots[p.root]
}

// These bound the search for a path. It needs 12 bytes for each object that it visits.
const (
	maxQueue  = 1 << 24
	blockSize = 1 << 16
	maxSteps  = 1000 // of which half are the first ones and half the last ones
)

// queue holds visited objects in the order of their discovery.
type queue struct {
	blocks []*block
	length int
}

type block struct {
	start [blockSize]uint64
	from  [blockSize]int32 // index of the referrer; or the complement of an index of the report's starts
}

func (q *queue) add(start uint64, from int32) {
	if q.length%blockSize == 0 {
		q.blocks = append(q.blocks, &block{})
	}
	b := q.blocks[q.length/blockSize]
	b.start[q.length%blockSize], b.from[q.length%blockSize] = start, from
	q.length++
}

func (q *queue) at(k int) (start uint64, from int32) {
	b := q.blocks[k/blockSize]
	return b.start[k%blockSize], b.from[k%blockSize]
}

// Why finds a shortest path from a root of the report to the object that contains an address. progress is called from time to time. The memory of the
// target must not change meanwhile.
func (r *Report) Why(ctx context.Context, heap *Heap, order binary.ByteOrder, addr uint64, progress func(objects, bytes uint64)) error {
	p := &Path{Address: frame.HexOf(addr)}
	r.Path = p
	is, found := heap.Objects.at(addr)
	if p.Found = found; is == nil {
		r.Failure = heap.Objects.failure()
		return nil
	}
	p.Object = heap.Objects.describe(is)
	w := &walker{ctx: ctx, heap: heap, order: order, progress: progress, chunks: map[uint64]*chunk{}}
	q := &queue{}
	add := func(o *vmlayout.HeapObject, from int32) (reached bool) {
		if o == nil || o.State != vmlayout.LiveObject && o.Start != is.Start || !w.mark(o.Start) {
			return false
		}
		w.out.Bytes += o.Size
		q.add(o.Start, from)
		if q.length%1024 == 0 {
			w.progress(uint64(q.length), w.out.Bytes)
		}
		if q.length >= maxQueue {
			w.out.Ended = fmt.Sprintf("%d objects were visited", maxQueue)
		}
		return o.Start == is.Start
	}
	reached := false
	for k := 0; k < len(r.starts) && !reached && !w.ended(); k++ {
		o, _ := heap.place(r.starts[k].bits)
		reached = add(o, int32(^k))
	}
	for k := 0; k < q.length && !reached && !w.ended(); k++ {
		start, _ := q.at(k)
		if o, _ := heap.Objects.at(start); o != nil {
			w.references(o, func(_, word uint64) bool {
				if a, ok := heap.Objects.layout.Reference(word); word == 0 || !ok || w.knows(uint64(a)) {
					return true
				}
				to, _ := heap.place(word)
				reached = add(to, int32(k))
				return !reached && !w.ended()
			})
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if reached {
		r.trace(w, q, p)
	} else {
		p.Ended = w.out.Ended
	}
	r.Failure = heap.Objects.failure()
	return nil
}

// trace sets the root and the steps of a path to the last object of a queue.
func (r *Report) trace(w *walker, q *queue, p *Path) {
	to, from := q.at(q.length - 1)
	length := 0
	for k := from; k >= 0; _, k = q.at(int(k)) {
		length++
	}
	p.Omitted = max(0, length-maxSteps)
	for n := length; from >= 0; n-- {
		start, next := q.at(int(from))
		if n > length-maxSteps/2 || n <= maxSteps/2 {
			p.Steps = append(p.Steps, w.step(start, to))
		}
		to, from = start, next
	}
	slices.Reverse(p.Steps)
	s := r.starts[^from]
	p.thread, p.frame, p.root = s.thread, s.frame, s.root
	t, f, root := r.At(p)
	p.Root = &PathRoot{t.TID, f.Index, root.Index}
}

// step returns the reference of an object to another one.
func (w *walker) step(start, to uint64) (s Step) {
	o, _ := w.heap.Objects.at(start)
	if o == nil {
		return Step{Object: Object{Start: frame.HexOf(start)}}
	}
	s.Object = *w.heap.Objects.describe(o)
	w.references(o, func(offset, word uint64) bool {
		if is, _ := w.heap.place(word); is == nil || is.Start != to {
			return true
		}
		s.Offset = offset
		return false
	})
	return s
}
