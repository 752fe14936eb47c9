package stackmap

import (
	"encoding/binary"
	"fmt"
)

// reader is a cursor with one sticky error: after the first failure it yields
// zeros, and the caller looks at err where it is about to act on what it read.
type reader struct {
	data  []byte
	order binary.ByteOrder
	off   int
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &Error{int64(r.off), fmt.Errorf(format, args...)}
	}
}

func (r *reader) take(n int) []byte {
	if r.err != nil || len(r.data)-r.off < n {
		r.fail("%w", ErrTruncated)
		return make([]byte, n)
	}
	b := r.data[r.off : r.off+n]
	r.off += n
	return b
}

func (r *reader) uint8() uint8   { return r.take(1)[0] }
func (r *reader) uint16() uint16 { return r.order.Uint16(r.take(2)) }
func (r *reader) uint32() uint32 { return r.order.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return r.order.Uint64(r.take(8)) }

// zero takes n bytes that the format wants to be zero.
func (r *reader) zero(n int, what string) {
	for _, b := range r.take(n) {
		if b != 0 {
			r.fail("%s are not zero", what)
		}
	}
}

// align skips to the next multiple of n.
func (r *reader) align(n int) {
	if rest := r.off % n; rest != 0 {
		r.take(n - rest)
	}
}

// fits fails unless count things of size bytes each can still follow, so that
// no count allocates more than a small multiple of the bytes that back it.
func (r *reader) fits(count, size uint64, what string) {
	if r.err == nil && count > uint64(len(r.data)-r.off)/size {
		r.fail("%d %s in %d bytes: %w", count, what, len(r.data)-r.off, ErrTruncated)
	}
}
