package ptrace

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// Code that is not in a file is copied in pages, each with the pages before and after it, because an unknown function is read from its start, or up
// to its return.
const (
	codePage = 4096
	maxPages = 192 // per thread
)

// maxInterrupted bounds the number of a thread's stacks that signals interrupted.
const maxInterrupted = 4

// copy reads the data that only a stopped process can provide: the registers and stacks of each thread, and code that is in no file.
func (s *stopped) copy(of *Target, code *codeCopy) error {
	if !slices.ContainsFunc(s.threads, func(t *stoppedThread) bool { return !t.ended }) {
		return ErrProcessExited
	}
	if err := of.process.readMany(code.whole); err != nil {
		return err
	}
	if err := of.process.readMany(s.also); err != nil {
		return err
	}
	for _, t := range s.threads {
		if t.missing != "" {
			continue
		}
		if err := t.raw.fetch(t.tid); err != nil {
			return err // ESRCH: a stopped thread ends only if its process is killed
		}
		if !t.raw.is64() {
			return Err32Bit
		}
		t.arch = of.arch
		t.sp, t.pc, t.link = t.raw.general(t.arch.SP), t.raw.general(t.arch.PC), t.raw.general(t.arch.Link)
		t.block = t.raw.threadBlock()
		t.copyAll(of.process, of, code.around, code.pages)
	}
	if s.goroutines != nil {
		s.goroutines.copy(of, s.threads)
	}
	if s.gatherer != nil {
		var from []start
		for _, t := range s.threads {
			if t.missing == "" {
				from = append(from, start{t.sp, t.raw.words(), t.stacks[0]})
			}
		}
		return s.gather(of.process, of, from)
	}
	return nil
}

// copyAll copies the stacks of a thread, and the code to which their words point.
func (t *stoppedThread) copyAll(mem memory, of *Target, code []machine.Mapping, pages map[machine.Addr]bool) {
	t.copyStacks(mem, of.maps)
	if of.goProgram {
		t.copyGoStacks(mem, of)
	}
	t.copyCode(mem, code, pages)
}

// ranges returns the ranges that were copied.
func (t *stoppedThread) ranges() (list []span) {
	for _, stack := range append(slices.Clone(t.stacks), t.past...) {
		list = append(list, span{stack.addr, bytes.Clone(stack.data)})
	}
	list = append(list, t.runtime...)
	return append(list, spansOf(t.code)...)
}

// copyStacks copies the stack of a thread, and further stacks that the thread left when signal handlers switched to another stack.
func (t *stoppedThread) copyStacks(mem memory, maps []machine.Mapping) {
	room := len(t.stacks[0].data)
	copyOne := func(s *span, sp machine.Addr) {
		past, unread := s.copy(mem, maps, sp, t.block, t.deep)
		t.past, t.unread = append(t.past, past...), append(t.unread, unread...)
	}
	copyOne(&t.stacks[0], t.sp)
	for i := 0; t.arch == machine.AMD64 && i < len(t.stacks) && len(t.stacks) <= maxInterrupted; i++ {
		t.stacks[i].eachInterrupted(func(sp machine.Addr) {
			known := slices.ContainsFunc(t.stacks, func(s span) bool { return s.addr <= sp && sp < s.end() })
			if !known && len(t.stacks) <= maxInterrupted {
				more := span{data: make([]byte, room)}
				copyOne(&more, sp)
				t.stacks = append(t.stacks, more)
			}
		})
	}
	if sp, left := t.leftStack(maps, t.block); left && len(t.stacks) <= maxInterrupted {
		more := span{data: make([]byte, room)}
		copyOne(&more, sp)
		t.stacks = append(t.stacks, more)
	}
}

// leftStack returns the lowest address in the thread's own stack to which a word at the top of its current stack points. A stub or a coroutine that
// switches stacks saves the old stack pointer on the new stack. left is false if the thread runs on its own stack, or if no word points there.
func (t *stoppedThread) leftStack(maps []machine.Mapping, block machine.Addr) (sp machine.Addr, left bool) {
	const words = 512
	var own []machine.Mapping
	for _, m := range maps {
		if m.Path == "[stack]" || block != 0 && m.Contains(block) {
			own = append(own, m)
		}
	}
	in := func(at machine.Addr) bool {
		return slices.ContainsFunc(own, func(m machine.Mapping) bool { return m.Contains(at) })
	}
	for _, s := range t.stacks {
		if in(s.addr) {
			return 0, false
		}
	}
	top := t.stacks[0]
	top.data = top.data[:min(len(top.data), 8*words)]
	top.eachWord(t.arch.Order, func(at machine.Addr) {
		if at%8 == 0 && in(at) && (!left || at < sp) {
			sp, left = at, true
		}
	})
	return sp, left
}

// copy copies a stack up to the end of its writable mapping. It does not copy what follows: mappings of libraries often follow the stack of a thread,
// and reading them takes longer than everything else. The program may also have mapped memory there, which the kernel merges with the stack's
// mapping. The thread's own block, which the C library puts at the end of the stack, is not part of the stack.
//
// For a deep stack s grows. deep is the number of bytes that remain for growing, for all threads together. past holds the parts of the stack after
// unreadable pages, and unread holds these pages.
func (s *span) copy(mem memory, maps []machine.Mapping, sp, block machine.Addr, deep *int) (past []span, unread []machine.Range) {
	var into []byte
	read := func(from machine.Addr) int {
		end := writableEnd(maps, from)
		own := slices.ContainsFunc(maps, func(m machine.Mapping) bool { return m.Path == "[stack]" && m.Contains(from) })
		if sp < block && block < end {
			end, own = block, true
		}
		if own && deep != nil && end > from {
			if more := min(int64(min(uint64(end-from), deepStack))-int64(len(s.data)), int64(*deep)); more > 0 {
				*deep -= int(more)
				s.data = make([]byte, len(s.data)+int(more))
			}
		}
		into = s.data
		if end > from {
			into = into[:min(uint64(len(into)), uint64(end-from))]
		}
		n, err := mem.readUpTo(into, from)
		if err != nil {
			return 0
		}
		s.addr = from
		return n
	}
	n := read(sp - redZone)
	if n <= redZone {
		// The red zone may be below the stack's mapping.
		n = read(sp)
	}
	if n == 0 && writableEnd(maps, sp) > sp {
		past, unread = pastHoles(mem, into, sp, 0)
		s.addr, s.data = sp, nil
		return past, unread
	}
	if n == 0 {
		// After a stack overflow the stack pointer itself may be unreadable, too.
		n = read(aboveGuard(maps, sp))
	}
	s.data = s.data[:n]
	if n > 0 && writableEnd(maps, s.addr) > s.addr {
		past, unread = pastHoles(mem, into, s.addr, n)
	}
	return past, unread
}

// pastHoles continues to read a stack after a page that cannot be read because userfaultfd must provide it: a frame may have an unused array there. n
// is the number of bytes that were read before the page.
func pastHoles(mem memory, into []byte, from machine.Addr, n int) (past []span, unread []machine.Range) {
	for n < len(into) {
		at := from + machine.Addr(n)
		next := min(at&^(codePage-1)+codePage, from+machine.Addr(len(into)))
		unread = append(unread, machine.Range{Start: at, End: next})
		n = int(next - from)
		if got, err := mem.readUpTo(into[n:], next); err == nil && got > 0 {
			past = append(past, span{next, into[n : n+got]})
			n += got
		}
	}
	return past, unread
}

// maxGuard bounds the distance below a stack at which a stack pointer still counts as its own. Linux keeps 1 MiB free below the stack of the first
// thread; a function may already have allocated its frame below that.
const maxGuard = 2 << 20

// aboveGuard returns the start of the next writable mapping within maxGuard after addr, or addr if there is none.
func aboveGuard(maps []machine.Mapping, addr machine.Addr) machine.Addr {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].End > addr })
	for ; i < len(maps) && maps[i].Start <= addr+maxGuard; i++ {
		if maps[i].Write && maps[i].Start > addr {
			return maps[i].Start
		}
	}
	return addr
}

// writableEnd returns the end of the adjacent writable mappings that start with the one that contains addr. It returns 0 if no mapping contains addr,
// because the stack may have grown since the mappings were read.
func writableEnd(maps []machine.Mapping, addr machine.Addr) (end machine.Addr) {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].End > addr })
	for ; i < len(maps) && maps[i].Write && (maps[i].Contains(addr) || maps[i].Start == end); i++ {
		end = maps[i].End
	}
	return end
}

// Offsets in the kernel's frame of a signal handler, in words (struct rt_sigframe of arch/x86/include/asm/sigframe.h, with struct ucontext after its
// first word): the return address, flags, a link that is always zero, the address and the size of the alternate stack; then the interrupted
// registers.
const (
	frameLink    = 2
	frameStack   = 3
	frameSize    = 5
	frameSP      = 21
	frameSegment = 24 // cs in its low 16 bits
	frameWords   = 25

	userCode = 0x33 // __USER_CS
)

// eachInterrupted calls f with the stack pointer of each context that was interrupted by a signal whose handler runs on the alternate stack. s is a
// copy of the alternate stack. A false match only causes an unused copy.
func (s *span) eachInterrupted(f func(sp machine.Addr)) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(s.data[at:]) } // a call through binary.ByteOrder is several times slower
	// The frame is aligned as if a call had pushed its first word.
	for at := int(8-s.addr&15) & 15; at+8*frameWords <= len(s.data); at += 16 {
		if word(at+8*frameLink) != 0 {
			continue
		}
		here, stack, size := uint64(s.addr)+uint64(at), word(at+8*frameStack), word(at+8*frameSize)
		sp := word(at + 8*frameSP)
		if here-stack < size && sp-stack >= size && word(at+8*frameSegment)&0xffff == userCode {
			f(machine.Addr(sp))
		}
	}
}

// copyCode copies the code to which the program counter, the link register and each word of the stacks point, because a JIT may patch it later. pages
// holds the pages that are already copied.
func (t *stoppedThread) copyCode(mem memory, code []machine.Mapping, pages map[machine.Addr]bool) {
	if len(code) == 0 {
		return
	}
	first, end := code[0].Start, code[len(code)-1].End
	add := func(at machine.Addr) {
		if at < first || at >= end {
			return // most words point elsewhere
		}
		m, ok := findMapping(code, at)
		if !ok {
			return
		}
		page := at &^ (codePage - 1)
		for _, from := range []machine.Addr{page, page - codePage, page + codePage} {
			if len(t.code) < maxPages && m.Contains(from) && !pages[from] {
				pages[from] = true
				t.code = append(t.code, system.Want{Addr: from, Buf: make([]byte, min(codePage, m.End-from))})
			}
		}
	}
	t.eachCode(add)
	// A range that cannot be read is omitted; reading it from the copy returns an error.
	_ = mem.readMany(t.code)
}

// eachCode calls f with the program counter, and with each word that may be a return address: the link register, and the aligned words of the copied
// stacks.
func (t *stoppedThread) eachCode(f func(machine.Addr)) {
	f(t.pc)
	f(codeAddr(t.arch, t.link))
	for _, s := range append(slices.Clone(t.stacks), t.past...) {
		s.eachWord(t.arch.Order, func(w machine.Addr) { f(codeAddr(t.arch, w)) })
	}
}

// codeAddr removes the signature of pointer authentication, whose bits are not part of a code address.
func codeAddr(a *machine.Arch, w machine.Addr) machine.Addr {
	if a.Code == 0 {
		return w
	}
	return w & machine.Addr(a.Code)
}

// eachWord calls f with each aligned word.
func (s span) eachWord(order binary.ByteOrder, f func(machine.Addr)) {
	if order == binary.ByteOrder(binary.LittleEndian) { // the same loop without an indirect call for each word, because a stopped process waits
		for at := int(-s.addr & 7); at+8 <= len(s.data); at += 8 {
			f(machine.Addr(binary.LittleEndian.Uint64(s.data[at:])))
		}
		return
	}
	for at := int(-s.addr & 7); at+8 <= len(s.data); at += 8 {
		f(machine.Addr(order.Uint64(s.data[at:])))
	}
}
