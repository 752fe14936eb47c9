package deopt_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// patchKinds are the kinds of patch of patches.c and their lengths.
var patchKinds = map[string]int{"rel32": 5, "mem": 6, "reg": 13, "rax": 12, "stub": 5, "push": 5, "indirect": 6}

// viaStub reports whether a kind of patch is a jump to a stub that calls.
func viaStub(kind string) bool { return kind == "stub" || kind == "push" || kind == "indirect" }

// patchSite is a site of patches.ll, as the program lists it.
type patchSite struct {
	number, record int
	function, kind string
	start          machine.Addr
	code           []byte // the patchable code, as compiled
	ordinary       bool   // the function calls @ordinary
}

func (s *patchSite) end() machine.Addr { return s.start + machine.Addr(len(s.code)) }

// overwrite is a patch of a site.
type overwrite struct {
	kind   string
	fill   string // content before the patch: n, nops, or k, the original code
	offset int
}

// landing is the program's log entry of a waiting thread.
type landing struct {
	thread, tid int
	ordinary    bool // the thread waits in a call that LLVM emitted
	function    string
	record      int
	site        string // stackmap, patchpoint, statepoint
	overwrite
	ret    machine.Addr // return address of the called function
	values map[string]string
}

// patchTarget is the program under test, and the patches in it.
type patchTarget struct {
	*livetest.Patches
	known   deopt.Options
	sites   []*patchSite
	patched map[*patchSite]overwrite
	ever    map[*patchSite]bool // patched now or earlier
}

func startPatches(t *testing.T, version int, how string, threads int) *patchTarget {
	t.Helper()
	p := &patchTarget{Patches: livetest.StartPatches(t, version, how, threads), patched: map[*patchSite]overwrite{}, ever: map[*patchSite]bool{}}
	p.known = frametest.Known(t, p.Process)
	for _, line := range p.Do(t, "sites") {
		var kind, length, ordinary int
		var code string
		s := &patchSite{}
		_, err := fmt.Sscanf(line+" -", "site %d %s %d %d %v %d %d %s", &s.number, &s.function, &s.record, &kind, (*uint64)(&s.start), &length, &ordinary, &code)
		require.NoError(t, err, line)
		if length > 0 {
			s.code, err = hex.DecodeString(code)
			require.NoError(t, err, line)
		}
		s.kind, s.ordinary = []string{"stackmap", "patchpoint", "statepoint"}[kind], ordinary == 1
		p.sites = append(p.sites, s)
	}
	return p
}

// patch overwrites sites.
func (p *patchTarget) patch(t *testing.T, places map[*patchSite]overwrite) {
	t.Helper()
	command := "patch"
	for _, s := range p.sites {
		if at, ok := places[s]; ok {
			command += fmt.Sprintf(" %d %s %s %d", s.number, at.kind, at.fill, at.offset)
			p.patched[s], p.ever[s] = at, true
		}
	}
	p.Do(t, command)
}

// restore removes patches.
func (p *patchTarget) restore(t *testing.T, sites ...*patchSite) {
	t.Helper()
	command := "restore"
	for _, s := range sites {
		command += fmt.Sprint(" ", s.number)
		delete(p.patched, s)
	}
	if len(sites) > 0 {
		p.Do(t, command)
	}
}

// patchedSites returns the patched sites in the order of the table.
func (p *patchTarget) patchedSites() (out []*patchSite) {
	for _, s := range p.sites {
		if _, ok := p.patched[s]; ok {
			out = append(out, s)
		}
	}
	return out
}

// wait waits for the threads that were ordered to reach their sites.
func (p *patchTarget) wait(t *testing.T) (out []*landing) {
	t.Helper()
	for _, line := range p.Do(t, "wait") {
		words := strings.Fields(line)
		require.Greater(t, len(words), 11, line)
		l := &landing{ordinary: words[3] == "o", function: words[4], site: words[6], overwrite: overwrite{kind: words[7], fill: words[8]}, values: map[string]string{}}
		for n, into := range map[int]*int{1: &l.thread, 2: &l.tid, 5: &l.record, 9: &l.offset} {
			var err error
			*into, err = strconv.Atoi(words[n])
			require.NoError(t, err, line)
		}
		ret, err := strconv.ParseUint(words[10], 0, 64)
		require.NoError(t, err, line)
		l.ret = machine.Addr(ret)
		for _, w := range words[11:] {
			name, value, _ := strings.Cut(w, "=")
			l.values[name] = value
		}
		out = append(out, l)
	}
	return out
}

// look stops the process and returns its frames. The process resumes afterwards.
func (p *patchTarget) look(t *testing.T, hold bool, o deopt.Options) *deopt.View {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{Hold: hold})
	require.NoError(t, err)
	defer target.Close()
	v, err := deopt.Frames(target, o)
	require.NoError(t, err)
	return v
}

// boundaries returns the offsets of the instructions of a site that are reached from its start.
func (s *patchSite) boundaries(t *testing.T) (offsets []int) {
	t.Helper()
	for n := 0; n < len(s.code); {
		offsets = append(offsets, n)
		in, err := x86asm.Decode(s.code[n:], 64)
		if err != nil || in.Op == x86asm.RET || in.Op == x86asm.JMP || in.Op == x86asm.CALL {
			break // err is set if the last instruction is longer than the rest of the site
		}
		n += in.Len
	}
	return offsets
}

// anyPlace returns a random place for a patch at a site, or false if no kind of patch fits.
func (s *patchSite) anyPlace(t *testing.T, random *rand.Rand) (at overwrite, ok bool) {
	t.Helper()
	kinds := slices.DeleteFunc(sortedKeys(patchKinds), func(k string) bool { return patchKinds[k] > len(s.code) })
	if len(kinds) == 0 {
		return overwrite{}, false
	}
	at = overwrite{kind: kinds[random.IntN(len(kinds))], fill: "n"}
	room := len(s.code) - patchKinds[at.kind]
	at.offset = random.IntN(room + 1)
	if random.IntN(3) == 0 {
		at.fill = "k"
		fit := slices.DeleteFunc(s.boundaries(t), func(n int) bool { return n > room })
		at.offset = fit[random.IntN(len(fit))]
	}
	return at, true
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// inOrdinary maps functions to the record of their call of @ordinary, by the conventions of LLVM's kinds of site.
var inOrdinary = map[string]frame.Record{
	// The record is at the return address. Some releases of LLVM move registers between the call and the stackmap.
	"call_before": {ID: 143, Site: "stackmap", Moment: frame.Before},
	"kept":        {ID: 140, Site: "stackmap", Moment: frame.Before},
	"target":      {ID: 260, Site: "patchpoint", Moment: frame.InCall},
	"g_call":      {ID: 300, Site: "statepoint", Moment: frame.InCall},
}

// verdict is the result for one waiting thread.
type verdict struct {
	wrong     string // wrong results; "" for none
	unmatched string // why a frame that called through a patched site has no record; "" if it has one
	missing   int    // number of unavailable values
	values    int
}

// recordMode says whether a frame must have a record.
type recordMode int

const (
	hasNone recordMode = iota
	mayHave            // the patch of its site was removed, so the frame need not be found
	hasOne
)

// judge compares the frames of a thread with the program's log of it. ir means that the view has the module.
func judge(v *deopt.View, l *landing, recorded recordMode, ir bool) (out verdict) {
	n := slices.IndexFunc(v.Threads, func(t deopt.Thread) bool { return t.ID == l.tid })
	if n < 0 {
		return verdict{wrong: "there is no such thread"}
	}
	want := frame.Record{ID: uint64(l.record), Site: l.site, Moment: frame.InCall}
	if l.site == "stackmap" {
		want.Moment = frame.Before
	}
	if l.ordinary {
		want, recorded = inOrdinary[l.function], hasNone
		switch {
		case want.Site == "stackmap":
			recorded = mayHave
		case want.ID != 0:
			recorded = hasOne
		}
	}
	var own *deopt.Frame
	var names []string
	thread := v.Threads[n]
	for _, f := range thread.Frames {
		names = append(names, f.Function)
		if f.Guess() != "" || recorded == mayHave && viaStub(l.kind) && f.Rule == "frame pointer" {
			// The jump to the stub was replaced by the function's own code, so the unwinder cannot know that the function reached the stub. The outer
			// frames are guesses from the rest of the stack.
			out.unmatched = "the stack is a guess behind the stub"
			return out
		}
		if f.Record != nil && f.Function != l.function {
			return verdict{wrong: fmt.Sprintf("%s has record %d: %s", f.Function, f.Record.ID, stackText(thread))}
		}
		if f.Function == l.function {
			if own != nil {
				return verdict{wrong: l.function + " is there twice"}
			}
			own = f
		}
	}
	stack := strings.Join(names, " < ")
	if !strings.HasSuffix(stack, "call_site < run < start_thread < __clone3") || !thread.End.Complete {
		out.unmatched = "the stack is lost: " + thread.End.Reason
		if own == nil || own.Record == nil {
			return out
		}
	}
	if own == nil {
		if recorded == hasOne {
			out.unmatched = "no frame of the function"
		}
		return out
	}
	if caller := v.Caller(&thread, own); caller != nil && caller.Function != "call_site" {
		out.wrong = l.function + " is called by " + caller.Function
		return out
	}
	switch got := own.Record; {
	case got == nil && recorded == hasOne:
		out.unmatched = strings.Join(own.Notes, "; ")
		if out.unmatched == "" {
			out.unmatched = "no record"
		}
		return out
	case got == nil:
		return out
	case recorded == hasNone:
		out.wrong = fmt.Sprintf("record %d matches where nothing was patched", got.ID)
		return out
	case got.ID != want.ID, (got.Site != want.Site || got.Moment != want.Moment) && (ir || got.Site != deopt.UnknownSite):
		out.wrong = fmt.Sprintf("%+v, not %+v", *got, want)
		return out
	case !ir: // without a module the values have no names
		return out
	}
	seen := 0
	for _, s := range own.Slots {
		value, ok := l.values[s.Name]
		if !ok {
			continue
		}
		seen++
		out.values++
		switch {
		case s.Status == frame.OK && s.Value != value:
			out.wrong = fmt.Sprintf("%s is %s in %v, not %s", s.Name, s.Value, s.Location, value)
		case s.Status == frame.OK:
		case s.Reason == "":
			out.wrong = s.Name + " is missing for no reason"
		default:
			out.missing++
		}
	}
	if seen != len(l.values) {
		out.wrong = fmt.Sprintf("%d of %d values are there", seen, len(l.values))
	}
	return out
}

// stackText returns a stack as one line.
func stackText(t deopt.Thread) string {
	var out []string
	for _, f := range t.Frames {
		out = append(out, fmt.Sprintf("#%d %v %s (%s) %q", f.Index, f.PC, f.Function, f.Rule, f.Notes))
	}
	return strings.Join(out, " < ")
}
