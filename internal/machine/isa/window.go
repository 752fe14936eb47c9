package isa

import "example.com/reframe/internal/machine"

// Window is a buffered reader of code. It refills its buffer at the requested address.
type Window struct {
	*Set
	memory machine.Memory
	buf    []byte
	start  machine.Addr // address of the first byte in buf
	have   int
	left   int // how many more instructions may be decoded
}

// maxSwept limits the instructions that are decoded in one image. A hostile map may claim a million functions at one address; in real code each
// instruction is decoded once.
const maxSwept = 64 << 20

// windowSizes lists the sizes of a read. The smaller ones are tried if memory ends before the larger read does.
var windowSizes = [...]int{64 << 10, 8 << 10, 4 << 10}

const pageMask = 4<<10 - 1

// NewWindow returns a window on code of an architecture that [Of] supports.
func NewWindow(m machine.Memory, of *Set) *Window {
	return &Window{Set: of, memory: m, buf: make([]byte, windowSizes[0]), left: maxSwept}
}

// From returns the code at an address: as many bytes as the longest instruction has, or fewer if memory ends before.
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

// LengthAt returns the length of the instruction at an address, or 0 if it is unknown or the limit is reached.
func (w *Window) LengthAt(addr machine.Addr) int {
	if w.left == 0 {
		return 0
	}
	w.left--
	return w.Length(w.From(addr))
}

// IsCallAt reports whether a call starts at an address.
func (w *Window) IsCallAt(addr machine.Addr) bool { return w.IsCall(w.From(addr)) }
