package ptrace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// goMemory is memory with structures of Go's run time: words by their addresses.
type goMemory map[machine.Addr]machine.Addr

func (m goMemory) ReadMemory(p []byte, addr machine.Addr) error {
	for i := 0; i < len(p); i += 8 {
		if addr+machine.Addr(i) < 0x1000 {
			return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
		}
		machine.AMD64.Order.PutUint64(p[i:], uint64(m[addr+machine.Addr(i)]))
	}
	return nil
}

// add adds an m with a g0 and a current goroutine.
func (m goMemory) add(thread, system, current machine.Addr) {
	m[thread+goSystem], m[thread+0xc0] = system, current
	for _, g := range []machine.Addr{system, current} {
		m[g+goStackLow], m[g+goStackHigh], m[g+goThread], m[g+goSP] = g+0x10000, g+0x12000, thread, g+0x11000
	}
}

// TestFindGoThread requires that the goroutine of a thread is found, and that none is found if several structures could belong to the thread.
func TestFindGoThread(t *testing.T) {
	const (
		m1, system1, current1 = 0x100000, 0x200000, 0x300000
		m2, system2, current2 = 0x400000, 0x500000, 0x600000
		header                = 0x900008            // an address after the header of a large object
		c, noC                = 0x700000, m1 + 0x90 // thread pointers in a program with C, and in one without
	)
	for _, test := range []struct {
		name  string
		local machine.Addr                  // the thread pointer
		words map[machine.Addr]machine.Addr // words by their distance below the thread pointer
		want  machine.Addr                  // 0 for none
	}{
		{"with C", c, map[machine.Addr]machine.Addr{0x18: current1}, current1},
		{"with C, in the first word", c, map[machine.Addr]machine.Addr{512: current1}, current1},
		{"without C", noC, map[machine.Addr]machine.Addr{8: current1}, current1},
		{"without C, with a goroutine of another thread in the m", noC, map[machine.Addr]machine.Addr{8: current1, 0x20: current2}, current1},
		{"with C, and another one in the last word", c, map[machine.Addr]machine.Addr{0x18: current1, 8: current2}, 0},
		{"with C, and another one in the first word", c, map[machine.Addr]machine.Addr{0x18: current1, 512: current2}, 0},
		{"with C, twice", c, map[machine.Addr]machine.Addr{0x18: current1, 0x28: current1}, current1},
		{"with the address sanitizer", c, map[machine.Addr]machine.Addr{0x18: header}, header},
		{"with C, at another alignment", c, map[machine.Addr]machine.Addr{0x18: header + 8}, 0},
		{"no goroutine", c, map[machine.Addr]machine.Addr{8: 0x800000}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			mem := goMemory{}
			mem.add(m2, system2, current2)
			mem.add(m1, system1, header)
			mem.add(m1, system1, header+8)
			mem.add(m1, system1, current1)
			for below, word := range test.words {
				mem[test.local-below] = word
			}
			found, ok := FindGoThread(machine.AMD64, mem, test.local)
			require.Equal(t, test.want != 0, ok)
			require.Equal(t, test.want, found.Current)
			if ok {
				require.EqualValues(t, system1, found.System.Addr)
			}
		})
	}
}
