package verify

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// VMState is the comparison of an exit's VM frames with a run of the VM's interpreter from the start of a method. An earlier exit of the same
// activation described that start.
type VMState struct {
	Start  string `json:"start"`         // the start of the run: method and position
	Record uint64 `json:"record"`        // the record that described the start
	Steps  uint64 `json:"steps"`         // instructions from the start to the state of the run that is compared
	At     string `json:"at,omitempty"`  // the instruction that is next in that state
	Why    string `json:"why,omitempty"` // the reason why the frames could not be compared
	// Differences holds the differences from the nearest state of the run. It is empty if the exit has a state of the run.
	Differences []VMDifference `json:"differences,omitempty"`
	// Others counts other states of the run that have no more differences.
	Others int `json:"others,omitempty"`
	// NotCompared counts states of the run whose frames may have no more differences, but whose memory was not compared.
	NotCompared int `json:"not_compared,omitempty"`

	atReturn bool // memory was compared at the return, not at the exit
}

// VMDifference is a part of the VM frames of an exit that differs from a state of the run. The part is wrong if the exit should have that state.
type VMDifference struct {
	Method string `json:"method,omitempty"` // method of the frame; "" for memory
	Place  string `json:"place"`            // "position", "resume", "local[1]", "stack[0]", "monitor[0]", "object[0].price", or a place in memory
	Exit   string `json:"exit,omitempty"`   // the value at the exit; "" for a value that is missing
	Should string `json:"should,omitempty"` // the value of the run; "" for a value that it does not have
	// Of is another place that should have the value that Place has at the exit, or "".
	Of string `json:"of,omitempty"`
	// Since is set if Place has a stale value at the exit: it is the instruction of the run that replaced the value.
	Since string `json:"since,omitempty"`
	// Early is set if the exit has a value too early: it is the instruction of the run that stores the value after the compared state.
	Early string `json:"early,omitempty"`

	memory bool
}

// String returns the difference as a sentence.
func (d *VMDifference) String() string {
	of := d.Place
	if d.Method != "" {
		of += " of " + d.Method
	}
	switch {
	case d.memory && d.Since != "":
		return fmt.Sprintf("%s is %s, should be %s: the store by %s is missing", of, d.Exit, d.Should, d.Since)
	case d.Early != "":
		return fmt.Sprintf("%s is %s, should be %s: the store by %s is too early", of, d.Exit, d.Should, d.Early)
	case d.Of != "":
		return fmt.Sprintf("%s holds what should be in %s: it is %s, should be %s", of, d.Of, d.Exit, d.Should)
	case d.Since != "":
		return fmt.Sprintf("%s is stale since %s: it is %s, should be %s", of, d.Since, d.Exit, d.Should)
	case d.Place == "position":
		return fmt.Sprintf("position %s of %s should be %s", d.Exit, d.Method, d.Should)
	case d.Exit == "":
		return fmt.Sprintf("%s is missing: it should be %s", of, d.Should)
	case d.Should == "":
		return fmt.Sprintf("%s should not exist: it is %s", of, d.Exit)
	}
	return fmt.Sprintf("%s is %s, should be %s", of, d.Exit, d.Should)
}

// key returns a key that is the same for equal differences. It omits the values.
func (d *VMDifference) key() string {
	switch {
	case d.Early != "":
		return "memory, early " + d.Early
	case d.memory:
		return "memory " + d.Since
	}
	return strings.Join([]string{d.Method, d.Place, d.Of, d.Since}, "|")
}

func (s *VMState) different() bool { return s != nil && len(s.Differences) > 0 }

// These are the costs of differences. The state with the least sum is the most likely one.
const (
	costResume   = 1
	costMoved    = 2 // a value that another place or an earlier state has
	costMonitor  = 2
	costPosition = 3 // plus 1 for each position between the two, at most costFar
	costFar      = 6
	costValue    = 3
	costMissing  = 4
	costMethod   = 50
	costSlack    = 3 // the memory of states whose cost exceeds the least one by at most this is also compared
)

// vmComparison compares the VM frames of an exit with the states of a run.
type vmComparison struct {
	run    *entryRun
	raw    []protocol.Frame       // the frames of the exit, as the layout reads them
	vm     *frame.VM              // the same frames, in the form of the view
	exact  *protocol.Stopped      // the same frames as the interpreter reports them before it runs them; nil if it refused them
	memory machine.Memory         // memory of the process at the exit
	made   *protocol.Overlay      // the memory of the exit, with the objects that the interpreter allocated for exact; nil without exact
	ids    map[machine.Addr]int64 // the ids of the objects that were allocated for exact, by address
	order  binary.ByteOrder
	dead   []machine.Range
	follow func(uint64) (machine.Addr, bool)
}

// compareWithRun compares an exit with the run from the start of its activation, or starts the run if the exit is at the start.
func (v *verifier) compareWithRun(p *prediction, request *protocol.Resume, t *ptrace.Target, mappings []machine.Mapping) (err error) {
	f := p.origin.frame
	run := v.entryRunOf(p.call)
	if p.out.run = run; run == nil {
		if !startsMethod(f.VM) {
			p.out.exitOnly = errors.New("no earlier exit of its activation was at the start of a method")
			return nil
		}
		if p.with.run, p.with.answer, err = v.runFromEntry(request, f.Record.ID, t, mappings); err == nil {
			p.with.memory, p.out.run = p.with.run.memory, p.with.run
		}
		return err
	}
	c := &vmComparison{run: run, raw: request.Frames, vm: f.VM, memory: t, order: t.Arch().Order, dead: p.origin.dead, follow: f.Reference, ids: map[machine.Addr]int64{}}
	a, memory, err := v.resumeWith(request, &protocol.Stop{}, t, mappings)
	if err != nil {
		return err
	}
	if a.Stopped != nil && len(a.Stopped.Frames) == len(c.raw) {
		c.exact, c.memory, c.made = a.Stopped, memory, memory
		c.findObjects()
	}
	state := c.compare(func(addr machine.Addr) string { return v.whereabouts(p.out.Exit).memory(addr) })
	if v.session.Released() { // memory may have been read at a later time
		return &incomparable{ptrace.ErrReleased}
	}
	p.out.VMState = state
	if s := p.out.VMState; s.different() {
		v.suspect(p, s.Differences[0].key())
	} else if s.Why != "" {
		p.out.exitOnly = errors.New(s.Why)
	}
	return nil
}

// compare finds the state of the run that equals the state of the exit, or otherwise the nearest state.
func (c *vmComparison) compare(near func(machine.Addr) string) *VMState {
	run := c.run
	out := &VMState{Start: run.start, Record: run.record}
	costs := make([]int, len(run.states))
	var nearest []int // states, sorted by the differences of their frames, fewest first
	for k := run.next; k < len(run.states); k++ {
		costs[k], _, _ = c.at(k)
		nearest = append(nearest, k)
	}
	slices.SortStableFunc(nearest, func(a, b int) int { return cmp.Compare(costs[a], costs[b]) })
	best, sum, compared := -1, 0, 0
	maybeEqual := false
	for _, k := range nearest {
		cost := costs[k]
		if best >= 0 && (sum == 0 || cost > min(sum, costs[nearest[0]]+costSlack)) {
			break
		}
		if compared == maxCandidates {
			maybeEqual = maybeEqual || cost == 0
			out.NotCompared++
			continue
		}
		compared++
		all := cost + c.words(k)
		switch {
		case best < 0 || all < sum:
			best, sum, out.Others = k, all, 0
		case all == sum:
			best = min(best, k)
			out.Others++
		}
	}
	switch {
	case best < 0:
		out.Why = "no state of the run from " + run.start + " is known after that of the previous exit"
		return out
	case sum == 0:
		run.next, out.Others = best, 0
	case maybeEqual:
		out.Why = fmt.Sprintf("over %d states of the run have equal frames; only the memory of the first %d was compared", compared, compared)
		return out
	case run.why != "":
		out.Why = "the run from " + run.start + " may reach it later: " + run.why
		return out
	}
	out.Steps, out.At = uint64(best), run.at(best)
	_, diffs, pairs := c.at(best)
	out.Differences = append(diffs, c.memoryAt(best, pairs, near)...)
	if sum > 0 && len(out.Differences) == 0 {
		out.Why = "memory that the run from " + run.start + " had stored cannot be read at the exit"
	}
	return out
}

// words counts the words of memory in which the exit differs from state k. These are words that the run had stored before the state, and words that
// the run stores later but that are already changed at the exit.
func (c *vmComparison) words(k int) int {
	_, _, pairs := c.at(k)
	pairs.own = c.run.memoryAt(k)
	pairs.memory()
	n := int(pairs.diffs.out.Words)
	for range c.early(pairs) {
		n++
	}
	return n
}

// early yields the words of memory that are changed at the exit, and that the run stores only after the state of a comparison.
func (c *vmComparison) early(pairs *withComparison) iter.Seq[*memoryDiff] {
	return func(yield func(*memoryDiff) bool) {
		for later := range c.run.memory.Stored() {
			now := make([]byte, len(later.Data))
			if c.memory.ReadMemory(now, later.Addr) != nil {
				continue
			}
			then, known := pairs.own.StoredAt(later.Addr)
			for at := 0; at < len(now); at += diffWord {
				if later.Bits[at/diffWord] == 0 {
					continue
				}
				d := &memoryDiff{Addr: later.Addr + machine.Addr(at), Size: diffWord, Before: later.Was[at : at+diffWord], Interp: slices.Clone(later.Was[at : at+diffWord]),
					Undefined: bytes.Repeat([]byte{0xff}, diffWord), Native: now[at : at+diffWord]}
				differs := false
				for i := range diffWord {
					switch bit := byte(1) << i; {
					case known && then.Bits[at/diffWord]&bit != 0:
						d.Interp[i] = then.Data[at+i] // [withComparison.memory] compares this byte
					case later.Bits[at/diffWord]&bit != 0 && d.Native[i] != d.Before[i] && !pairs.isDead(d.Addr+machine.Addr(i)):
						d.Undefined[i], differs = 0, true
					}
				}
				if differs && !yield(d) {
					return
				}
			}
		}
	}
}

// at compares the exit with a state. It pairs the objects that exist in only one of the two memories.
func (c *vmComparison) at(k int) (cost int, diffs []VMDifference, pairs *withComparison) {
	state := c.run.states[k]
	pairs = &withComparison{own: c.run.memory, native: c.memory, dead: c.dead, order: c.order, follow: c.follow, pairs: map[machine.Addr]machine.Addr{}, taken: map[machine.Addr]bool{}}
	if len(state.Frames) != len(c.raw) {
		return costMethod * (1 + max(len(state.Frames), len(c.raw))), []VMDifference{{Place: "the number of frames", Exit: fmt.Sprint(len(c.raw)), Should: fmt.Sprint(len(state.Frames))}}, pairs
	}
	m := &vmMatch{vmComparison: c, words: pairs, virtual: map[int64]machine.Addr{}, state: k}
	for n := range c.raw {
		m.frame(n)
	}
	return m.cost, m.diffs, pairs
}

// vmMatch is the comparison of an exit with one state.
type vmMatch struct {
	*vmComparison
	words   *withComparison
	virtual map[int64]machine.Addr // objects of the exit that exist only as fields, and their addresses in the run
	state   int
	cost    int
	diffs   []VMDifference
}

func (m *vmMatch) add(cost int, d VMDifference) {
	m.cost += cost
	m.diffs = append(m.diffs, d)
}

// before returns the position of the instruction that ran last in the innermost frame of a state; nil if the frame has run no instruction.
func (m *vmMatch) before() *int64 {
	if m.state == 0 {
		return nil
	}
	now, was := m.run.states[m.state].Frames, m.run.states[m.state-1].Frames
	if n := len(was) - len(now); n >= 0 && was[n].Method == now[0].Method {
		return was[n].Position
	}
	return nil
}

func (m *vmMatch) frame(n int) {
	raw, has, want := &m.raw[n], &m.raw[n], &m.run.states[m.state].Frames[n]
	if m.exact != nil {
		has = &m.exact.Frames[n]
	}
	if raw.Method != want.Method && string(raw.Bits) != want.Method {
		m.add(costMethod, VMDifference{Place: "the method", Exit: raw.Method, Should: want.Method})
		return
	}
	m.position(n, raw, want)
	m.list(n, "local", has.Locals, want.Locals, true, 0)
	waits := 0
	if n == 0 && m.exact == nil && raw.Resume == frame.Calling {
		waits = 1 // the run already has the result on its stack
	}
	m.list(n, "stack", has.Stack, want.Stack, false, waits)
	m.list(n, "monitor", owners(has.Monitors), owners(want.Monitors), false, 0)
}

func owners(list []protocol.Monitor) (out []protocol.Value) {
	for n := range list {
		v, index := list[n].Owner, int64(n)
		v.Index = &index
		out = append(out, v)
	}
	return out
}

// position compares the position of a frame, and whether it resumes before or after the instruction at that position.
func (m *vmMatch) position(n int, raw, want *protocol.Frame) {
	if raw.Position == nil || want.Position == nil {
		return
	}
	next, ran := want.Position, m.before()
	expected, other, resume := next, ran, frame.Completed
	if n == 0 && raw.Resume != frame.Reexecute {
		expected, other, resume = ran, next, frame.Reexecute
	}
	switch {
	case expected != nil && *expected == *raw.Position:
	case n == 0 && other != nil && *other == *raw.Position:
		m.add(costResume, VMDifference{Method: raw.Method, Place: "resume", Exit: raw.Resume, Should: resume})
	default:
		far := *raw.Position - *cmp.Or(expected, next)
		m.add(costPosition+int(min(max(far, -far)-1, costFar)), VMDifference{Method: raw.Method, Place: "position", Exit: fmt.Sprint(*raw.Position), Should: fmt.Sprint(*cmp.Or(expected, next))})
	}
}

// list compares the values of one kind in a frame. If partial is set, it ignores values that one side lacks, because a layout may omit locals. The
// exit may lack the last top values of the run.
func (m *vmMatch) list(n int, kind string, has, want []protocol.Value, partial bool, top int) {
	at := func(list []protocol.Value, index int64) *protocol.Value {
		k := slices.IndexFunc(list, func(v protocol.Value) bool { return v.Index != nil && *v.Index == index })
		if k < 0 {
			return nil
		}
		return &list[k]
	}
	indices := map[int64]bool{}
	for _, v := range slices.Concat(has, want) {
		if v.Index != nil {
			indices[*v.Index] = true
		}
	}
	method := m.raw[n].Method
	missing := costMissing
	if kind == "monitor" {
		missing = costMonitor
	}
	var wrong []int64
	for _, index := range slices.Sorted(maps.Keys(indices)) {
		a, b := at(has, index), at(want, index)
		place := fmt.Sprintf("%s[%d]", kind, index)
		switch {
		case (a == nil || b == nil) && partial:
		case a == nil && int(index) >= len(want)-top:
		case a == nil:
			m.add(missing, VMDifference{Method: method, Place: place, Should: m.textOf(b, false)})
		case b == nil:
			m.add(missing, VMDifference{Method: method, Place: place, Exit: m.textOf(a, true)})
		case !m.same(b, a):
			wrong = append(wrong, index)
		}
	}
	for _, index := range wrong {
		a, b := at(has, index), at(want, index)
		d := VMDifference{Method: method, Place: fmt.Sprintf("%s[%d]", kind, index), Exit: m.textOf(a, true), Should: m.textOf(b, false)}
		for _, other := range wrong { // look for exchanged values
			if other != index && m.known(at(want, other), a) {
				d.Of = fmt.Sprintf("%s[%d]", kind, other)
				break
			}
		}
		if d.Of == "" {
			d.Since = m.stale(n, kind, index, a)
		}
		for k := 0; d.Of+d.Since == "" && k < len(want); k++ {
			if o := &want[k]; o.Index != nil && *o.Index != index && m.known(o, a) {
				d.Of = fmt.Sprintf("%s[%d]", kind, *o.Index)
			}
		}
		if d.Of+d.Since != "" {
			m.add(costMoved, d)
		} else {
			m.add(costValue, d)
		}
	}
}

// stale returns the instruction of the run that replaced the value that a local or stack slot still has at the exit; "" if the value is not stale.
func (m *vmMatch) stale(n int, kind string, index int64, has *protocol.Value) string {
	depth := len(m.raw) - n
	for k := m.state - 1; k >= m.run.next; k-- {
		frames := m.run.states[k].Frames
		if len(frames) < depth {
			return "" // the frame did not exist at that time
		}
		f := &frames[len(frames)-depth]
		list := f.Locals
		switch {
		case f.Method != m.raw[n].Method:
			return ""
		case kind == "stack":
			return "" // the place had other values
		case kind == "monitor":
			list = owners(f.Monitors)
		}
		for i := range list {
			if *list[i].Index == index && m.known(&list[i], has) {
				return m.run.at(k)
			}
		}
	}
	return ""
}

// textOf returns a value as text.
func (m *vmMatch) textOf(v *protocol.Value, exit bool) string {
	switch {
	case v.Dead:
		return "dead"
	case v.Object != nil:
		return fmt.Sprintf("object[%d]", *v.Object)
	}
	addr, is := address(v)
	if is && addr != 0 {
		id, known := int64(0), false
		if exit && m.made != nil {
			if block, ok := m.made.Block(addr); ok {
				id, known = m.ids[block.Start]
			}
		} else if block, ok := m.run.memory.Block(addr); ok && !exit {
			if at, paired := m.words.pairs[block.Start]; paired {
				id, known = m.ids[at]
			}
			for k, at := range m.virtual {
				if at == block.Start {
					id, known = k, true
				}
			}
			if !known {
				return "an object that the run allocated"
			}
		}
		if known {
			return fmt.Sprintf("object[%d]", id)
		}
	}
	return strings.TrimSpace(v.Type + " " + cmp.Or(v.Text, string(v.Bits)))
}

// address returns the address in a reference.
func address(v *protocol.Value) (machine.Addr, bool) {
	if v.Type != "ref" && v.Type != "null" {
		return 0, false
	}
	bits, err := v.Bits.Uint()
	return machine.Addr(bits), err == nil || v.Type == "null"
}

// same reports whether a value of the run equals a value of the exit, and pairs their objects.
func (m *vmMatch) same(run, exit *protocol.Value) bool {
	if run.Dead || exit.Dead || m.known(run, exit) {
		return true
	}
	own, isOwn := address(run)
	native, isNative := address(exit)
	switch {
	case !isOwn:
		return false
	case exit.Object != nil:
		block, ok := m.run.memory.Block(own)
		if _, paired := m.virtual[*exit.Object]; !ok || paired || slices.Contains(slices.Collect(maps.Values(m.virtual)), block.Start) {
			return false
		}
		m.virtual[*exit.Object] = block.Start
		return true
	}
	return isNative && m.words.pair(own, native)
}

// known is like same without pairing objects.
func (m *vmMatch) known(run, exit *protocol.Value) bool {
	if run.Dead || exit.Dead {
		return false
	}
	own, isOwn := address(run)
	native, isNative := address(exit)
	switch {
	case exit.Object != nil && isOwn:
		block, ok := m.run.memory.Block(own)
		at, paired := m.virtual[*exit.Object]
		return ok && paired && at == block.Start
	case exit.Object != nil || run.Object != nil:
		return exit.Object != nil && run.Object != nil && *exit.Object == *run.Object
	case isOwn && isNative:
		if own == native {
			return true
		}
		block, ok := m.run.memory.Block(own)
		at, paired := m.words.pairs[block.Start]
		return ok && paired && native == at+(own-block.Start)
	case isOwn != isNative:
		return false
	}
	width := func(t string) string { return strings.TrimLeft(t, "iu") }
	if run.Type != "" && exit.Type != "" && width(run.Type) != width(exit.Type) {
		return false
	}
	a, errA := run.Bits.Uint()
	b, errB := exit.Bits.Uint()
	return a == b && errA == nil && errB == nil || run.Bits == exit.Bits || run.Type == "f64" && sameNaN(a, b)
}

// findObjects finds the addresses at which the interpreter allocated the objects of the exit that exist only as fields.
func (c *vmComparison) findObjects() {
	var todo []int64
	see := func(id *int64, at machine.Addr) {
		if id == nil {
			return
		}
		if block, ok := c.made.Block(at); ok {
			if _, known := c.ids[block.Start]; !known {
				c.ids[block.Start] = *id
				todo = append(todo, *id)
			}
		}
	}
	both := func(raw, exact []protocol.Value) {
		for k := range raw {
			for i := range exact {
				if addr, is := address(&exact[i]); is && raw[k].Index != nil && exact[i].Index != nil && *raw[k].Index == *exact[i].Index {
					see(raw[k].Object, addr)
				}
			}
		}
	}
	for n := range c.raw {
		raw, exact := &c.raw[n], &c.exact.Frames[n]
		both(raw.Locals, exact.Locals)
		both(raw.Stack, exact.Stack)
		both(owners(raw.Monitors), owners(exact.Monitors))
	}
	for n := 0; n < len(todo); n++ {
		for at, id := range c.ids {
			o := c.object(id)
			if id != todo[n] || o == nil {
				continue
			}
			for k := range o.Fields {
				word := make([]byte, diffWord)
				if o.Fields[k].Object == nil || c.made.ReadMemory(word, at+machine.Addr(o.Fields[k].At)) != nil {
					continue
				}
				if to, ok := c.follow(c.order.Uint64(word)); ok {
					see(o.Fields[k].Object, to)
				}
			}
			break
		}
	}
}

func (c *vmComparison) object(id int64) *frame.VMObject {
	k := slices.IndexFunc(c.vm.Objects, func(o frame.VMObject) bool { return o.ID == id })
	if k < 0 {
		return nil
	}
	return &c.vm.Objects[k]
}

// maxCandidates bounds the states whose memory is compared.
const maxCandidates = 256

// maxStateDiffs bounds the differences in memory that a report names.
const maxStateDiffs = 8

// memoryAt lists the differences in memory between the exit and state k: in words that the run had stored before the state, and in words that are
// already changed at the exit although the run stores them later.
func (c *vmComparison) memoryAt(k int, pairs *withComparison, near func(machine.Addr) string) (list []VMDifference) {
	pairs.own = c.run.memoryAt(k)
	pairs.memory()
	list = c.named(k, pairs, near)
	for diff := range c.early(pairs) {
		if len(list) == maxStateDiffs {
			break
		}
		differing := diff.report().bytes
		d := c.word(k, pairs, diff, differing, near)
		if d.Since == "" {
			d.Early = c.storedBy(k, diff, differing)
		}
		list = append(list, d)
	}
	return list
}

// storedBy returns the first instruction of the run, from state k on, that stores the exit's value to the differing bytes of a word; "" if there is
// none.
func (c *vmComparison) storedBy(k int, diff *memoryDiff, differing []machine.Addr) string {
	for _, change := range c.run.changes(diff.Addr, len(c.run.states)) {
		if change.state >= k && !slices.ContainsFunc(differing, func(at machine.Addr) bool { return change.is[at-diff.Addr] != diff.Native[at-diff.Addr] }) {
			return c.run.at(change.state)
		}
	}
	return ""
}

// named describes the words of a comparison that differ. If k is the number of states, the comparison is with the end of the run.
func (c *vmComparison) named(k int, pairs *withComparison, near func(machine.Addr) string) (list []VMDifference) {
	for _, diff := range pairs.diffs.out.Diffs {
		for at := 0; at < len(diff.Native); at += diffWord {
			end := min(at+diffWord, len(diff.Native)) // the last word of an object may have fewer bytes
			part := memoryDiff{Addr: diff.Addr + machine.Addr(at), Size: uint64(end - at), Before: diff.Before[at:end], Interp: diff.Interp[at:end],
				Undefined: diff.Undefined[at:end], Native: diff.Native[at:end]}
			if bytes := part.report().bytes; len(bytes) > 0 && len(list) < maxStateDiffs {
				list = append(list, c.word(k, pairs, &part, bytes, near))
			}
		}
	}
	return list
}

// word describes a word of memory that differs in some bytes.
func (c *vmComparison) word(k int, pairs *withComparison, diff *memoryDiff, differing []machine.Addr, near func(machine.Addr) string) VMDifference {
	first, last := differing[0], differing[len(differing)-1]+1
	own := diff.Addr
	for block, native := range pairs.pairs {
		if b, ok := c.run.memory.Block(block); ok && native <= diff.Addr && diff.Addr < native+(b.End-b.Start) {
			own = block + (diff.Addr - native)
		}
	}
	cut := func(word []byte) []byte { return word[first-diff.Addr : last-diff.Addr] }
	d := VMDifference{memory: true, Exit: hexBytes(cut(diff.Native), nil), Should: hexBytes(cut(diff.Interp), nil)}
	for _, change := range c.run.changes(own, k) {
		if bytes.Equal(cut(change.was[:]), cut(diff.Native)) {
			d.Since = c.run.at(change.state)
		}
	}
	if c.made != nil {
		if block, ok := c.made.Block(diff.Addr); ok {
			if id, ok := c.ids[block.Start]; ok {
				offset := int64(diff.Addr - block.Start)
				d.memory, d.Place = false, fmt.Sprintf("object[%d]%+d", id, offset)
				for _, f := range c.object(id).Fields {
					if f.At != offset {
						continue
					}
					if d.Exit = cmp.Or(f.Value, d.Exit); len(diff.Interp) == diffWord {
						d.Should = fmt.Sprintf("%#x", c.order.Uint64(diff.Interp))
					}
					if f.Name != "" {
						d.Place = fmt.Sprintf("object[%d].%s", id, f.Name)
					}
				}
				return d
			}
		}
	}
	d.Place = fmt.Sprintf("memory at %v", first)
	if name := near(first); name != "" {
		d.Place = "memory at " + name
	}
	return d
}

// vmChange is a change of a word of memory.
type vmChange struct {
	state   int // the state before the instruction that changed the word
	was, is [diffWord]byte
}

// changes lists the changes of a word of the run's memory before a state, in order.
func (r *entryRun) changes(addr machine.Addr, state int) (list []vmChange) {
	var now [diffWord]byte
	if stored, ok := r.memory.StoredAt(addr); ok && stored.Was != nil {
		copy(now[:], stored.Was[addr-stored.Addr:])
	}
	for _, w := range r.until(state) {
		was := now
		for i := range now {
			if at := addr + machine.Addr(i); at >= w.addr && at < w.addr+machine.Addr(len(w.data)) {
				now[i] = w.data[at-w.addr]
			}
		}
		if was != now {
			list = append(list, vmChange{w.state, was, now})
		}
	}
	return list
}
