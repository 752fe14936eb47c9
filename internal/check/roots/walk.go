package roots

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/vmlayout"
)

// Walk holds the objects that roots reach.
type Walk struct {
	Roots      int          `json:"roots"`      // roots from which the walk starts
	Skipped    int          `json:"skipped"`    // roots without a certain base, and stack objects, whose content is not known
	Objects    uint64       `json:"objects"`    // objects in use that the roots reach
	Bytes      uint64       `json:"bytes"`      // of these objects
	References uint64       `json:"references"` // words in them that refer to something
	Interior   uint64       `json:"interior"`   // references into an object
	Dangling   uint64       `json:"dangling"`   // references to no object in use
	Unread     uint64       `json:"unread"`     // objects whose references could not all be read
	Classes    []ClassCount `json:"classes"`    // most bytes first
	First      []Reference  `json:"first_dangling,omitempty"`
	Ended      string       `json:"ended,omitempty"` // why the walk ended early, so that objects may be missing
}

// ClassCount counts the objects of a class.
type ClassCount struct {
	Class   string `json:"class"`
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

// Reference is a reference in an object.
type Reference struct {
	From   Object    `json:"from"`
	Offset uint64    `json:"offset"`
	Value  frame.Hex `json:"value"`
	Found  Found     `json:"found"`
}

// These bound a walk. The set of visited objects has one bit for each 8 bytes of the heap, in chunks; objects that wait are in a list of bounded length,
// and those that find no place in it are marked in a second set.
const (
	granule     = 8
	chunkBytes  = 64 << 10
	chunkWords  = chunkBytes / granule / 64
	maxChunks   = 1 << 18 // 16 GiB of heap: 256 MiB
	maxWaiting  = 1 << 16
	maxRuns     = 1 << 20 // runs of references of the objects that wait
	maxRefs     = 1 << 31 // words that are read
	maxDangling = 100     // that are listed
)

// chunk is a part of the set of visited objects.
type chunk struct {
	visited   [chunkWords]uint64
	late      *[chunkWords]uint64 // objects whose references are not read yet; nil for none
	unaligned bool                // an object starts at an address that is no multiple of the granule
}

// walker visits the objects that roots reach.
type walker struct {
	ctx      context.Context
	heap     *Heap
	order    binary.ByteOrder
	progress func(objects, bytes uint64)
	out      Walk

	chunks  map[uint64]*chunk
	waiting []*vmlayout.HeapObject
	runs    int      // of the objects that wait
	late    []uint64 // numbers of chunks with late objects
	read    uint64   // words
	classes map[vmlayout.Class]*ClassCount
}

// start is a word of a root from which a walk starts.
type start struct {
	thread, frame, root int // indices in the report
	bits                uint64
}

// Walk visits the objects that the roots of the report reach. progress is called from time to time. The memory of the target must not change meanwhile.
func (r *Report) Walk(ctx context.Context, heap *Heap, order binary.ByteOrder, progress func(objects, bytes uint64)) error {
	w := &walker{ctx: ctx, out: Walk{Classes: []ClassCount{}}, heap: heap, order: order, progress: progress, chunks: map[uint64]*chunk{}, classes: map[vmlayout.Class]*ClassCount{}}
	w.out.Roots, w.out.Skipped = len(r.starts), r.Summary.Roots-r.followed
	for _, s := range r.starts {
		if o, _ := heap.place(s.bits); o != nil {
			w.visit(o)
		}
		w.drain()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for c, n := range w.classes {
		n.Class = heap.Objects.className(c)
		w.out.Classes = append(w.out.Classes, *n)
	}
	slices.SortFunc(w.out.Classes, func(a, b ClassCount) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Class, b.Class))
	})
	r.Reached, r.Failure = &w.out, heap.Objects.failure()
	return nil
}

// ended reports whether the walk has ended early.
func (w *walker) ended() bool {
	switch {
	case w.out.Ended != "":
	case w.read > maxRefs:
		w.out.Ended = fmt.Sprintf("objects have over %d references", uint64(maxRefs))
	case w.heap.Objects.failed >= maxFailures:
		w.out.Ended = fmt.Sprintf("object(addr) failed %d times", maxFailures)
	case w.ctx.Err() != nil:
		w.out.Ended = w.ctx.Err().Error()
	}
	return w.out.Ended != ""
}

// bit returns the place of an address in a chunk.
func bit(addr uint64) (word int, mask uint64) {
	n := addr % chunkBytes / granule
	return int(n / 64), 1 << (n % 64)
}

// knows reports whether an object starts at an address and was visited. It may return false for an object that was.
func (w *walker) knows(addr uint64) bool {
	c := w.chunks[addr/chunkBytes]
	word, mask := bit(addr)
	return c != nil && addr%granule == 0 && !c.unaligned && c.visited[word]&mask != 0
}

// mark adds an object to the set of visited ones, and reports whether it is new.
func (w *walker) mark(addr uint64) bool {
	c := w.chunks[addr/chunkBytes]
	if c == nil {
		if len(w.chunks) >= maxChunks {
			w.out.Ended = fmt.Sprintf("the objects are spread over more than %d GiB", maxChunks*chunkBytes>>30)
			return false
		}
		c = &chunk{}
		w.chunks[addr/chunkBytes] = c
	}
	word, mask := bit(addr)
	if c.visited[word]&mask != 0 {
		return false
	}
	c.visited[word] |= mask
	c.unaligned = c.unaligned || addr%granule != 0
	return true
}

// visit counts an object if it is in use and new, and lets it wait for its references to be read.
func (w *walker) visit(o *vmlayout.HeapObject) {
	if o.State != vmlayout.LiveObject || w.ended() || !w.mark(o.Start) {
		return
	}
	w.out.Objects++
	w.out.Bytes += o.Size
	if w.out.Objects%1024 == 0 {
		w.progress(w.out.Objects, w.out.Bytes)
	}
	n := w.classes[o.Class]
	if n == nil {
		of := o.Class
		if len(w.classes) >= maxClasses {
			of = vmlayout.Class{Name: "other classes"}
		}
		if n = w.classes[of]; n == nil {
			n = &ClassCount{}
			w.classes[of] = n
		}
	}
	n.Objects++
	n.Bytes += o.Size
	switch {
	case len(o.Refs) == 0:
	case len(w.waiting) < maxWaiting && w.runs+len(o.Refs) <= maxRuns:
		w.waiting, w.runs = append(w.waiting, o), w.runs+len(o.Refs)
	default:
		w.postpone(o.Start)
	}
}

// postpone marks an object whose references are read later.
func (w *walker) postpone(addr uint64) {
	c := w.chunks[addr/chunkBytes]
	if c.late == nil {
		c.late = &[chunkWords]uint64{}
		w.late = append(w.late, addr/chunkBytes)
	}
	word, mask := bit(addr)
	c.late[word] |= mask
}

// drain reads the references of all objects that wait.
func (w *walker) drain() {
	for !w.ended() {
		if last := len(w.waiting) - 1; last >= 0 {
			o := w.waiting[last]
			w.waiting[last] = nil
			w.waiting, w.runs = w.waiting[:last], w.runs-len(o.Refs)
			w.scan(o)
		} else if !w.resume() {
			return
		}
	}
}

// resume lets late objects of one chunk wait again. It returns false if there are none.
func (w *walker) resume() bool {
	if len(w.late) == 0 {
		return false
	}
	number := w.late[len(w.late)-1]
	w.late = w.late[:len(w.late)-1]
	c := w.chunks[number]
	late := c.late
	c.late = nil
	for word := range late {
		for mask := late[word]; mask != 0; mask &= mask - 1 {
			addr := number*chunkBytes + uint64(word*64+bits.TrailingZeros64(mask))*granule
			for near := range uint64(granule) {
				if o, _ := w.heap.Objects.at(addr + near); o != nil && o.Start/granule == addr/granule {
					w.scan(o)
					break
				}
				if !c.unaligned {
					break
				}
			}
		}
	}
	return true
}

// scan visits the objects to which an object refers.
func (w *walker) scan(o *vmlayout.HeapObject) {
	w.references(o, func(offset, word uint64) bool {
		addr, ok := w.heap.Objects.layout.Reference(word)
		if word == 0 || !ok {
			return true
		}
		w.out.References++
		if w.knows(uint64(addr)) {
			return true
		}
		to, found := w.heap.place(word)
		switch {
		case found.Dangles():
			w.dangles(o, offset, word, found)
		case found == InObject:
			w.out.Interior++
		}
		if to != nil {
			w.visit(to)
		}
		return !w.ended()
	})
}

// references reads the words of an object that hold references, until a function returns false.
func (w *walker) references(o *vmlayout.HeapObject, each func(offset, word uint64) bool) {
	var buf [8]byte
	for _, r := range o.Refs {
		for n := range r.Count {
			offset := r.First + n*r.Stride
			if err := w.heap.Objects.memory.ReadMemory(buf[:o.Width], machine.Addr(o.Start+offset)); err != nil {
				w.out.Unread++
				return
			}
			word := uint64(w.order.Uint32(buf[:4]))
			if o.Width == 8 {
				word = w.order.Uint64(buf[:])
			}
			if w.read++; !each(offset, word) {
				return
			}
		}
	}
}

// dangles adds a reference to no object in use.
func (w *walker) dangles(o *vmlayout.HeapObject, offset, word uint64, found Found) {
	if w.out.Dangling++; len(w.out.First) < maxDangling {
		w.out.First = append(w.out.First, Reference{*w.heap.Objects.describe(o), offset, frame.HexOf(word), found})
	}
}

// Wrong reports whether a walk found references to no object in use, or did not see all objects. A nil walk is not wrong.
func (w *Walk) Wrong() bool { return w != nil && (w.Dangling > 0 || w.Unread > 0 || w.Ended != "") }
