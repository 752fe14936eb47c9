package html

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
)

// Stack is the machine stack of the thread, from its innermost frame to the explained one. Low addresses come first.
type Stack struct {
	Bands []*Band
	Scale *Scale
	// Elsewhere lists words outside of the stack from which values were read.
	Elsewhere []*Word
	More      int    // number of words that are not shown, besides those of gaps
	Why       string // the reason why the rest of the stack is not shown

	anchor map[int]bool // the values whose anchor is in a word
}

// Band is the words of one frame.
type Band struct {
	Index     int
	Name      string
	Low, High machine.Addr // High is its CFA
	Explained bool
	Caller    bool // the caller of the explained frame; shown up to the last value in it
	Words     []*Word
}

// Size returns the size of the frame in bytes.
func (b *Band) Size() uint64 { return uint64(b.High - b.Low) }

// Word is a pointer-sized word, or a gap between words.
type Word struct {
	Gap   uint64 // number of words that are omitted here; for a gap the other fields are empty
	Addr  machine.Addr
	By    []string // its address relative to registers: rsp+16, CFA-24
	Bytes []Piece  // in the order of memory
	Value string   // as one number; "" if it is unreadable
	Notes []string
}

// Piece is a part of a text that belongs to values. It shows the values of Keys. For the values of Via it is the register of their address, or the
// memory to which they point.
type Piece struct {
	Text      string
	Keys, Via string   // several are separated by spaces
	Anchors   []string // ids of places that links lead to
}

// span is memory from which a value was read. With via it is memory to which the value points.
type span struct {
	machine.Range
	k   int
	via bool
}

// A frame with at most this number of words is shown whole: the explained frame, or another frame.
const (
	wholeExplained = 256
	wholeOther     = 12
)

// These are the numbers of frames of a deep recursion that are shown at each end.
const (
	innerBands = 8
	outerBands = 24
)

// maxArguments bounds the distance in bytes from the CFA of a frame to its values in stack arguments, which are shown with the stack.
const maxArguments = 4096

// redZone is the number of bytes below the stack pointer in which a function may keep values (System V ABI, AMD64 supplement, 3.2.2).
const redZone = 128

// stacker draws a stack.
type stacker struct {
	at    *Place
	arch  *machine.Arch
	spans []span
	saved map[machine.Addr][]string
	left  int // number of words that may still be shown
	out   *Stack
}

func (at *Place) stack(l limits) *Stack {
	f := at.frame
	s := &stacker{at: at, arch: f.View().Target().Arch(), saved: map[machine.Addr][]string{}, left: l.words, out: &Stack{anchor: map[int]bool{}}}
	s.spans = at.spans()
	frames := s.frames()
	if len(frames) == 0 {
		return s.out
	}
	low, err := frames[0].Physical().Registers.Addr(s.arch.SP)
	if err != nil {
		s.out.Why = "the start of the stack is unknown: " + err.Error()
		s.elsewhere(machine.Range{})
		return s.out
	}
	low = s.lowest(low)
	whole := machine.Range{Start: low, End: low}
	for n, g := range frames {
		p := g.Physical()
		if p.NoCFA != "" || p.CFA <= low {
			s.out.Why = fmt.Sprintf("the end of frame #%d is unknown", g.Index)
			if p.NoCFA != "" {
				s.out.Why += ": " + p.NoCFA
			}
			break
		}
		if n >= innerBands && n < len(frames)-outerBands {
			if n == innerBands {
				s.out.Bands = append(s.out.Bands, &Band{Index: g.Index, Low: low})
			}
			b := s.out.Bands[len(s.out.Bands)-1]
			b.High, b.Name = p.CFA, fmt.Sprintf("to #%d, not shown", g.Index)
			b.Words = []*Word{{Gap: b.Size() / uint64(s.arch.Pointer)}}
			low, whole.End = p.CFA, p.CFA
			continue
		}
		s.save(g)
		b := &Band{Index: g.Index, Name: frameName(g), Low: low, High: p.CFA, Explained: g == f}
		b.Low = b.Low &^ machine.Addr(s.arch.Pointer-1)
		s.words(b, n == 0)
		s.out.Bands = append(s.out.Bands, b)
		low, whole.End = p.CFA, p.CFA
	}
	if s.out.Why == "" {
		whole.End = s.caller(whole.End)
	}
	s.elsewhere(whole)
	s.out.Scale = s.scale()
	return s.out
}

// frames returns the frames from the innermost to the explained one.
func (s *stacker) frames() []*deopt.Frame {
	v := s.at.frame.View()
	for i := range v.Threads {
		if n := slices.Index(v.Threads[i].Frames, s.at.frame); n >= 0 {
			return v.Threads[i].Frames[:n+1]
		}
	}
	return nil
}

func frameName(f *deopt.Frame) string {
	if f.Function == "" || f.Offset == nil {
		return f.Address().String()
	}
	return fmt.Sprintf("%s+%#x", names.Short(f.Function), *f.Offset)
}

// spans returns all memory from which the record's values were read, or to which they point.
func (at *Place) spans() (list []span) {
	if at.frame.Match() == nil {
		return nil
	}
	regs := at.frame.Reader().Registers
	for k := range at.Values {
		l := at.Values[k].Location
		if l == nil || l.DWARF == nil || l.Kind == stackmap.Register.String() {
			continue
		}
		base, err := regs.Addr(machine.DWARFReg(*l.DWARF))
		if err != nil {
			continue
		}
		start := base + machine.Addr(int64(l.Offset))
		if size := machine.Addr(max(l.Size, 1)); start+size > start {
			list = append(list, span{machine.Range{Start: start, End: start + size}, k, l.Kind == stackmap.Direct.String()})
		}
	}
	return list
}

// lowest returns the lowest shown address of the stack: the stack pointer, or the start of a value below it.
func (s *stacker) lowest(sp machine.Addr) machine.Addr {
	low := sp
	for _, x := range s.spans {
		if x.Start < low && x.Start+redZone >= sp {
			low = x.Start
		}
	}
	return low
}

// save records the words in which a frame has saved registers of its caller.
func (s *stacker) save(g *deopt.Frame) {
	p := g.Physical()
	row := p.Left().Row
	if row == nil {
		return
	}
	for reg, rule := range row.Rules() {
		if rule.Kind != cfi.RuleOffset {
			continue
		}
		at := p.CFA + machine.Addr(rule.Offset)
		note := fmt.Sprintf("saved %s of #%d", s.arch.RegisterName(reg), g.Index+1)
		if reg == row.ReturnAddress {
			note = fmt.Sprintf("returns into #%d", g.Index+1)
		}
		s.saved[at] = append(s.saved[at], note)
	}
}

// words selects the words of a band that are shown.
func (s *stacker) words(b *Band, innermost bool) {
	size := machine.Addr(s.arch.Pointer)
	count := (b.High - b.Low + size - 1) / size
	whole := machine.Addr(wholeOther)
	if b.Explained {
		whole = wholeExplained
	}
	var shown []machine.Addr
	add := func(from, to machine.Addr) { // from and to are numbers of words
		for n := from; n < min(to, count) && len(shown) <= s.left; n++ {
			shown = append(shown, n)
		}
	}
	if count <= whole {
		add(0, count)
	} else {
		add(0, 2)
		add(count-2, count)
		for _, x := range s.spans {
			if x.End <= b.Low || x.Start >= b.High {
				continue
			}
			first := (max(x.Start, b.Low) - b.Low) / size
			add(first-min(first, 1), (min(x.End, b.High)-1-b.Low)/size+2)
		}
		for at := range s.saved {
			if at >= b.Low && at < b.High {
				add((at-b.Low)/size, (at-b.Low)/size+1)
			}
		}
	}
	slices.Sort(shown)
	shown = slices.Compact(shown)
	if len(shown) > s.left {
		s.out.More += len(shown) - s.left
		shown = shown[:s.left]
	}
	s.left -= len(shown)
	sp, _ := s.at.frame.Physical().Registers.Addr(s.arch.SP)
	next := machine.Addr(0)
	for _, n := range shown {
		if n > next {
			b.Words = append(b.Words, &Word{Gap: uint64(n - next)})
		}
		w := s.word(b.Low + n*size)
		if b.Explained {
			w.By = append(w.By, fmt.Sprintf("%s%+d", s.arch.RegisterName(s.arch.SP), int64(w.Addr-sp)), fmt.Sprintf("CFA%+d", int64(w.Addr-b.High)))
		}
		if b.Caller {
			w.By = append(w.By, fmt.Sprintf("CFA%+d", int64(w.Addr-b.Low)))
		}
		b.Words, next = append(b.Words, w), n+1
	}
	if next < count {
		b.Words = append(b.Words, &Word{Gap: uint64(count - next)})
	}
}

// word reads one word and describes its role.
func (s *stacker) word(at machine.Addr) *Word {
	w := &Word{Addr: at, Notes: s.saved[at]}
	raw := make([]byte, s.arch.Pointer)
	if err := s.at.memory.ReadMemory(raw, at); err != nil {
		w.Notes = append(w.Notes, "cannot be read: "+err.Error())
		return w
	}
	w.Value = fmt.Sprintf("%#x", s.arch.Uint(raw))
	for n := 0; n < len(raw); {
		end := n + 1
		for end < len(raw) && s.sameValues(at+machine.Addr(n), at+machine.Addr(end)) {
			end++
		}
		p := Piece{Text: fmt.Sprintf("% x", raw[n:end])}
		s.mark(&p, at+machine.Addr(n))
		w.Bytes, n = append(w.Bytes, p), end
	}
	for _, x := range s.spans {
		if x.Start >= at && x.Start < at+machine.Addr(len(raw)) {
			note := s.at.called(x.k)
			if x.via {
				note += " is this address"
			}
			if !slices.Contains(w.Notes, note) {
				w.Notes = append(w.Notes, note)
			}
		}
	}
	return w
}

// sameValues reports whether two bytes belong to the same values.
func (s *stacker) sameValues(a, b machine.Addr) bool {
	return !slices.ContainsFunc(s.spans, func(x span) bool { return x.Contains(a) != x.Contains(b) })
}

// mark sets the keys of a piece: those of the values to which the byte at an address belongs.
func (s *stacker) mark(p *Piece, at machine.Addr) {
	var keys, via []string
	for _, x := range s.spans {
		if !x.Contains(at) {
			continue
		}
		if x.via {
			via = append(via, key(x.k))
		} else {
			keys = append(keys, key(x.k))
		}
		if !s.out.anchor[x.k] {
			s.out.anchor[x.k], p.Anchors = true, append(p.Anchors, "stack-"+key(x.k))
		}
	}
	p.Keys, p.Via = strings.Join(keys, " "), strings.Join(via, " ")
}

// caller adds the part of the caller's frame that contains values, such as stack arguments, and returns its end.
func (s *stacker) caller(cfa machine.Addr) machine.Addr {
	size := machine.Addr(s.arch.Pointer)
	high := cfa
	for _, x := range s.spans {
		if x.Start >= cfa && x.Start < cfa+maxArguments {
			high = max(high, (x.End+size-1)&^(size-1))
		}
	}
	if high == cfa {
		return cfa
	}
	b := &Band{Index: s.at.frame.Index + 1, Name: "its caller", Low: cfa, High: high, Caller: true}
	s.words(b, false)
	s.out.Bands = append(s.out.Bands, b)
	return high
}

// elsewhere adds the words outside of the shown stack.
func (s *stacker) elsewhere(shown machine.Range) {
	size := machine.Addr(s.arch.Pointer)
	seen := map[machine.Addr]bool{}
	for _, x := range s.spans {
		if shown.Contains(x.Start) {
			continue
		}
		for at := x.Start &^ (size - 1); at < x.End && !seen[at]; at += size {
			if s.left == 0 {
				s.out.More++
				break
			}
			s.left--
			seen[at] = true
			s.out.Elsewhere = append(s.out.Elsewhere, s.word(at))
		}
	}
	slices.SortFunc(s.out.Elsewhere, func(a, b *Word) int {
		if a.Addr < b.Addr {
			return -1
		}
		return 1
	})
}

// shown returns the values whose anchor is in a word of the stack.
func (s *Stack) shown() map[int]bool {
	if s == nil {
		return nil
	}
	return s.anchor
}

// ID returns the id of a band in the page.
func (b *Band) ID() string { return fmt.Sprintf("frame-%d", b.Index) }

// Title returns the number of the band's frame, such as #0.
func (b *Band) Title() string { return fmt.Sprintf("#%d", b.Index) }

// Says describes a band in one line.
func (b *Band) Says() string {
	return fmt.Sprintf("#%d %s, %s", b.Index, b.Name, count(b.Size(), "byte"))
}
