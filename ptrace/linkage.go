package ptrace

import (
	"bytes"

	"example.com/reframe/internal/machine"
)

// Limits on the tables that linkage reads.
const (
	maxLinkage    = 1 << 20   // bytes of one table
	maxAllLinkage = 16 << 20  // bytes of all tables
	maxVariables  = 128 << 10 // bytes of one section of variables
)

// linkage reads the global offset tables of the modules. They hold the targets of procedure linkage table entries (System V ABI, AMD64 supplement,
// 5.2), without which the function that a call reaches is unknown. Runtimes also jump through their own variables to the code that handles a patched
// site, so linkage reads small sections of variables, too.
func (t reading) linkage() []span {
	var all []span
	room := uint64(maxAllLinkage)
	for _, m := range t.Modules {
		if m.Image == nil {
			continue
		}
		for name, most := range map[string]uint64{".got": maxLinkage, ".got.plt": maxLinkage, ".data": maxVariables, ".bss": maxVariables} {
			s := m.Image.Section(name)
			if s == nil || !s.Alloc || s.Size > min(most, room) || !m.Contains(s.Loaded()) {
				continue
			}
			b := make([]byte, s.Size)
			if n, err := t.source.readUpTo(b, s.Loaded()); err == nil {
				all = append(all, span{s.Loaded(), b[:n]})
				room -= uint64(n)
			}
		}
	}
	return all
}

// asBefore returns the parts of tables that are the same before and after a stop. An entry changes only once, when its function is first called, so
// these parts had the same content during the stop. Reading the tables during the stop would prolong the stop by half.
func asBefore(before, after []span) []span {
	const part = 64
	at := map[machine.Addr][]byte{}
	for _, s := range after {
		at[s.addr] = s.data
	}
	var same []span
	for _, s := range before {
		now := at[s.addr]
		for n := 0; n < len(s.data); n += part {
			end := min(n+part, len(s.data))
			if end <= len(now) && bytes.Equal(s.data[n:end], now[n:end]) {
				same = append(same, span{s.addr + machine.Addr(n), s.data[n:end:end]})
			}
		}
	}
	return same
}
