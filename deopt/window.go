package deopt

import "reframe/deopt/machine"

// window reads code, of which it holds as much as fits; it moves on with what is asked for.
type window struct {
	*instructions
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

func newWindow(m machine.Memory, of *instructions) *window {
	return &window{instructions: of, memory: m, buf: make([]byte, windowSizes[0]), left: maxSwept}
}

// from returns the code at an address: as much as the longest instruction takes, if there is so much.
func (w *window) from(addr machine.Addr) []byte {
	if addr < w.start || uint64(addr-w.start)+uint64(w.longest) > uint64(w.have) {
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
	return w.buf[off:min(off+uint64(w.longest), uint64(w.have))]
}

// lengthAt is that of the instruction at an address, 0 where it is not known.
func (w *window) lengthAt(addr machine.Addr) int {
	if w.left == 0 {
		return 0
	}
	w.left--
	return w.length(w.from(addr))
}

func (w *window) isCallAt(addr machine.Addr) bool { return w.isCall(w.from(addr)) }
