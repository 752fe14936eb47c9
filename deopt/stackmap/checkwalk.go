package stackmap

import (
	"errors"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// maxOverlap bounds the bytes of code that are decoded more than once. This happens only with broken maps or symbols, because functions do not
// overlap.
const maxOverlap = 16 << 20

// walk decodes code instruction by instruction.
type walk struct {
	code Code
	kind *boundaries // nil if unknown

	at, end machine.Addr // end is an upper bound of the function's end
	last    machine.Addr // start of the instruction that ends at the address at
	why     error        // why the walk cannot advance; nil if it can

	furthest machine.Addr // end of the code decoded so far
	again    uint64       // bytes decoded more than once

	buf   [4096]byte
	first machine.Addr // address of buf[0]
	n     int          // number of valid bytes in buf
}

var (
	errCodeUnread  = errors.New("for code that cannot be read")
	errInstruction = errors.New("after an unknown instruction")
	errOverlap     = errors.New("where functions overlap")
)

func newWalk(arch *machine.Arch, code Code) *walk {
	w := &walk{code: code}
	if arch != nil {
		w.kind = boundariesOf(arch)
	}
	return w
}

// begin moves the walk to the first instruction of a function.
func (w *walk) begin(addr, end machine.Addr) {
	w.at, w.last, w.end, w.why = addr, addr, end, nil
}

// to decodes up to the first instruction boundary at or after addr, which must not be before w.last. If it cannot decode that far, it returns the
// reason.
func (w *walk) to(addr machine.Addr) error {
	for w.at < addr && w.why == nil {
		b := w.bytes()
		if len(b) == 0 {
			w.why = errCodeUnread
			break
		}
		n := w.kind.size(b)
		if n == 0 || n > len(b) || uint64(n) > uint64(w.end-w.at) {
			w.why = errInstruction
			break
		}
		if w.at < w.furthest {
			if w.again += uint64(n); w.again > maxOverlap {
				w.why = errOverlap
				break
			}
		}
		w.last = w.at
		w.at += machine.Addr(n)
		w.furthest = max(w.furthest, w.at)
	}
	if w.at >= addr {
		return nil
	}
	return w.why
}

// longest is the length of the longest instruction of any architecture.
const longest = isa.Longest

// bytes returns the code at w.at: enough for the longest instruction, or as much as can be read.
func (w *walk) bytes() []byte {
	skip := uint64(w.at - w.first)
	if w.at < w.first || skip > uint64(w.n) || uint64(w.n)-skip < longest {
		w.fill()
		skip = 0
	}
	return w.buf[skip:min(skip+longest, uint64(w.n))]
}

// fill reads code from w.at on. It reads a whole buffer, and after each failure half as much.
func (w *walk) fill() {
	w.first, w.n = w.at, 0
	for size := min(uint64(len(w.buf)), uint64(w.end-w.at)); size > 0; size /= 2 {
		if w.code.ReadMemory(w.buf[:size], w.at) == nil {
			w.n = int(size)
			return
		}
	}
}
