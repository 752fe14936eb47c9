package interp

import (
	"fmt"
	"time"

	"reframe/deopt/machine"
)

// dateFuncs holds the functions for dates of <time.h> (C17 7.27.2, 7.27.3) in the time zone UTC, which is that of an empty environment on a machine
// without settings.
var dateFuncs = map[string]Builtin{
	"gmtime":      scalar(func(c *ccall) uint64 { return c.brokenDown(c.dateBuffer(), "GMT") }),
	"gmtime_r":    scalar(func(c *ccall) uint64 { return c.brokenDown(c.addr(1), "GMT") }),
	"localtime":   scalar(func(c *ccall) uint64 { return c.brokenDown(c.dateBuffer(), "UTC") }),
	"localtime_r": scalar(func(c *ccall) uint64 { return c.brokenDown(c.addr(1), "UTC") }),
	"mktime":      scalar(func(c *ccall) uint64 { return c.makeTime("UTC") }), "timelocal": scalar(func(c *ccall) uint64 { return c.makeTime("UTC") }),
	"timegm": scalar(func(c *ccall) uint64 { return c.makeTime("GMT") }),
	"asctime": scalar(func(c *ccall) uint64 {
		return c.dateText(c.addr(0), c.table("asctime", asctimeSize))
	}),
	"asctime_r": scalar(func(c *ccall) uint64 { return c.dateText(c.addr(0), c.addr(1)) }),
	"ctime": scalar(func(c *ccall) uint64 {
		return c.dateText(machine.Addr(c.brokenDown(c.dateBuffer(), "UTC")), c.table("asctime", asctimeSize))
	}),
	"strftime": scalar(strftime), "strftime_l": scalar(strftime),
	"tzset": procedure(func(*ccall) {}),
}

// The ints of a struct tm by their places. GNU's fields follow them: tm_gmtoff, a long, and tm_zone, a char *.
const (
	tmSec = iota
	tmMin
	tmHour
	tmMday
	tmMon  // from 0
	tmYear // from 1900
	tmWday // from Sunday, 0
	tmYday // from 0
	tmIsdst
	tmInts
)

// zoneAt returns the offset of tm_gmtoff; tm_zone follows it.
func (c *ccall) zoneAt() machine.Addr {
	return alignUp(4*tmInts, c.longSize())
}

func (c *ccall) dateSize() uint64 { return uint64(c.zoneAt()) + 2*uint64(c.longSize()) }

// table is memory of the C library's own under a name.
func (c *ccall) table(name string, size uint64) machine.Addr {
	a, ok := c.in.clib.tables[name]
	if !ok {
		a = c.own(size)
		if c.err == nil {
			c.in.clib.keepTable(name, a)
		}
	}
	return a
}

// dateBuffer returns the address of the buffer that gmtime and localtime share.
func (c *ccall) dateBuffer() machine.Addr { return c.table("gmtime", c.dateSize()) }

// The seconds whose years fit into tm_year.
const (
	firstSecond = -67768040609740800
	lastSecond  = 67768036191676799
)

// brokenDown writes the date of the time_t at argument 0 into a struct tm.
func (c *ccall) brokenDown(to machine.Addr, zone string) uint64 {
	size := c.longSize()
	s := int64(c.get(c.addr(0), size))
	if size == 4 {
		s = int64(int32(s))
	}
	return c.putDate(to, s, zone)
}

// putDate writes the date of a second, and answers its address; null and EOVERFLOW where the year does not fit.
func (c *ccall) putDate(to machine.Addr, s int64, zone string) uint64 {
	if s < firstSecond || s > lastSecond {
		c.setErrno(errOverflow)
		return 0
	}
	t := time.Unix(s, 0).UTC()
	for k, v := range [tmInts]int{t.Second(), t.Minute(), t.Hour(), t.Day(), int(t.Month()) - 1, t.Year() - 1900, int(t.Weekday()), t.YearDay() - 1, 0} {
		c.put(to+machine.Addr(4*k), 4, uint64(v))
	}
	size, at := c.longSize(), to+c.zoneAt()
	if size == 8 {
		c.fill(to+4*tmInts, 0, 4) // the gap before tm_gmtoff
	}
	c.put(at, size, 0)
	c.put(at+machine.Addr(size), size, c.constantText(zone))
	return uint64(to)
}

// A date is a struct tm in memory; fields that are not read need not be defined.
type date struct {
	c  *ccall
	at machine.Addr
}

func (d date) field(k int) int64 { return int64(int32(d.c.get(d.at+machine.Addr(4*k), 4))) }

func (d date) year() int64 { return d.field(tmYear) + 1900 }

// second is the time of the date, with fields out of their ranges carried over; tm_wday and tm_yday are not looked at.
func (d date) second() int64 {
	month := d.field(tmMon)
	year := d.year() + month/12
	if month %= 12; month < 0 {
		month, year = month+12, year-1
	}
	return firstOfMonth(year, month) + (d.field(tmMday)-1)*86400 + d.field(tmHour)*3600 + d.field(tmMin)*60 + d.field(tmSec)
}

// makeTime is mktime and timegm: it puts the fields of argument 0 right, too.
func (c *ccall) makeTime(zone string) uint64 {
	d := date{c, c.addr(0)}
	if c.Name != "timegm" && d.field(tmIsdst) > 0 {
		c.fail(unsupported("set tm_isdst to 0 or -1", "@%s with daylight saving time, which UTC has not,", c.Name))
	}
	s := d.second()
	if c.err == nil && c.longSize() == 4 && s != int64(int32(s)) {
		c.setErrno(errOverflow)
		return eof
	}
	if c.err != nil || c.putDate(d.at, s, zone) == 0 {
		return eof
	}
	return uint64(s)
}

// firstOfMonth is when a month, from 0, begins, of any year that tm_year can tell: by the calendar's cycle of 400 years.
func firstOfMonth(year, month int64) int64 {
	cycles := floorDiv(year, 400)
	const cycle = 146097 * 86400
	return cycles*cycle + time.Date(int(year-400*cycles), time.Month(month+1), 1, 0, 0, 0, 0, time.UTC).Unix()
}

var (
	dayNames   = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	monthNames = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)

// nameOf returns the name with an index, "?" where it has none.
func nameOf(names []string, k int64) string {
	if k < 0 || k >= int64(len(names)) {
		return "?"
	}
	return names[k]
}

// short is a name's first three letters.
func short(name string) string { return name[:min(3, len(name))] }

// asctimeSize is glibc's own buffer; that of asctime_r has 26 bytes.
const asctimeSize = 114

// dateText is asctime (C17 7.27.3.1).
func (c *ccall) dateText(at, to machine.Addr) uint64 {
	if at == 0 {
		c.setErrno(errInvalid)
		return 0
	}
	d := date{c, at}
	day, month := short(nameOf(dayNames[:], d.field(tmWday))), short(nameOf(monthNames[:], d.field(tmMon)))
	if day == "?" {
		day = "???"
	}
	if month == "?" {
		month = "???"
	}
	text := fmt.Sprintf("%s %s%3d %.2d:%.2d:%.2d %d\n", day, month, d.field(tmMday), d.field(tmHour), d.field(tmMin), d.field(tmSec), d.year())
	if len(text) >= 26 && c.Name == "asctime_r" {
		c.setErrno(errOverflow)
		return 0
	}
	c.write(to, append([]byte(text), 0))
	return uint64(to)
}
