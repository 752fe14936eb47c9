package interp

import (
	"example.com/reframe/internal/machine"
)

// sortCall sorts and searches arrays.
type sortCall struct{ *ccall }

// sortFuncs holds the searching and sorting functions of <stdlib.h> (C17 7.22.5), which call a comparison function of the program.
var sortFuncs = map[string]Builtin{
	"qsort":   procedure(func(c sortCall) { c.sort(c.addr(3)) }),
	"qsort_r": procedure(func(c sortCall) { c.sort(c.addr(3), c.pointer(c.uint(4))) }),
	"bsearch": scalar(bsearch),
}

// order calls a comparison function of the program, and returns its result.
func (c sortCall) order(f machine.Addr, a, b uint64, more []Value) int {
	if c.err != nil {
		return 0
	}
	v, err := c.Call(f, append([]Value{c.pointer(a), c.pointer(b)}, more...)...)
	c.fail(err)
	if c.err != nil {
		return 0
	}
	n, ok := v.Int()
	if !ok {
		c.err = undefined("the result of the comparison function of @%s", c.Name)
	}
	return int(int32(n))
}

// sort is a merge sort, as in glibc up to 2.36, so equal elements keep their order. It moves the elements after the last comparison. If the
// comparisons contradict each other, the result is some permutation.
func (c sortCall) sort(f machine.Addr, more ...Value) {
	base, n, size := c.uint(0), c.uint(1), c.uint(2)
	if c.err != nil || n < 2 || size == 0 {
		return
	}
	if size > c.in.view.limit || n > c.in.view.limit/(size+16) {
		c.err = troublef(KindMemory, "a sort of %d elements of %d bytes is more than the %d bytes of memory allowed", n, size, c.in.view.limit)
		return
	}
	if n*size >= 1024 {
		c.keepsState() // for this size, glibc up to 2.36 allocates memory with malloc
	}
	cost := n * (2*size + 16)
	if c.err = c.in.view.charge(cost); c.err != nil {
		return
	}
	defer c.in.view.release(cost)
	from, to := make([]uint64, n), make([]uint64, n)
	for k := range from {
		from[k] = base + uint64(k)*size
	}
	for run := uint64(1); run < n && c.err == nil; run *= 2 {
		for start := uint64(0); start < n; start += 2 * run {
			c.merge(f, from[start:min(start+run, n)], from[min(start+run, n):min(start+2*run, n)], to[start:], more)
		}
		from, to = to, from
	}
	c.permute(machine.Addr(base), size, from)
}

func (c sortCall) merge(f machine.Addr, a, b, to []uint64, more []Value) {
	for k := 0; len(a)+len(b) > 0; k++ {
		if len(b) == 0 || len(a) > 0 && c.order(f, a[0], b[0], more) <= 0 {
			to[k], a = a[0], a[1:]
		} else {
			to[k], b = b[0], b[1:]
		}
	}
}

// permute moves the elements of an array at base into the order of the addresses in order. It keeps their undefined bits.
func (c sortCall) permute(base machine.Addr, size uint64, order []uint64) {
	if c.err == nil {
		c.err = c.in.work(2 * size * uint64(len(order)))
	}
	if c.err != nil {
		return
	}
	data, shadow := make([]byte, size*uint64(len(order))), make([]byte, size*uint64(len(order)))
	for k, a := range order {
		at := uint64(k) * size
		c.fail(c.in.view.read(data[at:at+size], shadow[at:at+size], machine.Addr(a)))
	}
	if c.err == nil {
		c.err = c.in.view.write(base, data, shadow)
	}
}

func bsearch(c sortCall) uint64 {
	key, base, n, size, f := c.uint(0), c.uint(1), c.uint(2), c.uint(3), c.addr(4)
	for low := uint64(0); low < n && c.err == nil; {
		middle := low + (n-low)/2
		at := base + middle*size
		switch o := c.order(f, key, at, nil); {
		case c.err != nil:
			return 0
		case o < 0:
			n = middle
		case o > 0:
			low = middle + 1
		default:
			return at
		}
	}
	return 0
}
