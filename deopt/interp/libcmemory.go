package interp

import (
	"math"
	"math/bits"

	"example.com/reframe/internal/machine"
)

// memoryFuncs holds memory management (C17 7.22.3, POSIX) and the functions of <string.h> on bytes (C17 7.24.2.1, 7.24.4.1, 7.24.5.1).
var memoryFuncs = map[string]Builtin{
	"malloc":             scalar(func(c heapCall) uint64 { return c.allocate(c.uint(0), 16, false) }),
	"calloc":             scalar(func(c heapCall) uint64 { return c.allocate(c.product(0, 1), 16, true) }),
	"realloc":            scalar(func(c heapCall) uint64 { return c.reallocate(c.addr(0), c.uint(1)) }),
	"reallocarray":       scalar(func(c heapCall) uint64 { return c.reallocate(c.addr(0), c.product(1, 2)) }),
	"aligned_alloc":      scalar(func(c heapCall) uint64 { return c.allocateAligned(c.uint(0), c.uint(1)) }),
	"memalign":           scalar(func(c heapCall) uint64 { return c.allocateAligned(c.uint(0), c.uint(1)) }),
	"valloc":             scalar(func(c heapCall) uint64 { return c.allocateAligned(pageSize, c.uint(0)) }),
	"posix_memalign":     scalar(posixMemalign),
	"malloc_usable_size": scalar(usableSize),
	"free":               procedure(func(c heapCall) { c.free(c.addr(0)) }),

	"memcpy": scalar(memmove), "memmove": scalar(memmove), "mempcpy": scalar(mempcpy), "__mempcpy": scalar(mempcpy),
	"memccpy": scalar(memccpy), "memset": scalar(memset), "explicit_bzero": procedure(bzero), "bzero": procedure(bzero),
	"bcopy":  procedure(func(c stringCall) { c.move(c.addr(1), c.addr(0), c.uint(2)) }),
	"memcmp": scalar(memcmp), "bcmp": scalar(memcmp),
	"memchr": scalar(memchr), "rawmemchr": scalar(func(c stringCall) uint64 { return c.findByte(c.addr(0), byte(c.uint(1)), math.MaxUint64) }),
	"memrchr": scalar(memrchr), "memmem": scalar(memmem),
}

// heapCall allocates and frees memory.
type heapCall struct{ *ccall }

// tooMuch returns the least size for which malloc fails however much memory is free. An x86-64 process has no addresses at or above it (Linux,
// Documentation/arch/x86/x86_64/mm.rst). With 32-bit pointers, no object is larger than PTRDIFF_MAX (glibc's malloc.c).
func (c heapCall) tooMuch() uint64 {
	if c.longSize() == 4 {
		return 1 << 31
	}
	return 1 << 47
}

// allocate implements malloc. A size above the run's limit ends the run. A size of tooMuch or more returns a null pointer, as C requires.
func (c heapCall) allocate(n uint64, align int, zero bool) uint64 {
	if c.err != nil {
		return 0
	}
	if n >= c.tooMuch() {
		c.setErrno(errNoMemory)
		return 0
	}
	a, err := c.in.heap.alloc(n, align, zero)
	if err == nil {
		err = c.in.work(n)
	}
	c.fail(err)
	return uint64(a)
}

// maxAlign bounds alignments, so that blocks stay in the heap's range.
const maxAlign = 1 << 30

func (c heapCall) allocateAligned(align, size uint64) uint64 {
	switch {
	case c.err != nil:
		return 0
	case bits.OnesCount64(align) != 1:
		c.setErrno(errInvalid)
		return 0
	case align > maxAlign:
		c.setErrno(errNoMemory)
		return 0
	}
	return c.allocate(size, int(align), false)
}

func posixMemalign(c heapCall) uint64 {
	align, size := c.uint(1), c.uint(2)
	if c.err == nil && (bits.OnesCount64(align) != 1 || align < uint64(c.longSize())) {
		return errInvalid
	}
	if align > maxAlign || size >= c.tooMuch() {
		return errNoMemory
	}
	a := c.allocate(size, int(align), false)
	c.put(c.addr(0), c.longSize(), a)
	return 0
}

func (c heapCall) free(a machine.Addr) {
	if c.err == nil {
		c.err = c.in.heap.free(a)
	}
}

func usableSize(c heapCall) uint64 {
	a := c.addr(0)
	size, ok := c.in.heap.sizes[a]
	switch {
	case ok || a == 0 || c.err != nil:
	case c.foreign(a):
		c.err = unsupported("only the target's own allocator knows the size of the block at that address", "malloc_usable_size of %v, memory of the target,", a)
	default:
		c.err = troublef(KindFault, "malloc_usable_size of %v, which malloc did not return", a)
	}
	return size
}

func (c heapCall) reallocate(a machine.Addr, n uint64) uint64 {
	if a == 0 || c.err != nil {
		return c.allocate(n, 16, false)
	}
	old, ok := c.in.heap.sizes[a]
	switch {
	case c.foreign(a):
		c.err = unsupported("only the target's own allocator knows the size of the block at that address", "realloc of %v, memory of the target,", a)
		return 0
	case !ok: // let free report the error
		c.free(a)
		return 0
	case n == 0:
		c.free(a)
		return 0
	}
	to := c.allocate(n, 16, false)
	if to == 0 {
		return 0 // the old block stays allocated
	}
	c.move(machine.Addr(to), a, min(old, n))
	c.free(a)
	return to
}

func memmove(c stringCall) uint64 {
	c.move(c.addr(0), c.addr(1), c.uint(2))
	return c.uint(0)
}

func mempcpy(c stringCall) uint64 { return memmove(c) + c.uint(2) }

// memccpy copies bytes up to and including the first one that equals argument 2.
func memccpy(c stringCall) uint64 {
	to, from, limit := c.addr(0), c.addr(1), c.uint(3)
	at := c.findByte(from, byte(c.uint(2)), limit)
	if at == 0 {
		c.move(to, from, limit)
		return 0
	}
	n := at - uint64(from) + 1
	c.move(to, from, n)
	return uint64(to) + n
}

func memset(c stringCall) uint64 {
	c.fill(c.addr(0), byte(c.uint(1)), c.uint(2))
	return c.uint(0)
}

func bzero(c stringCall) { c.fill(c.addr(0), 0, c.uint(1)) }

// memcmp reads no bytes after the first difference.
func memcmp(c stringCall) uint64 {
	a, b := c.from(c.addr(0)), c.from(c.addr(1))
	for n := c.uint(2); n > 0 && c.err == nil; n-- {
		if x, y := a.next(), b.next(); x != y {
			return uint64(int64(x) - int64(y))
		}
	}
	return 0
}

func memchr(c stringCall) uint64 { return c.findByte(c.addr(0), byte(c.uint(1)), c.uint(2)) }

// findByte returns the address of the first byte b among limit bytes from a on, or 0.
func (c stringCall) findByte(a machine.Addr, b byte, limit uint64) uint64 {
	r := c.from(a)
	for n := uint64(0); n < limit && c.err == nil; n++ {
		if r.next() == b && c.err == nil {
			return uint64(a) + n
		}
	}
	return 0
}

func memrchr(c stringCall) uint64 {
	a, b, n := c.addr(0), byte(c.uint(1)), c.uint(2)
	for ; n > 0 && c.err == nil; n-- {
		if c.get(a+machine.Addr(n-1), 1) == uint64(b) && c.err == nil {
			return uint64(a) + n - 1
		}
		c.fail(c.in.work(64))
	}
	return 0
}

func memmem(c stringCall) uint64 {
	a := c.addr(0)
	k := c.index(c.bytes(a, c.uint(1)), c.bytes(c.addr(2), c.uint(3)))
	if k < 0 || c.err != nil {
		return 0
	}
	return uint64(a) + uint64(k)
}
