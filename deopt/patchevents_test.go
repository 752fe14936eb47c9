package deopt_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// ways lists the ways to compile and run patches.ll: ahead of time, in two code models, and by two JITs.
var ways = []string{"aot", "aot-large", "mcjit", "orc"}

// patchTally counts the events of one kind.
type patchTally struct {
	events, right, values, missing int
	unmatched                      map[string]int // counts by reason
}

// patchCampaign is a program that the test patches at random, with the results of the test.
type patchCampaign struct {
	*patchTarget
	t       *testing.T
	random  *rand.Rand
	tallies map[string]*patchTally
	events  int
	wrong   []string
	lost    []string // frames that called through a patched site and have no record
}

// TestPatchEvents overwrites sites at random while 16 threads run through them, makes threads wait in the called code, and compares their frames
// with the program's log. A frame that called through a patched site must have the site's record, with the logged values. No other frame may have
// a record.
func TestPatchEvents(t *testing.T) {
	livetest.Slow(t)
	events := livetest.Times(5, 850) // number for each way and version
	tallies := map[string]*patchTally{}
	total := 0
	for _, version := range []int{14, 19, 22} {
		for n, how := range ways {
			t.Run(fmt.Sprintf("llvm-%d %s", version, how), func(t *testing.T) {
				c := &patchCampaign{startPatches(t, version, how, 16), t, rand.New(rand.NewPCG(uint64(version), uint64(n))), tallies, 0, nil, nil}
				for c.events < events {
					c.round()
				}
				last := c.Do(t, "quit")
				require.Regexp(t, `^runs \d+ calls \d+ wrong 0$`, last[0], "the program itself")
				require.Empty(t, c.wrong, "%s", strings.Join(c.wrong, "\n"))
				require.Empty(t, c.lost, "%s", strings.Join(c.lost, "\n"))
				total += c.events
			})
		}
	}
	t.Logf("%d events\n%s", total, tallyTable(tallies))
}

// round patches sites, waits until threads reach them, and checks the frames. Then it patches the places of waiting threads, checks the frames
// again, and resumes all threads.
func (c *patchCampaign) round() {
	c.restore(c.t, slices.DeleteFunc(c.patchedSites(), func(*patchSite) bool { return c.random.IntN(2) == 0 })...)
	places := map[*patchSite]overwrite{}
	for range 4 + c.random.IntN(8) {
		s := c.sites[c.random.IntN(len(c.sites))]
		if _, already := c.patched[s]; already {
			continue
		}
		if at, ok := s.anyPlace(c.t, c.random); ok {
			places[s] = at
		}
	}
	c.Do(c.t, fmt.Sprint("protect ", []int{5, 7}[c.random.IntN(2)]))
	c.patch(c.t, places)
	c.order()
	landings := c.wait(c.t)
	for _, l := range landings {
		if !l.ordinary {
			c.events++
		}
	}
	c.inspect(landings, func(*landing) recordMode { return hasOne })
	switch c.random.IntN(4) {
	case 0, 1:
		c.inspect(landings, c.underfoot(landings))
	case 2:
		c.meanwhile(landings)
	}
	c.Do(c.t, "release")
}

// order tells most threads at which site to wait. The others keep running.
func (c *patchCampaign) order() {
	patched := c.patchedSites()
	var ordinary []*patchSite
	for _, s := range c.sites {
		_, is := c.patched[s]
		// The ordinary call of a function may be unreachable while a site is patched: it follows the patched shadow, or is overwritten.
		if s.ordinary && (!is || s.function != "call_in" && s.function != "call_fits" && s.function != "target") {
			ordinary = append(ordinary, s)
		}
	}
	var orders []string
	for n := range 16 {
		switch k := c.random.IntN(8); {
		case k == 0:
		case k < 3:
			orders = append(orders, fmt.Sprintf("land %d %d o", n, ordinary[c.random.IntN(len(ordinary))].number))
		default:
			orders = append(orders, fmt.Sprintf("land %d %d p", n, patched[c.random.IntN(len(patched))].number))
		}
	}
	c.Do(c.t, orders...)
}

// underfoot changes code while threads wait in functions that the code has called, and returns a function that says whether the frame of a thread
// must have a record now.
func (c *patchCampaign) underfoot(landings []*landing) func(*landing) recordMode {
	taken := map[*patchSite]bool{}
	for _, s := range c.patchedSites() {
		if c.random.IntN(3) == 0 {
			taken[s] = true
		}
	}
	var sites []*patchSite
	for _, s := range c.sites {
		if taken[s] {
			sites = append(sites, s)
		}
	}
	c.restore(c.t, sites...)
	places := map[*patchSite]overwrite{}
	for _, s := range c.sites {
		at, ok := s.anyPlace(c.t, c.random)
		if _, is := c.patched[s]; is || taken[s] || !ok || c.random.IntN(2) == 0 {
			continue
		}
		// Do not patch a place where a waiting thread would return into the middle of an instruction. Do not write a call that ends where LLVM's
		// own call ends: the return address does not distinguish the two.
		from, to := s.start, s.end()
		if s.kind == "stackmap" {
			to = from + machine.Addr(at.offset+patchKinds[at.kind])
		}
		if !slices.ContainsFunc(landings, func(l *landing) bool {
			return l.ordinary && l.ret > from && (l.ret < to || l.ret == to && to == s.end())
		}) {
			places[s] = at
		}
	}
	if len(places) > 0 {
		c.patch(c.t, places)
	}
	return func(l *landing) recordMode {
		if !l.ordinary && taken[c.siteOf(l)] {
			return mayHave
		}
		return hasOne
	}
}

// meanwhile checks the frames while the program patches and restores sites without waiting threads.
func (c *patchCampaign) meanwhile(landings []*landing) {
	var commands []string
	for _, s := range c.sites {
		_, is := c.patched[s]
		at, ok := s.anyPlace(c.t, c.random)
		if is || !ok || slices.ContainsFunc(landings, func(l *landing) bool { return l.function == s.function }) {
			continue
		}
		patch, restore := fmt.Sprintf("patch %d %s %s %d", s.number, at.kind, at.fill, at.offset), fmt.Sprint("restore ", s.number)
		commands = append(commands, patch, restore, patch, restore)
		c.patched[s], c.ever[s] = at, true
		defer delete(c.patched, s)
	}
	c.random.Shuffle(len(commands)/4, func(i, j int) {
		for n := range 4 {
			commands[i*4+n], commands[j*4+n] = commands[j*4+n], commands[i*4+n]
		}
	})
	if len(commands) == 0 {
		return
	}
	finish := c.Begin(c.t, commands...)
	for range 3 {
		c.inspect(landings, func(*landing) recordMode { return hasOne })
	}
	finish()
}

func (c *patchCampaign) siteOf(l *landing) *patchSite {
	n := slices.IndexFunc(c.sites, func(s *patchSite) bool { return s.record == l.record })
	require.GreaterOrEqual(c.t, n, 0)
	return c.sites[n]
}

// inspect captures the process and compares the frames of the waiting threads with the log. A frame of a running thread may have a record only if its
// current pc is at that record.
func (c *patchCampaign) inspect(landings []*landing, recorded func(*landing) recordMode) {
	hold, o := c.random.IntN(4) == 0, c.known
	if c.random.IntN(8) == 0 {
		o = deopt.Options{}
	}
	v := c.look(c.t, hold, o)
	waits := map[int]bool{}
	for _, l := range landings {
		waits[l.tid] = true
		is := recorded(l)
		got := judge(v, l, is, len(o.Modules) > 0)
		name := strings.Join([]string{l.site, l.kind, l.fill}, "\t")
		switch {
		case l.ordinary:
			name = l.site + "\tLLVM's own\t"
		case is == mayHave:
			name = l.site + "\ttaken back\t"
		}
		if len(o.Modules) == 0 {
			name += "\tno IR"
		} else {
			name += "\t"
		}
		tally := c.tallies[name]
		if tally == nil {
			tally = &patchTally{unmatched: map[string]int{}}
			c.tallies[name] = tally
		}
		tally.events++
		tally.values += got.values
		tally.missing += got.missing
		switch {
		case got.wrong != "":
			c.wrong = append(c.wrong, fmt.Sprintf("%+v, hold %v, IR %v: %s", *l, hold, len(o.Modules) > 0, got.wrong))
		case got.unmatched != "":
			tally.unmatched[got.unmatched]++
			if len(o.Modules) > 0 && !l.ordinary && is == hasOne && !strings.Contains(got.unmatched, ownCallToo) {
				c.lost = append(c.lost, fmt.Sprintf("%+v, hold %v: %s", *l, hold, got.unmatched))
			}
		default:
			tally.right++
		}
	}
	for _, thread := range v.Threads {
		for _, f := range thread.Frames {
			if f.Record != nil && !waits[thread.ID] && !c.lawful(f, len(o.Modules) > 0) {
				c.wrong = append(c.wrong, fmt.Sprintf("%s at %v has record %+v, IR %v: %s", f.Function, f.PC, *f.Record, len(o.Modules) > 0, stackText(thread)))
			}
		}
	}
}

// lawful reports whether the frame of a running thread may have its record. Without IR the kind of its site is unknown.
func (c *patchCampaign) lawful(f *deopt.Frame, ir bool) bool {
	is := func(kind string) bool { return f.Record.Site == kind || f.Record.Site == deopt.UnknownSite && !ir }
	about := f.Record.Moment == frame.Before && !f.Physical().Return // the thread is at the call instruction of its site
	if r := inOrdinary[f.Function]; r.ID == f.Record.ID && is(r.Site) && (r.Moment == f.Record.Moment || about || !ir) {
		return true
	}
	for _, s := range c.sites {
		if s.function != f.Function || uint64(s.record) != f.Record.ID || !is(s.kind) {
			continue
		}
		if _, is := c.patched[s]; is {
			return true
		}
		at := s.start
		if s.kind == "statepoint" {
			at = s.end()
			// A thread may be suspended in a call that was written here and has been removed: it still returns to the record's address.
			if c.ever[s] && f.Physical().Return && frame.HexOf(at) == f.PC {
				return true
			}
		}
		return frame.HexOf(at) == f.PC && !f.Physical().Return
	}
	return false
}

// tallyTable formats the results of all events.
func tallyTable(tallies map[string]*patchTally) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "site\tpatch\tfill\t\tevents\tright\tvalues\tmissing\tno record, and why")
	for _, name := range sortedKeys(tallies) {
		t := tallies[name]
		var why []string
		for _, reason := range sortedKeys(t.unmatched) {
			why = append(why, fmt.Sprintf("%d × %s", t.unmatched[reason], reason))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", name, t.events, t.right, t.values, t.missing, strings.Join(why, "; "))
	}
	w.Flush()
	return b.String()
}
