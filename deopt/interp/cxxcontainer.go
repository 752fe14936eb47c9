package interp

import (
	"encoding/binary"
	"math"
	"slices"

	"reframe/deopt/machine"
)

// containerFuncs holds the functions of std::list, std::unordered_map and their kin that libstdc++ 12 contains in compiled form, by their names for
// size_t of 64 (m) and of 32 bits (j).
var containerFuncs = containerTable()

func containerTable() map[string]Builtin {
	const list = "_ZNSt8__detail15_List_node_base"
	table := map[string]Builtin{
		list + "7_M_hookEPS0_":                procedure(func(c *ccall) { c.hook(c.addr(0), c.addr(1)) }),
		list + "9_M_unhookEv":                 procedure(unhook),
		list + "11_M_transferEPS0_S1_":        procedure(transfer),
		list + "10_M_reverseEv":               procedure(reverseList),
		list + "4swapERS0_S1_":                procedure(swapLists),
		"_ZSt11_Hash_bytesPKvmm":              scalar(hashBytes),
		"_ZSt11_Hash_bytesPKvjj":              scalar(hashBytes),
		"_ZSt15_Fnv_hash_bytesPKvmm":          scalar(fnvBytes),
		"_ZSt15_Fnv_hash_bytesPKvjj":          scalar(fnvBytes),
		rehashPolicy + "11_M_next_bktEm":      scalar(func(c *ccall) uint64 { return c.nextBuckets(c.addr(0), c.uint(1)) }),
		rehashPolicy + "11_M_next_bktEj":      scalar(func(c *ccall) uint64 { return c.nextBuckets(c.addr(0), c.uint(1)) }),
		rehashPolicy + "14_M_need_rehashEmmm": needRehash,
		rehashPolicy + "14_M_need_rehashEjjj": needRehash,
	}
	return table
}

const rehashPolicy = "_ZNKSt8__detail20_Prime_rehash_policy"

// A node of a std::list begins with the addresses of the next and of the previous one; the last one's next is the list itself.
const (
	listNext = 0
	listPrev = 1
)

func (c *ccall) hook(node, before machine.Addr) {
	prev := c.link(before, listPrev)
	c.setLink(node, listNext, before)
	c.setLink(node, listPrev, prev)
	c.setLink(prev, listNext, node)
	c.setLink(before, listPrev, node)
}

func unhook(c *ccall) {
	next, prev := c.link(c.addr(0), listNext), c.link(c.addr(0), listPrev)
	c.setLink(prev, listNext, next)
	c.setLink(next, listPrev, prev)
}

// transfer moves the nodes from argument 1 on up to argument 2, which stays, before argument 0.
func transfer(c *ccall) {
	to, first, end := c.addr(0), c.addr(1), c.addr(2)
	if to == end {
		return
	}
	last, before, prev := c.link(end, listPrev), c.link(first, listPrev), c.link(to, listPrev)
	c.setLink(last, listNext, to)
	c.setLink(before, listNext, end)
	c.setLink(prev, listNext, first)
	c.setLink(to, listPrev, last)
	c.setLink(end, listPrev, before)
	c.setLink(first, listPrev, prev)
}

func reverseList(c *ccall) {
	list := c.addr(0)
	for node := list; c.err == nil; {
		next, prev := c.link(node, listNext), c.link(node, listPrev)
		c.setLink(node, listNext, prev)
		c.setLink(node, listPrev, next)
		if node = next; node == list {
			return
		}
	}
}

// swapLists exchanges the contents of two lists; an empty list points to itself.
func swapLists(c *ccall) {
	var held [2][2]machine.Addr // of each list: the first node and the last
	for k := range held {
		if list := c.addr(k); c.link(list, listNext) != list {
			held[k] = [2]machine.Addr{c.link(list, listNext), c.link(list, listPrev)}
		}
	}
	for k, nodes := range held {
		list := c.addr(1 - k)
		if nodes[0] == 0 {
			c.setLink(list, listNext, list)
			c.setLink(list, listPrev, list)
			continue
		}
		c.setLink(list, listNext, nodes[0])
		c.setLink(list, listPrev, nodes[1])
		c.setLink(nodes[0], listPrev, list)
		c.setLink(nodes[1], listNext, list)
	}
}

// hashBytes is std::_Hash_bytes: Austin Appleby's MurmurHash2 in its two widths, of which libstdc++ changed the 64-bit one.
func hashBytes(c *ccall) uint64 {
	p, seed := c.bytes(c.addr(0), c.uint(1)), c.uint(2)
	if c.longSize() == 4 {
		return uint64(murmur32(p, uint32(seed)))
	}
	const mul = 0xc6a4a7935bd1e995
	mix := func(v uint64) uint64 { return v ^ v>>47 }
	hash := seed ^ uint64(len(p))*mul
	for ; len(p) >= 8; p = p[8:] {
		hash = (hash ^ mix(binary.LittleEndian.Uint64(p)*mul)*mul) * mul
	}
	if len(p) > 0 {
		var rest [8]byte
		copy(rest[:], p)
		hash = (hash ^ binary.LittleEndian.Uint64(rest[:])) * mul
	}
	return mix(mix(hash) * mul)
}

func murmur32(p []byte, seed uint32) uint32 {
	const mul = 0x5bd1e995
	hash := seed ^ uint32(len(p))
	for ; len(p) >= 4; p = p[4:] {
		k := binary.LittleEndian.Uint32(p) * mul
		hash = hash*mul ^ (k^k>>24)*mul
	}
	if len(p) > 0 {
		var rest [4]byte
		copy(rest[:], p)
		hash = (hash ^ binary.LittleEndian.Uint32(rest[:])) * mul
	}
	hash = (hash ^ hash>>13) * mul
	return hash ^ hash>>15
}

// fnvBytes is std::_Fnv_hash_bytes: FNV-1a from a seed (draft-eastlake-fnv).
func fnvBytes(c *ccall) uint64 {
	p, hash := c.bytes(c.addr(0), c.uint(1)), c.uint(2)
	prime := uint64(1099511628211)
	if c.longSize() == 4 {
		prime = 16777619
	}
	for _, b := range p {
		hash = (hash ^ uint64(int8(b))) * prime // of a char, which has a sign
	}
	return hash
}

// primes are the numbers of buckets for the target's size_t.
func (c *ccall) primes() []uint64 {
	if c.longSize() == 4 {
		return cxxPrimes[:slices.Index(cxxPrimes[:], maxPrime32)+1]
	}
	return cxxPrimes[:]
}

// A policy is a float, the highest load factor, and a size_t: from how many elements on there must be more buckets.
func (c *ccall) loadFactor(policy machine.Addr) float64 {
	return float64(math.Float32frombits(uint32(c.get(policy, 4))))
}

func (c *ccall) nextResize(policy machine.Addr) machine.Addr {
	return policy + machine.Addr(c.longSize())
}

// asSize converts a double to a size_t of the target. It fails the call where the value does not fit, which is undefined in C++.
func (c *ccall) asSize(x float64) uint64 {
	if !(x >= 0 && x < math.Ldexp(1, 8*c.longSize())) {
		c.fail(undefined("a number of buckets of %g", x))
		return 0
	}
	return uint64(x)
}

// nextBuckets returns the number of buckets for n, the next prime of the list, and sets in the policy the number of elements up to which it suffices.
// For an n of 0 it returns one bucket, the first that a container takes, and leaves the policy as it is.
func (c *ccall) nextBuckets(policy machine.Addr, n uint64) uint64 {
	size, primes := c.longSize(), c.primes()
	switch {
	case n == 0:
		return 1
	case n < 14: // a table in libstdc++ of what the list says, but 2 for 1 and up to 13
		small := [...]uint64{2, 2, 2, 3, 5, 5, 7, 7, 11, 11, 11, 11, 13, 13}
		c.put(c.nextResize(policy), size, c.asSize(math.Floor(float64(small[n])*c.loadFactor(policy))))
		return small[n]
	}
	k, _ := slices.BinarySearch(primes, n)
	if k >= len(primes)-1 {
		c.put(c.nextResize(policy), size, ^uint64(0))
		return primes[len(primes)-1]
	}
	c.put(c.nextResize(policy), size, c.asSize(math.Floor(float64(primes[k])*c.loadFactor(policy))))
	return primes[k]
}

// needRehash returns a std::pair<bool, size_t>: whether the present elements and those to insert need more buckets, and how many. Where size_t has 32
// bits, the pair is stored at the address in the first argument.
func needRehash(i *Invocation) (Value, error) {
	c := &ccall{Invocation: i}
	first := len(c.Args) - 4
	if first < 0 {
		return Value{}, troublef(KindModule, "@%s is called with %d arguments, too few", c.Name, len(c.Args))
	}
	policy, buckets, elements, more := c.addr(first), c.uint(first+1), c.uint(first+2), c.uint(first+3)
	need, size := uint64(0), c.longSize()
	var to uint64
	resize := c.get(c.nextResize(policy), size)
	if total := (elements + more) & maskAt(8*size, 0); total > resize && c.err == nil {
		least := total
		if resize == 0 {
			least = max(least, 11)
		}
		factor := c.loadFactor(policy)
		if at := float64(least) / factor; at >= float64(buckets) {
			need, to = 1, c.nextBuckets(policy, max(c.asSize(math.Floor(at)+1), buckets*2))
		} else {
			c.put(c.nextResize(policy), size, c.asSize(math.Floor(float64(buckets)*factor)))
		}
	}
	if first > 0 {
		c.put(c.addr(0), 1, need)
		c.put(c.addr(0)+machine.Addr(size), size, to)
		return Value{}, c.err
	}
	return c.pair(need, to)
}

// pair is a result of two fields, as clang returns a small struct.
func (c *ccall) pair(a, b uint64) (Value, error) {
	switch {
	case c.err != nil:
		return Value{}, c.err
	case c.ret.n != 2 || c.ret.words != 2:
		return Value{}, c.mistyped()
	}
	w := make([]word, 2)
	for k, v := range []uint64{a, b} {
		part, _, _ := c.ret.part(k)
		w[k] = word{v: v & maskAt(part.bits, 0)}
	}
	return Value{c.ret, w}, nil
}
