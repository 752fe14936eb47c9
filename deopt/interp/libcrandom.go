package interp

// random is the state of glibc's rand: the additive generator of degree 31 with
// separation 3 (random(3), TYPE_3). A zero value is not seeded yet.
type random struct {
	r      [31]uint32
	front  int
	seeded bool
}

func (g *random) seed(s uint32) {
	if s == 0 {
		s = 1
	}
	*g = random{seeded: true, front: 3}
	// 16807 times the last word modulo 2^31-1, in signed words as glibc has it.
	word := int32(s)
	for k := range g.r {
		g.r[k] = uint32(word)
		high, low := word/127773, word%127773
		word = 16807*low - 2836*high
		if word < 0 {
			word += 2147483647
		}
	}
	for range 310 {
		g.next()
	}
}

func (g *random) next() uint32 {
	if !g.seeded {
		g.seed(1)
	}
	rear := (g.front + 28) % 31
	g.r[g.front] += g.r[rear]
	v := g.r[g.front] >> 1
	g.front = (g.front + 1) % 31
	return v
}

// randomFuncs are the generators of <stdlib.h> with glibc's numbers.
var randomFuncs = map[string]Builtin{
	"rand": scalar(rand), "random": scalar(rand), "srand": procedure(srand), "srandom": procedure(srand),
	"rand_r":  scalar(randR),
	"lrand48": scalar(func(c *ccall) uint64 { return c.step48() >> 17 }),
	"mrand48": scalar(func(c *ccall) uint64 { return uint64(int64(int32(c.step48() >> 16))) }),
	"drand48": floating(func(c *ccall) float64 { return float64(c.step48()) / (1 << 48) }),
	"srand48": procedure(func(c *ccall) { c.in.clib.seed48 = c.uint(0)&0xffffffff<<16 | 0x330e }),
}

func rand(c *ccall) uint64 { return uint64(c.in.clib.random.next()) }

func srand(c *ccall) {
	seed := c.uint(0)
	if c.err == nil {
		c.in.clib.random.seed(uint32(seed))
	}
}

// randR is rand_r: three steps of a linear generator for 31 bits.
func randR(c *ccall) uint64 {
	state := uint32(c.get(c.addr(0), 4))
	result := uint32(0)
	for _, width := range []int{11, 10, 10} {
		state = state*1103515245 + 12345
		result = result<<width ^ state>>16&(1<<width-1)
	}
	c.put(c.addr(0), 4, uint64(state))
	return uint64(result)
}

// step48 is the generator of drand48 (POSIX); the state is 0 where no seed was given.
func (c *ccall) step48() uint64 {
	l := &c.in.clib
	l.seed48 = (0x5deece66d*l.seed48 + 11) & (1<<48 - 1)
	return l.seed48
}
