package interp

import "example.com/reframe/internal/machine"

// timeFuncs holds the clocks of <time.h> and related functions. Every run must give the same results, so the date is always 1970-01-01 00:00:00 UTC,
// and interval clocks advance by one nanosecond for each step.
var timeFuncs = map[string]Builtin{
	"time": scalar(func(c *ccall) uint64 {
		if a := c.addr(0); a != 0 {
			c.put(a, c.longSize(), 0)
		}
		return 0
	}),
	"clock":         scalar(func(c *ccall) uint64 { return c.elapsed() / 1000 }),
	"clock_gettime": scalar(clockGettime),
	"gettimeofday":  scalar(func(c *ccall) uint64 { return c.timespec(c.addr(0), 0) }),
	"difftime":      floating(func(c *ccall) float64 { return float64(c.int(0) - c.int(1)) }),
}

// clockGettime returns the date for CLOCK_REALTIME (0), and the elapsed time for every other clock.
func clockGettime(c *ccall) uint64 {
	if c.uint(0) == 0 {
		return c.timespec(c.addr(1), 0)
	}
	return c.timespec(c.addr(1), c.elapsed())
}

// timespec writes two longs: seconds, and the remaining nanoseconds.
func (c *ccall) timespec(a machine.Addr, ns uint64) uint64 {
	if a != 0 {
		c.put(a, c.longSize(), ns/1e9)
		c.put(a+machine.Addr(c.longSize()), c.longSize(), ns%1e9)
	}
	return 0
}

// localeFuncs support one locale, "C" (C17 7.11), in which a byte is a character.
var localeFuncs = map[string]Builtin{
	"setlocale": scalar(func(c *ccall) uint64 {
		if a := c.addr(1); a != 0 {
			switch string(c.text(1)) {
			case "", "C", "POSIX":
			default:
				return 0
			}
		}
		return c.constantText("C")
	}),
	"localeconv": scalar(localeconv),
}

// localeconv returns the address of a struct lconv: ten pointers to strings, and fourteen chars.
func localeconv(c *ccall) uint64 {
	if a, ok := c.in.clib.tables["localeconv"]; ok {
		return uint64(a)
	}
	a := c.own(96)
	for k := range 10 {
		text := ""
		if k == 0 {
			text = "." // decimal_point
		}
		c.put(a+machine.Addr(c.longSize()*k), c.longSize(), c.constantText(text))
	}
	c.fill(a+machine.Addr(10*c.longSize()), 0x7f, 14) // CHAR_MAX: not available
	if c.err == nil {
		c.in.clib.keepTable("localeconv", a)
	}
	return uint64(a)
}

// elapsed returns the time since the run started, in nanoseconds: one per step.
func (c *ccall) elapsed() uint64 { return c.in.run.steps + c.in.run.bulk }
