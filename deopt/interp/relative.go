package interp

import (
	"encoding/binary"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// relativeLoad implements llvm.load.relative: it loads a 32-bit offset from a table at the pointer and adds it to the pointer (LangRef,
// "llvm.load.relative"). clang emits such tables for constant arrays of strings.
func relativeLoad(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if !scalars(args, 2) || out.s.words != 1 {
		return nil, wrongUse(i)
	}
	bits := args[1].s.bits
	var order binary.ByteOrder = binary.LittleEndian
	if d.in.layout.BigEndian {
		order = binary.BigEndian
	}
	return func(fr *frame) error {
		base, err := pointer(fr, args[0])
		if err != nil {
			return err
		}
		offset := fr.w[args[1].at]
		if offset.u != 0 {
			return notKnown([]word{offset}, "the offset")
		}
		var distance [4]byte
		if err := fr.in.view.read(distance[:], nil, base+machine.Addr(signExtend(offset.v, bits))); err != nil {
			return err
		}
		fr.w[out.at] = word{v: uint64(base) + signExtend(uint64(order.Uint32(distance[:])), 32)}
		return nil
	}, nil
}
