package patches_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
)

// An entry of the log describes an active function.
type entry struct {
	number int
	values []byte // of the site's operands, eight bytes for each
}

// hosts names the functions of the host that log themselves, by their numbers in the log.
var hosts = map[int]string{1000: "event", 1001: "handler", 1002: "onsignal", 1003: "native"}

// silent lists the functions of the host that write no log entry; each is active at most once.
var silent = map[string]bool{"stop": true, "run": true, "main": true, "_start": true}

func (e entry) name() string {
	if name := hosts[e.number]; name != "" {
		return name
	}
	return fmt.Sprintf("f%d", e.number)
}

// A tally counts the results for the frames of moments.
type tally struct {
	Moments, Expected, Found int // frames at their site, and those that are shown with the right record
	Values                   int // values that are shown as ok
	Guesses                  int // frames that are marked as guesses
	Marked                   int // frames at their site that are shown with the right record, but marked as guesses
	Wrong                    int
	Missing                  map[string]int // frames that are not found, by the reason
	Unavailable              map[string]int // values, by the reason
	Forms                    map[string][2]int
	Stubs                    map[string][2]int
}

func newTally() *tally {
	return &tally{Missing: map[string]int{}, Unavailable: map[string]int{}, Forms: map[string][2]int{}, Stubs: map[string][2]int{}}
}

// add adds another tally.
func (y *tally) add(o *tally) {
	y.Moments += o.Moments
	y.Expected += o.Expected
	y.Found += o.Found
	y.Values += o.Values
	y.Guesses += o.Guesses
	y.Marked += o.Marked
	y.Wrong += o.Wrong
	for _, m := range []struct{ to, from map[string]int }{{y.Missing, o.Missing}, {y.Unavailable, o.Unavailable}} {
		for k, n := range m.from {
			m.to[k] += n
		}
	}
	for k, n := range o.Forms {
		y.Forms[k] = [2]int{y.Forms[k][0] + n[0], y.Forms[k][1] + n[1]}
	}
}

// share returns the percentage of frames that were found.
func (y *tally) share() float64 { return 100 * float64(y.Found) / float64(max(1, y.Expected)) }

// marked returns the percentage of frames that were found or are shown with their record and marked.
func (y *tally) marked() float64 {
	return 100 * float64(y.Found+y.Marked) / float64(max(1, y.Expected))
}

// String returns the table of the campaign.
func (y *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d moments, %d frames at sites, %d found with their record (%.1f %%), %d values ok, %d wrong, %d frames marked as guesses, %d of them at their site (%.1f %% found or marked)\n", y.Moments, y.Expected, y.Found, y.share(), y.Values, y.Wrong, y.Guesses, y.Marked, y.marked())
	section := func(title string, of map[string]int) {
		fmt.Fprintf(&b, "%s:\n", title)
		for _, k := range slices.SortedFunc(maps.Keys(of), func(x, y string) int { return of[y] - of[x] }) {
			fmt.Fprintf(&b, "%7d %s\n", of[k], k)
		}
	}
	section("frames not found", y.Missing)
	section("values unavailable", y.Unavailable)
	b.WriteString("found by form of patch:\n")
	for _, k := range slices.Sorted(maps.Keys(y.Forms)) {
		fmt.Fprintf(&b, "%7d of %d %s\n", y.Forms[k][0], y.Forms[k][1], k)
	}
	return b.String()
}

// A comparer compares the frames at the moments of one program with the program's log.
type comparer struct {
	*built
	*tally
	failed []string // the first few failures
	alone  int      // number of the only moment of a live program to compare; -1: compare all
}

// one compares the frames of one moment.
type one struct {
	*comparer
	number int
	moment *moment
	thread deopt.Thread
	log    []entry
	wrongs []string
	shows  bool // the reason that SHOW selects was printed
}

func (c *comparer) moment(number int, m *moment, thread deopt.Thread, log []entry) {
	o := &one{c, number, m, thread, log, nil, false}
	c.Moments++
	o.compare()
	if len(o.wrongs) == 0 {
		return
	}
	c.Wrong++
	if len(c.failed) < 8 {
		c.failed = append(c.failed, fmt.Sprintf("%s MOMENT=%d: %s\n\t%s\nlog:   %s\nshown: %s\nend: %+v", c.program, number, m, strings.Join(o.wrongs, "\n\t"), o.active(), o.shown(), thread.End))
	}
}

func (o *one) wrong(format string, args ...any) {
	o.wrongs = append(o.wrongs, fmt.Sprintf(format, args...))
}

// active formats the functions in the log.
func (o *one) active() string {
	var names []string
	for _, e := range o.log {
		names = append(names, e.name())
	}
	return strings.Join(names, " < ")
}

// shown formats the frames.
func (o *one) shown() string {
	var names []string
	for _, f := range o.thread.Frames {
		name := fmt.Sprintf("%s %s (%s", f.Function, f.PC, f.Rule)
		if f.Record != nil {
			name += fmt.Sprintf(", record %d", f.Record.ID)
		}
		if f.Guess() != "" || f.Frame.Guess != "" {
			name += ", guess"
		}
		names = append(names, name+")")
	}
	return strings.Join(names, " < ")
}

// compare assigns each frame to an entry of the log. The shown frames that are not guesses must be all active functions up to the outermost of these
// frames, in order.
func (o *one) compare() {
	at, left := 0, maps.Clone(silent)
	stubs := map[string]int{}
	for s, n := range o.moment.stubs {
		stubs[s.name()] += n
		stubs[strings.Replace(s.name(), "stub", "thunk", 1)] += n
		if slices.Contains(s.traits, "jumps to common code") {
			stubs["stub_common"] += n
		}
	}
	shown := map[int]*deopt.Frame{} // by the index of the entry
	for _, f := range o.thread.Frames {
		if f.Guess() != "" || f.Frame.Guess != "" {
			o.Guesses++
			continue
		}
		if _, ours := o.symbols[f.Function]; !ours || f.Function == "" {
			continue // a function of the C library or a frame of the kernel
		}
		if _, known := silent[f.Function]; known {
			if !left[f.Function] {
				o.wrong("frame %d: %s is shown again", f.Index, f.Function)
			}
			left[f.Function] = false
			continue
		}
		if strings.HasPrefix(f.Function, "stub") || strings.HasPrefix(f.Function, "thunk") {
			if stubs[f.Function]--; stubs[f.Function] < 0 {
				o.wrong("frame %d: %s is not active", f.Index, f.Function)
			}
			continue
		}
		next := slices.IndexFunc(o.log[at:], func(e entry) bool { return e.name() == f.Function })
		if next < 0 {
			if !libc[f.Function] {
				o.wrong("frame %d: %s is not active there", f.Index, f.Function)
			}
			continue
		}
		missing := o.log[at : at+next]
		if f.Record != nil && len(missing) == 1 && o.moment.forms[o.log[at+next].number] == "jump to handler" {
			missing = nil // handler was reached by a jump, so its frame has the function that jumped
		}
		for _, e := range missing {
			o.wrong("frame %d: %s is shown as the caller of the one before, which %s called", f.Index, f.Function, e.name())
		}
		at += next
		shown[at] = f
		at++
	}
	if o.thread.End.Complete && left["main"] && o.firstGuess() == "" {
		o.wrong("the stack ends as if it were whole: %s", o.thread.End.Reason)
	}
	for n, e := range o.log {
		if e.number < len(o.funcs) {
			o.function(o.funcs[e.number], e, shown[n])
		}
	}
}

// libc lists the functions of the C library that may be active: they are linked into static programs.
var libc = map[string]bool{"raise": true, "abort": true, "__libc_start_main": true, "__libc_start_call_main": true, "__libc_start_main_impl": true, "__pthread_kill_implementation.constprop.0": true, "gsignal": true, "__kernel_rt_sigreturn": true}

// function compares the frame of a function with its entry in the log. shown is nil if the function has no frame.
func (o *one) function(f *function, e entry, shown *deopt.Frame) {
	if f.kind == siteless {
		if shown != nil && shown.Record != nil {
			o.wrong("%s: it has no site, and record %d", f.name(), shown.Record.ID)
		}
		return
	}
	if shown != nil && shown.Record != nil {
		if uint64(shown.Record.ID) != f.id {
			o.wrong("%s: it stands at record %d, and is shown at %d", f.name(), f.id, shown.Record.ID)
			return
		}
		o.values(f, e, shown)
	}
	if o.moment.beside[f.number] {
		return // the frame may be missing
	}
	kind := o.moment.forms[f.number]
	switch {
	case o.moment.lost[f.number]:
		kind = "overwritten return address"
	case kind == "":
		kind = "LLVM's own call"
	}
	o.Expected++
	counts := o.Forms[kind]
	counts[1]++
	if shown != nil && shown.Record != nil {
		o.Found++
		counts[0]++
	} else {
		if o.guessed(f) {
			o.Marked++
		}
		why := "no frame: " + plain(o.thread.End.Reason)
		if guess := o.firstGuess(); guess != "" {
			why = "beyond a guess: " + plain(guess)
		}
		if shown != nil {
			why = "no record: " + kind
			if len(shown.Notes) > 0 {
				why = "no record: " + plain(shown.Notes[len(shown.Notes)-1])
			}
		}
		o.Missing[why]++
		if show != "" && strings.Contains(why+kind, show) && !o.shows {
			o.shows = true
			o.failed = append(o.failed, fmt.Sprintf("%s MOMENT=%d: %s\n\tmissing %s: %s\nlog:   %s\nshown: %s", o.program, o.number, o.moment, f.name(), why, o.active(), o.shown()))
		}
	}
	o.Forms[kind] = counts
}

// guessed reports whether a frame that is marked as a guess is at the site of a function.
func (o *one) guessed(of *function) bool {
	return slices.ContainsFunc(o.thread.Frames, func(f *deopt.Frame) bool {
		return (f.Guess() != "" || f.Frame.Guess != "") && f.Record != nil && uint64(f.Record.ID) == of.id && f.Function == of.name()
	})
}

// firstGuess returns the reason of the innermost guess, or "" if no frame is a guess.
func (o *one) firstGuess() string {
	for _, f := range o.thread.Frames {
		if f.Guess() != "" {
			return fmt.Sprintf("%s: %s", f.Rule, f.Guess())
		}
		if f.Frame.Guess != "" {
			return fmt.Sprintf("%s: %s", f.Rule, f.Frame.Guess)
		}
	}
	return ""
}

// plain removes the numbers, which vary between frames, from a reason.
func plain(reason string) string { return numbers.ReplaceAllString(reason, "N") }

var numbers = regexp.MustCompile(`0x[0-9a-f]+|\b(f|v|r|x|stub|%v|%t)?\d+\b|\b(r|e)?([abcd]x|[sd]i|bp|sp)\b`)

// values compares the values in a frame's slots with those that the function logged.
func (o *one) values(f *function, e entry, shown *deopt.Frame) {
	for n, operand := range f.live {
		at := slices.IndexFunc(shown.Slots, func(s frame.Slot) bool { return s.Index == n })
		if at < 0 {
			o.wrong("%s: operand %d is not shown: %q", f.name(), n, shown.Notes)
			continue
		}
		s := &shown.Slots[at]
		if s.Status != frame.OK {
			o.Unavailable[plain(s.Reason)]++
			continue
		}
		want := e.values[8*n : 8*n+operand.bytes]
		got := s.Bytes
		if s.Type.IsZero() && len(got) > len(want) {
			got = got[:len(want)]
		}
		if string(got) != string(want) {
			o.wrong("%s: %s is shown as %x and was %x; it lies at %+v; rule %s", f.name(), operand.text, got, want, *s.Location, shown.Rule)
			continue
		}
		o.Values++
	}
}
