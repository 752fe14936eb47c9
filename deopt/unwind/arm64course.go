package unwind

import (
	"encoding/binary"
	"maps"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// Bounds of a course.
const (
	maxCourse      = 1024 // instructions
	maxCourseSteps = 8 * maxCourse
	maxCourseSlots = 256
)

// arm64Value is the content of a register or a stack slot, computed from the state at the start of the course.
type arm64Value struct {
	kind arm64Kind
	reg  uint8 // arm64Initial: the register; arm64Number: 0 or arm64Loaded
	n    int64 // arm64Initial: added to the register; arm64Number: the number
}

// arm64Loaded marks a number that was read from memory now. Memory may have held another number when the code loaded it.
const arm64Loaded = 1

type arm64Kind uint8

const (
	arm64Unknown arm64Kind = iota
	arm64Initial           // a register's initial value plus n
	arm64Number
)

const (
	arm64FP   = 29
	arm64Link = 30
	arm64SP   = 31 // index in an [ARM64Moment] and DWARF number
)

// ARM64Moment describes registers and stack at one place of a course, relative to its start.
type ARM64Moment struct {
	regs  [32]arm64Value
	slots map[int64]arm64Value // by distance from the first stack pointer
	// Stored means that memory at or above the first stack pointer may have been written. That memory contains the slots of the function.
	Stored  bool
	vectors bool // vector registers may have been written
	narrow  arm64Set
	based   arm64Set
}

// An arm64Set is a set of registers. In narrow and based, their current value has a property on all paths that the course follows. In narrow, the
// upper half of the value is zero, because an instruction of 32 bits wrote it. In based, memory at most arm64Near bytes away from the value was
// accessed.
type arm64Set uint32

// arm64Near is more than the largest offset of an access: 4095 times 16 bytes.
const arm64Near = 1 << 16

func (s *arm64Set) add(n uint32) { *s |= 1 << n }

func (s *arm64Set) remove(n uint32) { *s &^= 1 << n }

func (s arm64Set) has(n uint8) bool { return s>>n&1 != 0 }

// ARM64Course is the code that can be reached from an address, without callees. It tracks registers and stack slots symbolically.
type ARM64Course struct {
	At      map[machine.Addr]*ARM64Moment // state before each instruction
	Returns map[machine.Addr]*ARM64Moment // state at each call, by its return address
	Calls   map[machine.Addr]machine.Addr // targets of the calls in the written code, by return address
	Exit    machine.Addr                  // first reached address outside the written code; 0 for none

	unwinder *Unwinder
	steps    int        // number of instructions that were examined
	full     bool       // the bounds were exceeded
	partial  bool       // a path was not followed, because of a jump through a register, as in a table, or of an unknown instruction
	outlined *outlining // registers that callees change
	own      machine.Range
	written  machine.Range
}

// CourseARM64 follows the branches of arm64 code from the start of a range that a runtime has written. In own, the function's own code, it follows
// only that range.
func (u *Unwinder) CourseARM64(written, own machine.Range) *ARM64Course {
	c := &ARM64Course{At: map[machine.Addr]*ARM64Moment{}, Returns: map[machine.Addr]*ARM64Moment{}, Calls: map[machine.Addr]machine.Addr{}, unwinder: u, own: own, written: written, outlined: newOutlining()}
	queue := []machine.Addr{written.Start}
	c.At[written.Start] = firstMoment()
	for ; len(queue) > 0 && c.steps < maxCourseSteps; c.steps++ {
		at := queue[0]
		queue = queue[1:]
		m := c.At[at].clone()
		next, entered := c.step(m, at)
		for _, to := range next {
			if c.merge(to, m) {
				queue = append(queue, to)
			}
		}
		if entered != nil && c.merge(entered.to, entered.moment) {
			queue = append(queue, entered.to)
		}
	}
	if len(queue) > 0 || c.full { // the paths that were not followed may contradict the results
		clear(c.Returns)
		clear(c.Calls)
		clear(c.At)
	}
	return c
}

// firstMoment returns the moment at the start of a course.
func firstMoment() *ARM64Moment {
	m := &ARM64Moment{slots: map[int64]arm64Value{}}
	for n := range m.regs {
		m.regs[n] = arm64Value{arm64Initial, uint8(n), 0}
	}
	return m
}

// examined returns the number of instructions that were examined.
func (c *ARM64Course) examined() int { return c.steps + c.outlined.steps }

// merge merges the state of a path that reaches an address, and reports whether the state there changed.
func (c *ARM64Course) merge(to machine.Addr, m *ARM64Moment) bool {
	if c.own.Contains(to) && !c.written.Contains(to) {
		return false
	}
	if !c.written.Contains(to) && c.Exit == 0 { // reached by a jump or a call
		c.Exit = to
	}
	old := c.At[to]
	if old == nil {
		if len(c.At) >= maxCourse {
			c.full = true
			return false
		}
		c.At[to] = m.clone()
		return true
	}
	return old.join(m)
}

func (m *ARM64Moment) clone() *ARM64Moment {
	out := *m
	out.slots = maps.Clone(m.slots)
	return &out
}

// join keeps only values that are the same in both moments, and reports whether m changed.
func (m *ARM64Moment) join(o *ARM64Moment) (changed bool) {
	for n := range m.regs {
		if m.regs[n] != o.regs[n] && m.regs[n].kind != arm64Unknown {
			m.regs[n], changed = arm64Value{}, true
		}
	}
	for at, v := range m.slots {
		if o.slots[at] != v {
			delete(m.slots, at)
			changed = true
		}
	}
	changed = changed || o.Stored && !m.Stored || o.vectors && !m.vectors || m.narrow&^o.narrow != 0 || m.based&^o.based != 0
	m.narrow, m.based = m.narrow&o.narrow, m.based&o.based
	m.Stored, m.vectors = m.Stored || o.Stored, m.vectors || o.vectors
	return changed
}

// get returns the value of a register operand; number 31 is xzr.
func (m *ARM64Moment) get(n uint32) arm64Value {
	if n == 31 {
		return arm64Value{arm64Number, 0, 0}
	}
	return m.regs[n]
}

// set writes a register operand; number 31 is xzr.
func (m *ARM64Moment) set(n uint32, v arm64Value) {
	if n != 31 {
		m.put(n, v)
	}
}

// put writes a register; number 31 is sp.
func (m *ARM64Moment) put(n uint32, v arm64Value) {
	m.regs[n] = v
	m.narrow.remove(n)
	m.based.remove(n)
}

func (v arm64Value) plus(n int64) arm64Value {
	if v.kind == arm64Unknown {
		return v
	}
	v.n += n
	return v
}

// fromSP returns the distance of a value from the first stack pointer.
func (v arm64Value) fromSP() (n int64, ok bool) {
	return v.n, v.kind == arm64Initial && v.reg == arm64SP
}

// step applies the instruction at an address, and returns the addresses that may run next. It recognizes instructions by their bits (Arm Architecture
// Reference Manual for A-profile, C4.1). For an unknown instruction it invalidates everything that the instruction class may change.
func (c *ARM64Course) step(m *ARM64Moment, at machine.Addr) (next []machine.Addr, entered *arm64Entry) {
	var code [arm64.Size]byte
	if c.unwinder.Memory.ReadMemory(code[:], at) != nil {
		c.partial = true
		return nil, nil
	}
	w := binary.LittleEndian.Uint32(code[:])
	rd, rn := w&31, w>>5&31
	following := at + arm64.Size
	if to, ok := arm64.Jump(code[:], at); ok {
		if w&0xfc000000 == 0x14000000 {
			return []machine.Addr{to}, nil
		}
		return []machine.Addr{following, to}, nil
	}
	switch {
	case arm64.IsCall(code[:]):
		if old := c.Returns[following]; old != nil {
			old.join(m)
		} else {
			c.Returns[following] = m.clone()
		}
		to, calls := c.target(w, at), m.clone()
		changed := arm64Set(0)
		if w&0xfc000000 == 0x94000000 && c.outlined != nil {
			changed = c.changed(arm64BL(w, at))
		}
		for n := range uint32(arm64Link) {
			if n < 19 || changed.has(uint8(n)) {
				m.set(n, arm64Value{})
			}
		}
		m.put(arm64Link, arm64Value{})
		m.vectors = true
		if to == 0 {
			return []machine.Addr{following}, nil
		}
		calls.put(arm64Link, arm64Value{arm64Number, 0, int64(following)})
		return []machine.Addr{following}, &arm64Entry{to, calls}
	case w&0xfffffc1f == 0xd61f0000, w&0xfffffc1f == 0xd65f0000: // br, ret
		v := m.get(rn)
		if w>>21&3 == 0 && (v.kind != arm64Number || v.reg == arm64Loaded) && !c.unwinder.isLinkage(at) { // br
			c.partial = true
		}
		if v.kind == arm64Number {
			return []machine.Addr{machine.Addr(v.n)}, nil
		}
		return nil, nil
	case w&0xfffff01f == 0xd503201f: // nop and other hints
		return []machine.Addr{following}, nil
	case w>>26&7 == 5: // other branches, exceptions, system instructions
		if w&0xfff00000 == 0xd5300000 { // mrs
			m.set(rd, arm64Value{})
			return []machine.Addr{following}, nil
		}
		if w&0xfff00000 == 0xd5100000 || w&0xfffff000 == 0xd5033000 { // msr; barriers
			return []machine.Addr{following}, nil
		}
		if w&0xffe0001f == 0xd4000001 { // svc, which keeps all registers except the result (Linux, el0_svc)
			m.set(0, arm64Value{})
			m.Stored = true
			return []machine.Addr{following}, nil
		}
		c.partial = c.partial || w&0xffe0001f != 0xd4200000 && w&0xfffffbff != 0xd65f0bff // brk; retaa, retab
		return nil, nil
	case w>>26&7 == 4:
		m.immediate(w, at)
	case w>>25&7 == 5:
		switch {
		case w&0xffe0ffe0 == 0xaa0003e0: // mov
			m.set(rd, m.get(w>>16&31))
		case w&0x1fe00000 == 0x0b200000 && w&(1<<29) == 0: // add, sub with an extended register
			m.put(rd, arm64Value{})
		default:
			m.set(rd, arm64Value{})
		}
		if arm64Narrow(w) {
			m.narrow.add(rd)
		}
	case w>>25&5 == 4:
		c.loads(m, w, at)
	case w>>25&7 == 7: // vector instructions; some write a general register
		m.set(rd, arm64Value{})
		m.vectors = true
	default:
		c.partial = c.partial || w>>16 != 0 // udf
		return nil, nil
	}
	return []machine.Addr{following}, nil
}

// arm64Entry is a call whose target the course follows.
type arm64Entry struct {
	to     machine.Addr
	moment *ARM64Moment
}

// target returns the target of a call in the written code if the course follows it, because the target has no CFI; otherwise 0.
func (c *ARM64Course) target(w uint32, at machine.Addr) machine.Addr {
	if !c.written.Contains(at) {
		return 0
	}
	to := machine.Addr(0)
	if w&0xfc000000 == 0x94000000 {
		to = arm64BL(w, at)
	} else if v := c.At[at].get(w >> 5 & 31); w&0xfffffc1f == 0xd63f0000 && v.kind == arm64Number {
		to = machine.Addr(v.n)
	}
	if to == 0 {
		return 0
	}
	c.Calls[at+arm64.Size] = to
	if s, err := c.unwinder.Finder.Code(to).cfi(to); err != nil || s != nil {
		return 0
	}
	return to
}

// arm64BL returns the target of a bl at an address.
func arm64BL(w uint32, at machine.Addr) machine.Addr {
	return at + machine.Addr(int64(int32(w<<6)>>4))
}

// immediate applies an arithmetic instruction with an immediate operand.
func (m *ARM64Moment) immediate(w uint32, at machine.Addr) {
	rd, rn := w&31, w>>5&31
	distance := int64(int32(w<<8)>>13)<<2 | int64(w>>29&3)
	half := int64(w>>5&0xffff) << (16 * (w >> 21 & 3))
	number := int64(w >> 10 & 0xfff << (w >> 22 & 1 * 12))
	switch {
	case w&0x9f000000 == 0x10000000: // adr
		m.set(rd, arm64Value{arm64Number, 0, int64(at) + distance})
	case w&0x9f000000 == 0x90000000: // adrp
		m.set(rd, arm64Value{arm64Number, 0, int64(at)&^0xfff + distance<<12})
	case w&0xff800000 == 0x91000000: // add
		m.put(rd, m.regs[rn].plus(number))
	case w&0xff800000 == 0xd1000000: // sub
		m.put(rd, m.regs[rn].plus(-number))
	case w&0x1f800000 == 0x11000000 && w&(1<<29) == 0, w&0x1f800000 == 0x12000000 && w>>29&3 != 3: // others that may write sp
		m.put(rd, arm64Value{})
	case w&0xff800000 == 0xd2800000, w&0xff800000 == 0x52800000: // movz
		m.set(rd, arm64Value{arm64Number, 0, half})
	case w&0xff800000 == 0xf2800000 && m.get(rd).kind == arm64Number: // movk
		m.set(rd, arm64Value{arm64Number, m.get(rd).reg, m.get(rd).n&^(0xffff<<(16*(w>>21&3))) | half})
	default:
		m.set(rd, arm64Value{})
	}
	if w>>31 == 0 && w>>24&0x1f != 0x10 && rd != 31 { // 32-bit forms; bit 31 of adr is clear too, but adr writes 64 bits
		m.narrow.add(rd)
	}
}

// arm64Narrow reports whether an instruction with register operands writes 32 bits to a general register, which clears the upper half.
func arm64Narrow(w uint32) bool {
	writes := w&0x1f000000 == 0x0a000000 || w&0x1f000000 == 0x0b000000 || // and, orr, eor; add, sub
		w&0x1fe00000 == 0x1a800000 || // csel
		w&0x1fe00000 == 0x1ac00000 || // instructions with one or two source registers
		w&0x1f000000 == 0x1b000000 // multiplications
	return writes && w>>31 == 0 && w&31 != 31
}

// loads applies a load or store.
func (c *ARM64Course) loads(m *ARM64Moment, w uint32, at machine.Addr) {
	rt, rn, rt2 := w&31, w>>5&31, w>>10&31
	vector := w&(1<<26) != 0
	m.vectors = m.vectors || vector
	operation := w >> 22 & 3 // for one register: a store, a load, or a load that extends the sign to 64 or 32 bits
	narrow, hint := operation == 1 && w>>30 < 3 || operation == 3, w>>30 == 3 && operation >= 2 && !vector
	const pre, post, offset = 3, 1, 2
	switch {
	case w&0x3a000000 == 0x28000000 && w>>23&3 != 0: // pairs, except non-temporal ones
		size := int64(4) << (w >> 31)
		if vector {
			size = 4 << (w >> 30)
		}
		n := int64(int32(w<<10)>>25) * size
		c.access(m, access{vector: vector, load: w&(1<<22) != 0, whole: w>>30 == 2, narrow: w>>30 == 0, base: rn, n: n, mode: w >> 23 & 3, size: size, regs: []uint32{rt, rt2}})
	case w&0x3b200c00 == 0x38000400, w&0x3b200c00 == 0x38000c00, w&0x3b200c00 == 0x38000000: // post-indexed, pre-indexed, unscaled
		mode := []uint32{offset, post, 0, pre}[w>>10&3]
		c.access(m, access{vector: vector, load: w>>22&3 != 0, whole: w>>30 == 3 && w>>22&3 < 2, narrow: narrow, hint: hint, base: rn, n: int64(int32(w<<11) >> 23), mode: mode, size: 16, regs: []uint32{rt}})
	case w&0x3b000000 == 0x39000000: // scaled unsigned offset
		shift := w >> 30
		if vector {
			shift |= w >> 21 & 4
		}
		c.access(m, access{vector: vector, load: w>>22&3 != 0, whole: w>>30 == 3 && w>>22&3 < 2, narrow: narrow, hint: hint, base: rn, n: int64(w>>10&0xfff) << shift, mode: offset, size: 1 << shift, regs: []uint32{rt}})
	case w&0xff000000 == 0x58000000: // literal load
		m.set(rt, c.word(machine.Addr(int64(at)+int64(int32(w<<8)>>13)<<2)))
	default:
		m.set(rt, arm64Value{})
		m.set(rt2, arm64Value{})
		m.set(w>>16&31, arm64Value{})
		m.put(rn, arm64Value{})
		m.Stored = true
	}
}

// word returns a number in memory.
func (c *ARM64Course) word(at machine.Addr) arm64Value {
	var b [8]byte
	if c.unwinder.Memory.ReadMemory(b[:], at) != nil {
		return arm64Value{}
	}
	return arm64Value{arm64Number, arm64Loaded, int64(binary.LittleEndian.Uint64(b[:]))}
}

// access is a memory access relative to a base register.
type access struct {
	vector, load, whole bool // whole: all 64 bits of general registers
	narrow              bool // a load clears the upper half of the general register
	hint                bool // a prefetch, which never faults
	base                uint32
	n                   int64 // the offset
	mode                uint32
	size                int64 // size of each register
	regs                []uint32
}

func (c *ARM64Course) access(m *ARM64Moment, a access) {
	const pre, post = 3, 1
	base := m.regs[a.base]
	addr := base.plus(a.n)
	if a.mode == post {
		addr = base
	}
	m.accessed(a)
	from, onStack := addr.fromSP()
	if !a.load && onStack {
		end := from + a.size*int64(len(a.regs))
		m.Stored = m.Stored || end > 0
		for at := range m.slots {
			if at+8 > from && at < end {
				delete(m.slots, at)
			}
		}
	}
	for k, reg := range a.regs {
		slot := from + a.size*int64(k)
		switch {
		case a.vector:
		case !a.load && onStack && a.whole && len(m.slots) < maxCourseSlots:
			m.slots[slot] = m.get(reg)
		case a.load && a.whole && onStack:
			m.set(reg, m.slots[slot])
		case a.load && a.whole && addr.kind == arm64Number:
			m.set(reg, c.word(machine.Addr(addr.n+8*int64(k))))
		case a.load:
			m.set(reg, arm64Value{})
			if a.narrow && reg != 31 {
				m.narrow.add(reg)
			}
		}
	}
	if a.mode == pre || a.mode == post {
		m.put(a.base, base.plus(a.n))
		m.accessed(a)
	}
}

// accessed notes that memory near the value of the base register was accessed.
func (m *ARM64Moment) accessed(a access) {
	if a.base != arm64SP && !a.hint {
		m.based.add(a.base)
	}
}

// kept returns the place that now holds the initial value of a register plus n: the register in, or the slot.
func (m *ARM64Moment) kept(reg uint8) (in uint8, n int64, slot int64, ok, inSlot bool) {
	for r, v := range m.regs {
		if v.kind == arm64Initial && v.reg == reg {
			return uint8(r), v.n, 0, true, false
		}
	}
	for _, at := range slices.Sorted(maps.Keys(m.slots)) {
		if v := m.slots[at]; v.kind == arm64Initial && v.reg == reg {
			return 0, v.n, at, true, true
		}
	}
	return 0, 0, 0, false, false
}
