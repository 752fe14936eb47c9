package interp

import "example.com/reframe/internal/machine"

// checkedFuncs holds the functions that code compiled with _FORTIFY_SOURCE calls instead of memcpy, sprintf and so on. They also take the size of the
// destination object, and end the program if the object is too small.
var checkedFuncs = checkedTable()

// fortified describes a checked function: at is the index of the argument with the object's size, and needs returns the number of bytes that a call
// needs.
type fortified struct {
	name  string
	at    int
	needs func(c *ccall) uint64
}

func checkedTable() map[string]Builtin {
	table := map[string]Builtin{}
	length := func(i int) func(*ccall) uint64 { return func(c *ccall) uint64 { return c.uint(i) } }
	for _, f := range []fortified{
		{"memcpy", 3, length(2)}, {"memmove", 3, length(2)}, {"mempcpy", 3, length(2)}, {"memset", 3, length(2)},
		{"strncpy", 3, length(2)}, {"stpncpy", 3, length(2)}, {"explicit_bzero", 2, length(1)},
		{"read", 3, length(2)},
		{"strcpy", 2, func(c *ccall) uint64 { return uint64(len(c.text(1))) + 1 }},
		{"stpcpy", 2, func(c *ccall) uint64 { return uint64(len(c.text(1))) + 1 }},
		{"strcat", 2, func(c *ccall) uint64 { return uint64(len(c.text(0))+len(c.text(1))) + 1 }},
		{"strncat", 3, func(c *ccall) uint64 { return uint64(len(c.text(0))+len(c.textAt(c.addr(1), c.uint(2)))) + 1 }},
	} {
		table["__"+f.name+"_chk"] = func(i *Invocation) (Value, error) {
			c := &ccall{Invocation: i}
			if room, needs := c.uint(f.at), f.needs(c); c.err == nil && needs > room {
				c.terminated("buffer overflow detected")
			}
			if c.err != nil {
				return Value{}, c.err
			}
			return libc[f.name](i)
		}
	}
	table["__fgets_chk"] = scalar(func(c streamCall) uint64 {
		if n := c.int(2); c.err == nil && n > 0 && uint64(n) > c.uint(1) {
			c.terminated("buffer overflow detected")
		}
		return c.gets(c.addr(0), c.int(2), c.stream(3))
	})
	table["__fread_chk"] = scalar(func(c streamCall) uint64 {
		if total := c.product(2, 3); c.err == nil && total > c.uint(1) {
			c.terminated("buffer overflow detected")
		}
		return c.fread(machine.Addr(c.uint(0)), 2, 3, c.stream(4))
	})
	return table
}
