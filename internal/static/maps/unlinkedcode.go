package maps

import (
	"encoding/binary"
	"math"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// codeOf returns the code of an image for decoding.
func codeOf(img *object.Image, arch *machine.Arch) machine.Memory {
	if !img.Relocatable() || arch != machine.AMD64 {
		return imageCode{Image: img}
	}
	return &unlinkedCode{img, map[*object.Section]*filledIn{}}
}

// unlinkedCode is x86-64 code of an object with its jumps and calls relocated. In the object, a call of an undefined function has a distance of zero,
// as if its target were the next instruction.
type unlinkedCode struct {
	image    *object.Image
	sections map[*object.Section]*filledIn
}

type filledIn struct {
	code []byte
	err  error
}

// elsewhere is the distance to an undefined symbol: farther than any code of the image.
const elsewhere = math.MaxInt32

// ReadMemory implements [machine.Memory].
func (c *unlinkedCode) ReadMemory(p []byte, addr machine.Addr) error {
	s := c.image.CodeAt(addr)
	if s == nil {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "no code of " + c.image.Name}
	}
	filled := c.sections[s]
	if filled == nil {
		filled = fillIn(s)
		c.sections[s] = filled
	}
	if filled.err != nil {
		return filled.err
	}
	if at := uint64(addr - s.Loaded()); at+uint64(len(p)) <= uint64(len(filled.code)) {
		copy(p, filled.code[at:])
		return nil
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not all of it is in " + s.Name}
}

// fillIn relocates the targets of all jumps and calls in a section.
func fillIn(s *object.Section) *filledIn {
	code, relocations, err := s.Relocated()
	if err != nil {
		return &filledIn{err: err}
	}
	for _, r := range relocations {
		if !r.Defined && holdsDistance(code, r.Offset) {
			binary.LittleEndian.PutUint32(code[r.Offset:], elsewhere)
		}
	}
	return &filledIn{code: code}
}

// holdsDistance reports whether the four bytes at an offset of code are the distance of a jump or call. They are if they follow e8, e9, or 0f 80 to
// 0f 8f (Intel SDM, volume 2, CALL, JMP and Jcc).
func holdsDistance(code []byte, at uint64) bool {
	if at < 1 || at > uint64(len(code)) || uint64(len(code))-at < 4 {
		return false
	}
	last := code[at-1]
	return last == 0xe8 || last == 0xe9 || last&0xf0 == 0x80 && at > 1 && code[at-2] == 0x0f
}
