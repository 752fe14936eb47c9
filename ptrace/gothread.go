package ptrace

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// Offsets of fields in the structures of Go's run time (type g, type m and type gobuf in runtime/runtime2.go). These have not changed since Go 1.4.
const (
	goStackLow  = 0
	goStackHigh = 8
	goThread    = 48 // g.m
	goSP        = 56 // g.sched.sp
	goPC        = 64 // g.sched.pc
	goFields    = 72
	goSystem    = 0 // m.g0

	// threadWords is the number of words below the thread pointer that may hold the pointer to the running goroutine, in the executable's thread-local
	// variables.
	threadWords = 64
	// goroutineBytes is an upper bound of the size of a g.
	goroutineBytes = 512
	// A g is at a multiple of goAlign, or goHeader bytes after one. All sizes of Go's allocator from 256 to 1024 bytes are multiples of goAlign, and
	// the linker aligns runtime.g0 to it. An object of more than 512 bytes begins with a header of 8 bytes (mallocgcSmallScanHeader in
	// runtime/malloc.go). With the red zone that -asan adds, a g is larger than 512 bytes.
	goAlign  = 32
	goHeader = 8
	// goThreadBytes is the size of the part of an m that contains the pointers to its goroutines.
	goThreadBytes = 512
)

// GoThread is the state of a thread in Go's run time.
type GoThread struct {
	System Goroutine // g0, which runs on the thread's own stack
	// The other goroutines to which the m points: the current one, one that is locked to the thread, and the one that handles signals.
	Running []Goroutine
	Current machine.Addr // the goroutine whose stack the thread uses, according to its thread-local variable
}

// Goroutine holds the fields of a goroutine that have the same offsets in all releases of Go.
type Goroutine struct {
	Addr  machine.Addr
	Stack machine.Range
	SP    machine.Addr // saved when the goroutine left its stack
	PC    machine.Addr // saved together with SP
	m     machine.Addr // its thread
}

// FindGoThread finds the state of a thread, given its thread pointer. It accepts only structures that refer to each other: a g whose m has a g0 of
// the same m. ok is false if it finds none or several.
func FindGoThread(arch *machine.Arch, mem machine.Memory, thread machine.Addr) (found GoThread, ok bool) {
	r := &goReader{arch: arch, mem: mem}
	return r.find(thread)
}

func (r *goReader) find(thread machine.Addr) (found GoThread, ok bool) {
	words := r.words(thread-8*threadWords, threadWords)
	// Without C, the thread pointer points into the m, after the word with the goroutine (m.tls in runtime/runtime2.go, settls in
	// runtime/sys_linux_amd64.s). The other words before it are fields of the m, which may point to goroutines of other threads.
	if own := r.goroutines(words[threadWords-1:]); len(own) == 1 && own[0].m < thread && thread <= own[0].m+goThreadBytes {
		if found, ok := r.thread(own[0].m); ok {
			found.Current = own[0].Addr
			return found, true
		}
	}
	// With C, any of the words may be the pointer to the running goroutine: two Go runtimes in a process use different words, and variables of C may
	// point to other goroutines.
	for _, g := range r.goroutines(words) {
		other, belongs := r.thread(g.m)
		switch {
		case !belongs:
			continue
		case ok:
			return GoThread{}, false
		}
		found, ok = other, true
		found.Current = g.Addr
	}
	return found, ok
}

// goReader reads structures of Go's run time.
type goReader struct {
	arch *machine.Arch
	mem  machine.Memory
	maps []machine.Mapping // mappings that may contain structures; nil for all memory
	size int               // number of bytes of a g to read, or fewer at the end of memory; 0 means goFields
}

// words returns n words starting at an address. Words that cannot be read are 0.
func (r *goReader) words(addr machine.Addr, n int) []machine.Addr {
	b := make([]byte, 8*n)
	list := make([]machine.Addr, n)
	whole := r.mem.ReadMemory(b, addr) == nil
	for i := range list {
		word := b[8*i:][:8]
		if whole || r.mem.ReadMemory(word, addr+machine.Addr(8*i)) == nil {
			list[i] = machine.Addr(r.arch.Order.Uint64(word))
		}
	}
	return list
}

// manyReader is memory that can read several ranges in one call. A capture uses it because each read is a system call during the stop.
type manyReader interface{ readMany([]system.Want) error }

// goroutines returns a Goroutine for each of the addresses that may be that of a g.
func (r *goReader) goroutines(addrs []machine.Addr) (list []Goroutine) {
	var wants []system.Want
	seen := map[machine.Addr]bool{}
	for _, addr := range addrs {
		if m, ok := findMapping(r.maps, addr); addr == 0 || addr%goAlign != 0 && addr%goAlign != goHeader || seen[addr] || r.maps != nil && !(ok && m.Write) {
			continue
		}
		seen[addr] = true
		wants = append(wants, system.Want{Addr: addr, Buf: make([]byte, max(r.size, goFields))})
	}
	many, ok := r.mem.(manyReader)
	ok = ok && many.readMany(wants) == nil
	for i := range wants {
		w := &wants[i]
		if !ok {
			w.OK = r.mem.ReadMemory(w.Buf, w.Addr) == nil
		}
		if !w.OK && len(w.Buf) > goFields {
			w.Buf = w.Buf[:goFields]
			w.OK = r.mem.ReadMemory(w.Buf, w.Addr) == nil
		}
	}
	for _, w := range wants {
		at := func(offset int) machine.Addr { return machine.Addr(r.arch.Order.Uint64(w.Buf[offset:])) }
		g := Goroutine{Addr: w.Addr, Stack: machine.Range{Start: at(goStackLow), End: at(goStackHigh)}, SP: at(goSP), PC: at(goPC), m: at(goThread)}
		if w.OK && g.m%8 == 0 && (g.m != 0 && g.Stack.Start < g.Stack.End || g.Stack.Contains(g.SP)) {
			list = append(list, g)
		}
	}
	return list
}

// thread reads the m at an address. ok is false if no g0 belongs to it.
func (r *goReader) thread(m machine.Addr) (found GoThread, ok bool) {
	if m == 0 {
		return GoThread{}, false
	}
	list := r.words(m, goThreadBytes/8)
	system := r.goroutines(list[goSystem/8:][:1])
	if len(system) != 1 || system[0].m != m {
		return GoThread{}, false
	}
	found.System = system[0]
	for _, g := range r.goroutines(list[goSystem/8+1:]) {
		if (g.m == m || g.m == 0) && g.Addr != found.System.Addr { // m is 0 for a goroutine that is locked to the thread and waits
			found.Running = append(found.Running, g)
		}
	}
	return found, true
}
