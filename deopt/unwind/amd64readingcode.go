package unwind

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// reading is the code that can be reached from one address: its instructions, their basic blocks, and the state before each block.
type reading struct {
	memory  machine.Memory
	code    machine.Range // the reading follows no code outside of it
	limit   int           // maximum number of instructions
	aligned bool          // discard paths whose calls cannot all have an aligned stack
	called  bool          // calls enter the first instruction, so a jump to it must have the stack pointer of a function entry
	left    *departure    // set if the code is a departure from a function

	instrs []instr
	number map[machine.Addr]int // index of the instruction at an address
	blocks []block              // by address
	in     []int                // block of each instruction
	spent  int                  // number of instructions processed

	// afterLast is the moment after the last processed block. equal is that moment if the block's comparison found its operands equal.
	afterLast, equal moment
	within           moment // the moment at the start of the callee, if the reading follows the block's call

	text []byte // cache of the code at address from
	from machine.Addr
}

// block is a basic block. A call also ends a block, because the call may not return.
type block struct {
	first, last int // indexes of its instructions
	before      moment
	// next is the block after it in memory, and taken the target of its jump; -1 for none.
	next, taken int
	// dead means that the call at the end of the block does not return.
	dead bool
}

// newReading makes a reading of code in [start, end).
func newReading(m machine.Memory, start, end machine.Addr, limit int) *reading {
	return &reading{memory: m, code: machine.Range{Start: start, End: end}, limit: limit, number: map[machine.Addr]int{}}
}

// follow decodes all code that direct jumps lead to, breadth first, up to the limit. It returns the addresses after calls, which are reached only if
// the calls return.
func (r *reading) follow(from ...machine.Addr) (calls []machine.Addr) {
	queue := slices.Clone(from)
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for r.inside(at) && len(r.instrs) < r.limit {
			if _, known := r.number[at]; known {
				break
			}
			i, ok := r.decode(at)
			if !ok {
				break
			}
			r.number[at] = len(r.instrs)
			if len(r.instrs) == cap(r.instrs) {
				r.instrs = slices.Grow(r.instrs, max(64, len(r.instrs)))
			}
			r.instrs = append(r.instrs, i)
			if i.jumps() || r.enters(&i) {
				queue = append(queue, i.to)
			}
			if at = i.next(); i.mayEnd() {
				calls = append(calls, at)
			}
			if i.ends() || i.mayEnd() {
				break
			}
		}
	}
	return calls
}

func (r *reading) inside(at machine.Addr) bool {
	return r.code.Contains(at) && (r.left == nil || r.left.follows(at))
}

// decode decodes the instruction at an address. It returns false if none is valid there.
func (r *reading) decode(at machine.Addr) (instr, bool) {
	inst, known := amd64.Decode(r.bytes(at))
	if inst.Len == 0 || uint64(inst.Len) > uint64(r.code.End-at) {
		return instr{}, false
	}
	i := instrOf(at, inst, known)
	if r.left != nil && known {
		r.left.resolve(r, &i, inst)
	}
	return i, true
}

// chunk is the number of bytes of code to read at once.
const chunk = 4096

// bytes returns the bytes at an address: enough for the longest instruction, or as many as can be read.
func (r *reading) bytes(at machine.Addr) []byte {
	skip := uint64(at - r.from)
	if have := uint64(len(r.text)); at < r.from || skip > have || have-skip < amd64.Longest {
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
	return r.text[skip:min(skip+amd64.Longest, uint64(len(r.text)))]
}

// less returns the number of bytes to try after n bytes could not be read: half, or one byte less when only the last instruction is left.
func less(n int) int {
	if n <= amd64.Longest {
		return n - 1
	}
	return max(n/2, amd64.Longest)
}

// divide builds the blocks.
func (r *reading) divide() {
	heads := r.heads()
	r.blocks = make([]block, len(heads))
	r.in = make([]int, len(r.instrs))
	for n := range r.in {
		r.in[n] = -1
	}
	for n, first := range heads {
		r.in[first] = n
	}
	for n, at := range heads {
		b := &r.blocks[n]
		*b = block{first: at, last: at, next: -1, taken: -1}
		for b.last+1 < len(r.in) && r.in[b.last+1] < 0 && !r.instrs[b.last].ends() {
			b.last++
			r.in[b.last] = n
		}
		i := &r.instrs[b.last]
		if !i.ends() {
			b.next = r.block(i.next())
		}
		if i.jumps() || r.enters(i) {
			b.taken = r.block(i.to)
		}
	}
}

// heads returns the instructions that start a block, by address: the first of all, and those that are not reached only from the instruction before
// them.
func (r *reading) heads() []int {
	head := make([]bool, len(r.instrs))
	var list []int
	add := func(n int, known bool) {
		if known && !head[n] {
			head[n] = true
			list = append(list, n)
		}
	}
	add(0, len(r.instrs) > 0)
	for n := range r.instrs {
		i := &r.instrs[n]
		if i.jumps() || r.enters(i) {
			target, known := r.number[i.to]
			add(target, known)
		}
		if i.ends() {
			continue
		}
		// follow decodes an instruction and its successor in a row: the indexes are consecutive unless another path has reached the successor first.
		next, known := r.number[i.next()]
		add(next, known && (i.op == opBranch || i.mayEnd() || next != n+1))
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(r.instrs[a].at, r.instrs[b].at) })
	return list
}

// block returns the block that starts at an address, or -1.
func (r *reading) block(at machine.Addr) int {
	if n, ok := r.number[at]; ok {
		return r.in[n]
	}
	return -1
}

// maxRounds bounds the average number of times that each instruction is processed until the states are stable. Compiled code takes two or three
// rounds, and five if calls that do not return must be found.
const maxRounds = 8

var errNoFixpoint = errors.New("its loops do not come to rest")

// computeStates computes the state before each block that is reached from the first instruction.
func (r *reading) computeStates(begin moment) error {
	for n := range r.blocks {
		r.blocks[n].before = moment{}
	}
	if len(r.blocks) == 0 {
		return nil
	}
	r.blocks[r.in[0]].before = begin
	// Process blocks in memory order: most predecessors of a block are before it.
	queue := blockSet{words: make([]uint64, len(r.blocks)/64+1)}
	queue.add(r.in[0])
	for n, ok := queue.take(); ok; n, ok = queue.take() {
		b := &r.blocks[n]
		if r.spent += b.last - b.first + 1; r.spent > maxRounds*len(r.instrs) {
			return errNoFixpoint
		}
		next, taken := r.after(b)
		if b.next >= 0 && next != nil && r.blocks[b.next].before.meet(next) {
			queue.add(b.next)
		}
		if b.taken >= 0 && taken != nil && r.admits(b.taken, taken) && r.blocks[b.taken].before.meet(taken) {
			queue.add(b.taken)
		}
	}
	return nil
}

// admits reports whether a jump may lead to a block. A jump to the start of a function must have the stack pointer that a call of the function
// would leave. A jump with another stack pointer is in other code, which follows a call that does not return.
func (r *reading) admits(block int, m *moment) bool {
	if !r.called || block != r.in[0] {
		return true
	}
	sp := &m.regs[machine.AMD64.SP]
	if sp.kind != unknownOrigin {
		return sound(m)
	}
	*sp = initially(machine.AMD64.SP)
	return true
}

// blockSet is the set of blocks to process.
type blockSet struct {
	words []uint64
	first int // all words before it are zero
}

func (q *blockSet) add(n int) {
	q.words[n/64] |= 1 << (n % 64)
	q.first = min(q.first, n/64)
}

// take removes and returns the first block, or false if the set is empty.
func (q *blockSet) take() (int, bool) {
	for ; q.first < len(q.words); q.first++ {
		if word := q.words[q.first]; word != 0 {
			q.words[q.first] = word & (word - 1)
			return 64*q.first + bits.TrailingZeros64(word), true
		}
	}
	return 0, false
}

// last returns the instruction that ends a block.
func (r *reading) last(b *block) *instr { return &r.instrs[b.last] }

// after returns the moment after a block, for the next instruction in memory and for the target of its jump; nil if execution does not continue
// there. The results are valid until the next call.
func (r *reading) after(b *block) (next, taken *moment) {
	m := &r.afterLast
	*m = b.before
	var compared *instr
	for n := b.first; n <= b.last; n++ {
		i := &r.instrs[n]
		if n == b.last && r.enters(i) {
			r.within = *m
			r.within.push(constant(uint64(i.next())))
			if r.within.inner.kind == unknownOrigin {
				r.within.inner = r.within.regs[machine.AMD64.SP]
			}
		}
		m.apply(i, n)
		if i.op == opCompare {
			compared = i
		} else if i.op != opBranch {
			compared = nil
		}
	}
	last := r.last(b)
	next, taken = m, m
	if r.enters(last) {
		taken = &r.within
	}
	if compared != nil && last.op == opBranch && last.equal != either {
		edge := &r.equal
		if *edge = *m; !edge.equal(compared) {
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

// before returns the moment before the instruction at an address.
func (r *reading) before(at machine.Addr) (moment, error) {
	number, ok := r.number[at]
	if !ok {
		return moment{}, frame.Errorf("no instruction at %v was reached", at)
	}
	b := &r.blocks[r.in[number]]
	if !b.before.reached {
		return moment{}, frame.Errorf("the instruction at %v was not reached", at)
	}
	m := b.before
	for n := b.first; n < number; n++ {
		m.apply(&r.instrs[n], n)
	}
	return m, nil
}
