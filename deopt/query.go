package deopt

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/ptrace"
)

// Summary counts the objects and stack maps that were read for a view.
type Summary struct {
	Objects   int // objects that the JIT registered, or that were given
	Read      int // objects that were read because an address on a stack is in them
	Functions int // functions with records in all stack maps that were read
	Records   int
	Versions  []int // versions of the stack maps
	Scanned   bool  // memory was searched for stack maps, because nothing was registered
	Unopened  bool  // files of the process could not be opened, so registered objects in them may be missing
}

// Summary counts the objects and stack maps that were read for the view.
func (v *View) Summary() Summary {
	s := Summary{Scanned: v.target.Scanned, Unopened: progspace.Unopened(v.target) != "", Objects: len(v.target.Given())}
	for _, r := range v.target.Registries {
		s.Objects += len(r.Entries)
	}
	s.Read = len(v.space.Objects)
	for _, c := range v.space.All() {
		for _, m := range c.Maps {
			s.Functions += len(m.Functions)
			s.Records += m.Len()
			if !slices.Contains(s.Versions, m.Version) {
				s.Versions = append(s.Versions, m.Version)
			}
		}
	}
	return s
}

// Keep drops the frames that were not chosen, and keeps all threads.
func (v *View) Keep(c Choice) {
	for i := range v.Threads {
		t := &v.Threads[i]
		if c.Numbered() {
			t.Omitted = nil
		}
		t.Frames = slices.DeleteFunc(t.Frames, func(f *Frame) bool {
			return !c.Is(t, f) || c.Function != nil && !c.Function.Match(f.Function)
		})
	}
}

// NearFunction lists the names of the frames' functions that are similar to p. It returns "" if none is, or if a frame matches p.
func (v *View) NearFunction(p *names.Pattern) string {
	if p == nil {
		return ""
	}
	nearest := names.NewNearest(p.Text)
	for _, t := range v.Threads {
		for _, f := range t.Frames {
			if p.Match(f.Function) {
				return ""
			}
			nearest.Add(f.Function)
		}
	}
	return nearest.String()
}

// WhyNone returns the reason why no frame has a record.
func (v *View) WhyNone() string { return fmt.Sprintf("%v: %s", v.target, v.WhyNoRecord()) }

// WhyNoRecord is [View.WhyNone] without the name of the target.
func (v *View) WhyNoRecord() string {
	if why := v.unread(); why != "" {
		return "no thread could be read: " + why
	}
	all := v.space.All()
	for _, c := range all {
		if c.MapsErr != nil {
			return c.MapsErr.Error()
		}
	}
	if n := v.Summary().Records; n > 0 {
		why := fmt.Sprintf("no frame is stopped at a recorded site (%d records in the code on its stacks)", n)
		if progspace.Nameless(v.target) {
			why += "; " + progspace.WhyNameless
		}
		return why
	}
	return fmt.Sprintf("%v: %s", progspace.ErrNoMaps, progspace.WhyNoMaps(v.target))
}

// total returns the number of frames on the thread's stack.
func (t *Thread) total() int {
	if t.Total == 0 {
		return len(t.Frames)
	}
	return t.Total
}

// HowMany returns the range of frame numbers, for an error about a number outside of it.
func (v *View) HowMany() string {
	deepest, frames := 0, 0
	for i := range v.Threads {
		if n := v.Threads[i].total(); n > frames {
			deepest, frames = i, n
		}
	}
	switch {
	case frames == 0:
		return "there are no frames"
	case len(v.Threads) == 1:
		return fmt.Sprintf("thread %d has %d, #0 to #%d", v.Threads[0].ID, frames, frames-1)
	}
	return fmt.Sprintf("of its %d threads %d has the most: %d, #0 to #%d", len(v.Threads), v.Threads[deepest].ID, frames, frames-1)
}

// maxThreads bounds the threads that an error lists.
const maxThreads = 8

// NoThread returns the error for a thread number that the target does not have. It lists the existing threads.
func NoThread(t *ptrace.Target, id int) error {
	var names []string
	all := t.Threads()
	for _, th := range all[:min(len(all), maxThreads)] {
		name := fmt.Sprint(th.ID)
		if th.Name != "" {
			name += fmt.Sprintf(" %q", th.Name)
		}
		names = append(names, name)
	}
	more := ""
	if len(all) > maxThreads {
		more = fmt.Sprintf(" and %d more", len(all)-maxThreads)
	}
	return fmt.Errorf("%v has no thread %d; it has %s%s", t, id, strings.Join(names, ", "), more)
}

// unread returns the reason why no thread of the target could be read, or "" if one was.
func (v *View) unread() string {
	why := ""
	for _, t := range v.target.Threads() {
		if t.Registers != nil {
			return ""
		}
		why = t.Missing
	}
	return why
}

// Caller returns the frame that called f, or nil.
func (v *View) Caller(t *Thread, f *Frame) *Frame {
	for _, other := range t.Frames {
		if other.Index == f.Index+1 {
			return other
		}
	}
	return nil
}

// Address returns the frame's program counter.
func (f *Frame) Address() machine.Addr { return f.physical.PC }

// ReturnValue returns the bytes of the integer or pointer of up to 64 bits that a function has just returned, in rax (System V ABI, AMD64 supplement,
// 3.2.3).
func ReturnValue(regs *machine.Registers) ([]byte, error) { return regs.Bytes(0) }
