package truth_test

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// A tally counts the results of comparisons at exits.
type tally struct {
	Programs, NotBuilt int
	Exits              int // innermost frames that are at their site
	Outer              int // frames that wait for the return of a call
	Values             int // values shown as ok that equal the program's log
	Undefined          int
	Wrong              int
	Stuck              int            // programs that did not end
	Refused            int            // programs whose module reframe rejected as different from the compiled one
	Reasons            map[string]int // reasons of values that are unavailable
	Frames             map[string]int // reasons of frames without a record or without names
	Kinds              map[string]int // exits, by the kind of site
	Exited             map[string]int // exits that a layout describes, by kind
	Tools              map[string]int // reasons why programs were not built
}

func newTally() *tally {
	return &tally{Reasons: map[string]int{}, Frames: map[string]int{}, Kinds: map[string]int{}, Exited: map[string]int{}, Tools: map[string]int{}}
}

// add adds another tally.
func (y *tally) add(o *tally) {
	y.Programs += o.Programs
	y.NotBuilt += o.NotBuilt
	y.Exits += o.Exits
	y.Outer += o.Outer
	y.Values += o.Values
	y.Undefined += o.Undefined
	y.Wrong += o.Wrong
	y.Stuck += o.Stuck
	y.Refused += o.Refused
	for _, m := range []struct{ to, from map[string]int }{{y.Reasons, o.Reasons}, {y.Frames, o.Frames}, {y.Kinds, o.Kinds}, {y.Exited, o.Exited}, {y.Tools, o.Tools}} {
		for k, n := range m.from {
			m.to[k] += n
		}
	}
}

// A comparer compares the frames of threads with the program's log.
type comparer struct {
	*program
	*tally
	order    binary.ByteOrder
	sites    map[int64]*site
	failed   []string // the first few failures
	refusals []string
	patience time.Duration // how long a program may make no progress
	seconds  uint64        // limit of its processor time
}

func newComparer(p *program, y *tally) *comparer {
	c := &comparer{program: p, tally: y, order: binary.LittleEndian, sites: map[int64]*site{}, patience: livetest.Patience, seconds: toolSeconds}
	if p.Machine == "s390x" {
		c.order = binary.BigEndian
	}
	for _, f := range p.Funcs {
		f.layOut()
		for _, s := range f.Steps {
			if s.Site != nil {
				c.sites[s.Site.Number] = s.Site
			}
		}
	}
	return c
}

// An entry is a log frame that a program has written.
type entry struct {
	site *site
	data []byte // memory from its start
}

// function returns the name of the entry's function.
func (e *entry) function() string { return fmt.Sprintf("f%d", e.site.Number>>16) }

// entries reads the log entries of the thread whose block is at an address, innermost first.
func (c *comparer) entries(memory machine.Memory, block uint64) ([]entry, error) {
	head := make([]byte, 16)
	if err := memory.ReadMemory(head, machine.Addr(block)); err != nil {
		return nil, err
	}
	top, free := c.order.Uint64(head), c.order.Uint64(head[8:])
	start := block + logAt
	if free < start || free > block+blockSize || top != 0 && (top < start || top > free) {
		return nil, fmt.Errorf("a log from %#x to %#x", top, free)
	}
	data := make([]byte, free-start)
	if err := memory.ReadMemory(data, machine.Addr(start)); err != nil {
		return nil, err
	}
	var list []entry
	for at := top; at != 0; {
		d := data[at-start:]
		number := int64(c.order.Uint64(d))
		s := c.sites[number]
		if s == nil {
			return list, fmt.Errorf("site %#x", number)
		}
		list = append(list, entry{s, d})
		next := c.order.Uint64(d[8:])
		if next != 0 && (next < start || next >= at) {
			return list, fmt.Errorf("a log frame at %#x below %#x", next, at)
		}
		at = next
	}
	return list, nil
}

// wrong records a difference.
func (c *comparer) wrong(format string, args ...any) {
	c.Wrong++
	if len(c.failed) < 8 {
		c.failed = append(c.failed, fmt.Sprintf(format, args...))
	}
}

// ours matches the names of generated functions.
var ours = regexp.MustCompile(`^f[0-9]+$`)

// stack compares the frames of a thread with its log. If innermost is set, the first frame must be at its site.
func (c *comparer) stack(frames []*deopt.Frame, entries []entry, innermost bool) {
	n := 0
	for _, f := range frames {
		if !ours.MatchString(f.Function) {
			continue
		}
		if n == len(entries) {
			c.wrong("%s: a frame that is not active", f.Function)
			return
		}
		e := &entries[n]
		if f.Function != e.function() {
			c.wrong("frame %d is of %s, and %s is active there", f.Index, f.Function, e.function())
			return
		}
		if n == 0 && innermost {
			c.Exits++
		} else {
			c.Outer++
		}
		c.Kinds[e.site.kind()]++
		c.frame(f, e)
		n++
	}
	if n < len(entries) {
		c.wrong("%d frames of %d were found, the last before %s", n, len(entries), entries[n].function())
	}
}

// plain removes the parts of a reason that vary between values.
func plain(reason string) string {
	reason = numbers.ReplaceAllString(reason, "N")
	return strings.TrimSpace(reason)
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+|<\d+ x [^>]+>|%[a-z0-9.]+|\b(i|f|v|xmm|ymm|zmm|r|x|d|line |frame #)?\d+\b|\b(r|e)?([abcd]x|[sd]i|bp|sp)\b`)

// frame compares one frame with its log entry.
func (c *comparer) frame(f *deopt.Frame, e *entry) {
	s := e.site
	what := func() string {
		return fmt.Sprintf("%s, %s %#x of %s, frame %d (%s)", f.Function, s.Kind, s.ID, e.function(), f.Index, f.Rule)
	}
	if f.Record == nil {
		why := "no record"
		if len(f.Notes) > 0 {
			why += ": " + plain(f.Notes[len(f.Notes)-1])
		}
		c.Frames[why]++
		// A stackmap has no call of its own. The call before it returns to the record's address, or to moves before that address, which reframe
		// follows. Otherwise the return address has no record.
		if f.Guess() == "" && (s.Kind != stackMap || f.Index == 0) {
			c.wrong("%s: no record: %q", what(), f.Notes)
		}
		return
	}
	if s.Known && f.Record.ID != s.ID {
		c.wrong("%s: it has record %#x: %q", what(), f.Record.ID, f.Notes)
		return
	}
	if s.Exit != nil {
		c.exit(f, e, what)
		return
	}
	named := false
	for _, slot := range f.Slots {
		named = named || !slot.Type.IsZero()
	}
	if !named && len(s.Live)+len(s.GC) > 0 {
		why := "no names"
		if len(f.Notes) > 0 {
			why += ": " + plain(f.Notes[len(f.Notes)-1])
		}
		c.Frames[why]++
		return
	}
	if len(f.Slots) < len(s.Live) {
		c.wrong("%s: %d slots for %d values", what(), len(f.Slots), len(s.Live))
		return
	}
	for k, v := range s.Live {
		c.value(s, &f.Slots[k], v, e.data[s.at[k]:], what)
	}
	for _, slot := range f.Slots[len(s.Live):] {
		for k, v := range s.GC {
			if slot.Name == v.Name {
				c.value(s, &slot, v, e.data[s.gcAt[k]:], what)
			}
		}
	}
}

// exit compares a frame that resumes by a layout with the log.
func (c *comparer) exit(f *deopt.Frame, e *entry, what func() string) {
	s, x := e.site, e.site.Exit
	if f.Resume == nil || f.Resume.Function != x.Function || f.Resume.Block != x.Block {
		c.wrong("%s: the layout says that %s resumes at %s, and not %+v: %q", what(), x.Function, x.Block, f.Resume, f.Notes)
		return
	}
	c.Exited[x.place(s)]++
	slots := map[string]*frame.Slot{}
	for k := range f.Slots {
		slots[f.Slots[k].Name] = &f.Slots[k]
	}
	for k, n := range x.Names {
		if n == nil {
			continue
		}
		slot := slots[n.Name]
		if slot == nil || slot.Index != k || unspaced(slot.Type.Source) != unspaced(n.Type.in(c.Version)) {
			c.wrong("%s: operand %d is %s %s by the layout, and is shown as %+v", what(), k, n.Type.text, n.Name, slot)
			continue
		}
		delete(slots, n.Name)
		v := *s.Live[k]
		v.Type = n.Type
		c.value(s, slot, &v, e.data[s.at[k]:], what)
	}
	for name := range slots {
		c.wrong("%s: %s is none of what the layout names", what(), name)
	}
}

// unspaced removes the blanks from the text of a type, because struct types may be written with and without blanks.
func unspaced(text string) string { return strings.ReplaceAll(text, " ", "") }

// value compares one slot with the logged bytes.
func (c *comparer) value(s *site, slot *frame.Slot, v *value, logged []byte, what func() string) {
	switch {
	case slot.Status == frame.Undefined:
		if !v.Undef {
			c.wrong("%s: %s is shown as undefined", what(), v.Name)
		}
		c.Undefined++
		return
	case slot.Status != frame.OK:
		c.Reasons[plain(slot.Reason)]++
		return
	case v.Undef:
		c.wrong("%s: slot %d is undef, and shown as %s", what(), slot.Index, slot.Value)
		return
	}
	want := append([]byte(nil), logged[:v.Type.size()]...)
	got := append([]byte(nil), slot.Bytes...)
	if slot.Type.IsZero() && len(got) > len(want) { // the site is ambiguous, so the value has its recorded width
		if c.order == binary.BigEndian {
			got = got[len(got)-len(want):]
		} else {
			got = got[:len(want)]
		}
	}
	if extra := v.Type.bits % 8; extra != 0 && len(got) == len(want) { // ignore the bits above the value
		top := len(want) - 1
		if c.order == binary.BigEndian {
			top = 0
		}
		want[top] &= 1<<extra - 1
		got[top] &= 1<<extra - 1
	}
	if string(got) != string(want) {
		c.wrong("%s: slot %d, %s %s, is shown as %x and was %x; it lies at %+v", what(), slot.Index, v.Type.text, v.Name, got, want, *slot.Location)
		return
	}
	c.Values++
	// The text must show the same value as the bytes.
	if !slot.Type.IsZero() && v.Type.kind == integer && v.Type.bits <= 64 && c.order == binary.LittleEndian {
		b := make([]byte, 8)
		copy(b, want)
		n := int64(binary.LittleEndian.Uint64(b)<<(64-v.Type.bits)) >> (64 - v.Type.bits)
		text := strconv.FormatInt(n, 10)
		if v.Type.bits == 1 {
			text = strconv.FormatBool(n != 0)
		}
		if slot.Value != text {
			c.wrong("%s: %s %s is spelled %s, and is %s", what(), v.Type.text, v.Name, slot.Value, text)
		}
	}
}
