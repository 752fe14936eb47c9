package patches_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A moment is one step of the host: it patches sites, then performs nested actions. The last action stops the process.
type moment struct {
	writes  []string
	actions []string
	stubs   map[*stub]int    // the active stubs
	forms   map[int]string   // by the number of the function that is patched
	beside  map[int]bool     // functions that call event before their site
	lost    map[int]bool     // functions whose return address is overwritten
	random  *rand.Rand       // chooses the patch
	text    []string         // the actions as text
	used    map[int]struct{} // numbers of the functions that are already in this moment
	// signaled is set if a signal is handled on the alternate signal stack. A stub that switches stacks must not follow: Linux would handle the next
	// signal at the start of that stack, over the frames that are there (sigaltstack(2)).
	signaled bool
}

func (m *moment) act(kind string, at, argument uint64) {
	m.actions = append(m.actions, fmt.Sprintf("a %s %x %x", kind, at, argument))
}

// commands returns the lines that the host reads.
func (m *moment) commands() string {
	lines := append([]string{fmt.Sprintf("m %d %d", len(m.writes), len(m.actions))}, append(m.writes, m.actions...)...)
	return strings.Join(lines, "\n") + "\n"
}

// String describes the moment.
func (m *moment) String() string { return strings.Join(m.text, "; ") }

// moment returns a random moment of the program.
func (b *built) moment(r *rand.Rand) *moment {
	m := &moment{stubs: map[*stub]int{}, forms: map[int]string{}, beside: map[int]bool{}, lost: map[int]bool{}, random: r, used: map[int]struct{}{}}
	for n := 1 + r.IntN(depth); n > 0; n-- {
		if chance(r, 12) {
			s := m.anyStub(r, b.stubs)
			m.text = append(m.text, "the host calls "+s.String())
			m.act("n", b.symbols[s.name()], 0)
		}
		f := pick(r, b.funcs...)
		_, used := m.used[f.number]
		if f.room > 0 && len(formsOf(b.machine)) == 0 || used || f.stub != nil && !m.mayEnter(f.stub) {
			continue
		}
		m.used[f.number] = struct{}{}
		m.text = append(m.text, fmt.Sprintf("%s, %s %d", f.name(), f.kind, f.id))
		m.act("c", b.symbols[f.name()], r.Uint64())
		switch {
		case f.kind == siteless:
			m.stubs[f.stub]++
			m.text = append(m.text, "calls "+f.stub.String())
		case f.room == 0:
			if b.machine == "amd64" && chance(r, 8) {
				s := pick(r, b.stubs...)
				m.text = append(m.text, "return address overwritten by that of "+s.String())
				m.lost[f.number] = true
				m.act("o", b.symbols[s.name()], 0)
			}
		case f.calls && chance(r, 30):
			m.beside[f.number] = true
		default:
			if f.calls {
				m.act("r", 0, 0)
			}
			m.patch(b, f, m.anyStub(r, b.stubs), true)
		}
	}
	if len(m.stubs) > 0 && chance(r, 40) { // stubs may be shared with the sites of functions that are not active
		var shared []*stub
		for s := range m.stubs {
			shared = append(shared, s)
		}
		slices.SortFunc(shared, func(x, y *stub) int { return x.number - y.number })
		for range 1 + r.IntN(3) {
			f := pick(r, b.funcs...)
			if _, used := m.used[f.number]; used || f.room == 0 {
				continue
			}
			m.used[f.number] = struct{}{}
			m.patch(b, f, pick(r, shared...), false)
		}
	}
	m.act("s", 0, 0)
	return m
}

// mayEnter reports whether a stub may become active once more.
func (m *moment) mayEnter(s *stub) bool { return !s.once || m.stubs[s] == 0 && !m.signaled }

// anyStub chooses a stub and counts its use.
func (m *moment) anyStub(r *rand.Rand, stubs []*stub) *stub {
	for {
		s := pick(r, stubs...)
		if m.mayEnter(s) {
			m.stubs[s]++
			return s
		}
	}
}

// patch overwrites the site of a function. The patch of a function that is not active must lead to a stub.
func (m *moment) patch(b *built, f *function, s *stub, active bool) {
	r := m.random
	forms := slices.DeleteFunc(formsOf(b.machine), func(x *form) bool { return !active && x.own })
	if len(forms) == 0 {
		return
	}
	form := pick(r, forms...)
	if active && form.own {
		m.stubs[s]--
	}
	start := b.sites[f.number]
	if f.kind == statepoint {
		start -= uint64(f.room)
	}
	write := func(offset int) *patch {
		p := &patch{random: rand.New(rand.NewPCG(uint64(f.number), uint64(len(m.text)))), at: start, stub: s, addr: func(name string) uint64 { return b.symbols[name] }}
		p.nops(b.machine, offset)
		form.write(p)
		return p
	}
	offset := 0
	if room := f.room - len(write(0).code); room > 0 && chance(r, 35) {
		offset = r.IntN(room + 1)
		if b.machine == "arm64" {
			offset &^= 3
		}
	}
	p := write(offset)
	m.writes = append(m.writes, fmt.Sprintf("w %x %s", start, hex.EncodeToString(p.code)))
	what := form.name
	if !form.own {
		what += ", to " + s.String()
	}
	if offset > 0 {
		what += fmt.Sprintf(", behind %d bytes of nops", offset)
	}
	if !active {
		m.text = append(m.text, fmt.Sprintf("[%s, %s %d, not active, has: %s]", f.name(), f.kind, f.id, what))
		return
	}
	m.forms[f.number] = form.name
	m.signaled = m.signaled || form.signal && b.altstack
	m.text = append(m.text, "patched: "+what)
}

// String describes the stub.
func (s *stub) String() string {
	return fmt.Sprintf("%s (%s)", s.name(), strings.Join(s.traits, ", "))
}
