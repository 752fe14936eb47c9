package unwind

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"reframe/deopt/machine"
	"reframe/deopt/x86"
)

// reading is code as it is followed from one address: its instructions, the blocks that they
// form, and what is known before each block.
type reading struct {
	memory     machine.Memory
	start, end machine.Addr // code outside is not followed
	limit      int          // of instructions
	aligned    bool         // a path is given up where its calls cannot all have an aligned stack

	instrs []instr
	number map[machine.Addr]int // of the instruction at an address
	heads  map[machine.Addr]bool
	blocks []block
	headed map[machine.Addr]int // the block that starts at an address

	text []byte // what was last read, from that address
	from machine.Addr
}

// block is a run of instructions of which only the first is jumped to. A call ends it, too:
// whether it comes back is not known.
type block struct {
	run    []int // the numbers of its instructions, at least one
	before moment
	// The blocks that may come next; -1 where there is none. taken is where a jump leads.
	next, taken int
	// dead says that its call does not come back.
	dead bool
}

// newReading reads code at [start, end).
func newReading(m machine.Memory, start, end machine.Addr, limit int) *reading {
	return &reading{memory: m, start: start, end: end, limit: limit, number: map[machine.Addr]int{}, heads: map[machine.Addr]bool{}}
}

// follow decodes all code that direct jumps lead to, nearest first. More than the limit is
// left alone. It returns the addresses behind calls: whether they come back is not known.
func (r *reading) follow(from ...machine.Addr) (calls []machine.Addr) {
	queue := slices.Clone(from)
	for _, at := range from {
		r.heads[at] = true
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for r.inside(at) && len(r.instrs) < r.limit {
			if _, known := r.number[at]; known {
				r.heads[at] = true // it ran into a block, or into its middle
				break
			}
			i, ok := r.decode(at)
			if !ok {
				break
			}
			r.number[at] = len(r.instrs)
			r.instrs = append(r.instrs, i)
			if (i.op == opJump || i.op == opBranch) && r.inside(i.to) && !r.heads[i.to] {
				r.heads[i.to] = true
				queue = append(queue, i.to)
			}
			if at = i.next(); i.mayEnd() {
				calls = append(calls, at)
			}
			if i.ends() || i.mayEnd() {
				break
			}
			if i.op == opBranch {
				r.heads[at] = true
			}
		}
	}
	return calls
}

func (r *reading) inside(at machine.Addr) bool { return at >= r.start && at < r.end }

// decode reads the instruction at an address; false where there is none that is known to
// be one.
func (r *reading) decode(at machine.Addr) (instr, bool) {
	inst, known := x86.Decode(r.bytes(at))
	if inst.Len == 0 || uint64(inst.Len) > uint64(r.end-at) {
		return instr{}, false
	}
	return instrOf(at, inst, known), true
}

// chunk is how much code is read at once.
const chunk = 4096

// bytes returns what is at an address: the longest instruction, or what can be had.
func (r *reading) bytes(at machine.Addr) []byte {
	skip := uint64(at - r.from)
	if have := uint64(len(r.text)); at < r.from || skip > have || have-skip < x86.Longest {
		r.from, skip = at, 0
		if r.text == nil {
			r.text = make([]byte, chunk)
		}
		n := chunk
		for n > 0 && r.memory.ReadMemory(r.text[:n], at) != nil {
			n = less(n)
		}
		r.text = r.text[:n]
	}
	return r.text[skip:min(skip+x86.Longest, uint64(len(r.text)))]
}

// less is how much to read where n bytes cannot be had: half, and where the last instruction may
// be among them, a byte less.
func less(n int) int {
	if n <= x86.Longest {
		return n - 1
	}
	return max(n/2, x86.Longest)
}

// divide forms the blocks.
func (r *reading) divide() {
	r.headed = make(map[machine.Addr]int, len(r.heads))
	var first []int
	for at := range r.heads {
		if n, ok := r.number[at]; ok {
			first = append(first, n)
		}
	}
	slices.Sort(first) // the order of a map is none
	r.blocks = make([]block, len(first))
	for n, i := range first {
		r.blocks[n] = block{next: -1, taken: -1}
		r.headed[r.instrs[i].at] = n
	}
	for n := range r.blocks {
		b := &r.blocks[n]
		for at := first[n]; ; {
			b.run = append(b.run, at)
			i := &r.instrs[at]
			if i.op == opJump || i.op == opBranch {
				b.taken = r.block(i.to)
			}
			if i.ends() {
				break
			}
			if next := r.block(i.next()); next >= 0 {
				b.next = next
				break
			}
			following, ok := r.number[i.next()]
			if !ok {
				break
			}
			at = following
		}
	}
}

// block returns the block that starts at an address, or -1.
func (r *reading) block(at machine.Addr) int {
	if n, ok := r.headed[at]; ok {
		return n
	}
	return -1
}

// maxRounds bounds how often each instruction is gone through, on average, until what is
// known before it does not change any more. Code that compilers write takes two or three.
const maxRounds = 8

var errUnsettled = errors.New("its loops do not come to rest")

// settle finds out what is known before each block that is reached from the first.
func (r *reading) settle(begin moment) error {
	for n := range r.blocks {
		r.blocks[n].before = moment{}
	}
	if len(r.blocks) == 0 {
		return nil
	}
	budget := maxRounds * len(r.instrs)
	r.blocks[0].before = begin
	// The block that comes first in memory goes first: what leads to a place mostly lies before it.
	var queue blockQueue
	queue.add(r, 0)
	for len(queue) > 0 {
		b := &r.blocks[queue.take()]
		if budget -= len(b.run); budget < 0 {
			return errUnsettled
		}
		next, taken := r.after(b)
		if b.next >= 0 && next != nil && r.blocks[b.next].before.meet(next) {
			queue.add(r, b.next)
		}
		if b.taken >= 0 && taken != nil && r.blocks[b.taken].before.meet(taken) {
			queue.add(r, b.taken)
		}
	}
	return nil
}

// blockQueue is blocks that are still to be gone through, that which comes first in memory last.
type blockQueue []int

func (q *blockQueue) add(r *reading, n int) {
	at := func(n int) machine.Addr { return r.instrs[r.blocks[n].run[0]].at }
	i, found := slices.BinarySearchFunc(*q, n, func(a, b int) int { return cmp.Compare(at(b), at(a)) })
	if !found {
		*q = slices.Insert(*q, i, n)
	}
}

func (q *blockQueue) take() int {
	last := len(*q) - 1
	n := (*q)[last]
	*q = (*q)[:last]
	return n
}

// last is the instruction that ends a block.
func (r *reading) last(b *block) *instr { return &r.instrs[b.run[len(b.run)-1]] }

// after returns what is known behind a block, in memory and where its jump leads; nil where
// it does not go on.
func (r *reading) after(b *block) (next, taken *moment) {
	m := b.before
	var compared *instr
	for _, n := range b.run {
		i := &r.instrs[n]
		m.apply(i, n)
		if i.op == opCompare {
			compared = i
		} else if i.op != opBranch {
			compared = nil
		}
	}
	last := r.last(b)
	next, taken = &m, &m
	if compared != nil && last.op == opBranch && last.equal != either {
		same := m
		edge := &same
		if !same.equal(compared) {
			edge = nil
		}
		if last.equal == jumps {
			taken = edge
		} else {
			next = edge
		}
	}
	if b.dead || m.impossible && r.aligned {
		next = nil
	}
	return next, taken
}

// before returns what is known before the instruction at an address.
func (r *reading) before(at machine.Addr) (moment, error) {
	number, ok := r.number[at]
	if !ok {
		return moment{}, fmt.Errorf("no instruction at %v was reached", at)
	}
	for n := range r.blocks {
		b := &r.blocks[n]
		i := slices.Index(b.run, number)
		if i < 0 {
			continue
		}
		if !b.before.reached {
			break
		}
		m := b.before
		for _, n := range b.run[:i] {
			m.apply(&r.instrs[n], n)
		}
		return m, nil
	}
	return moment{}, fmt.Errorf("the instruction at %v was not reached", at)
}
