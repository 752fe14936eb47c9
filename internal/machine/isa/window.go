package isa

import "example.com/reframe/internal/machine"

// Window reads code, of which it holds as much as fits; it moves on with what is asked for.
type Window struct {
	*Set
	memory machine.Memory
	buf    []byte
	start  machine.Addr // of what is in the window
	have   int
	left   int // how many instructions more may be read
}

// maxSwept bounds the instructions that are read of one image. A map may claim a million functions
// that all start at one place; of real code each instruction is read once.
const maxSwept = 64 << 20

// The window, and what is tried where memory ends before.
var windowSizes = [...]int{64 << 10, 8 << 10, 4 << 10}

const pageMask = 4<<10 - 1

// NewWindow returns a window on code of an architecture, which [Of] knows.
func NewWindow(m machine.Memory, of *Set) *Window {
	return &Window{Set: of, memory: m, buf: make([]byte, windowSizes[0]), left: maxSwept}
}

// From returns the code at an address: as much as the longest instruction takes, if there is so much.
func (w *Window) From(addr machine.Addr) []byte {
	if addr < w.start || uint64(addr-w.start)+uint64(w.Longest) > uint64(w.have) {
		w.start, w.have = addr&^pageMask, 0
		for _, n := range windowSizes {
			if w.memory.ReadMemory(w.buf[:n], w.start) == nil {
				w.have = n
				break
			}
		}
	}
	off := uint64(addr - w.start)
	if off >= uint64(w.have) {
		return nil
	}
	return w.buf[off:min(off+uint64(w.Longest), uint64(w.have))]
}

// LengthAt returns the length of the instruction at an address, 0 where it is not known.
func (w *Window) LengthAt(addr machine.Addr) int {
	if w.left == 0 {
		return 0
	}
	w.left--
	return w.Length(w.From(addr))
}

// IsCallAt reports whether a call starts at an address.
func (w *Window) IsCallAt(addr machine.Addr) bool { return w.IsCall(w.From(addr)) }
