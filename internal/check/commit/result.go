package commit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// placeResult puts the result into the registers in which the caller expects it, and lists its scalars.
func placeResult(v interp.Value, to *continuation) ([]frame.CommittedResult, error) {
	list := []frame.CommittedResult{}
	if v.IsNone() {
		return list, nil
	}
	parts, err := onlyAssignment(v, to.results)
	if err != nil {
		return nil, fmt.Errorf("the result, of type %v: %w", v.Type(), err)
	}
	for _, p := range parts {
		words, unknown := p.Value.Bits()
		if slices.ContainsFunc(unknown, func(u uint64) bool { return u != 0 }) {
			return nil, fmt.Errorf("the result%s has undefined bits: %s", p.Path, p.Value.Format())
		}
		t := p.Value.Type()
		// The caller relies on 32 extended bits (LangRef, "Parameter Attributes"); the upper bits are undefined.
		if to.native.Ret.SignExt && t.Kind == ir.IntKind && t.Bits < 64 {
			n, _ := p.Value.Int()
			words = []uint64{uint64(n)}
		}
		for i, w := range p.Words {
			to.put(w, words[i], min(8, (abi.BitWidth(t)-64*i+7)/8))
		}
		list = append(list, frame.CommittedResult{Path: p.Path, Type: t.String(), Value: p.Value.Format(), Register: registers(&p, to.arch)})
	}
	return list, nil
}

// put sets the register of a word of the result. A general register gets all of v. A vector register gets the first size bytes of v; its other bytes
// become zero unless another word of the result sets them.
func (c *continuation) put(w abi.ReturnedWord, v uint64, size int) {
	if !c.results.IsVector(w.Reg) {
		c.set(w.Reg, v)
		return
	}
	const low = 16
	if c.registers[w.Reg] == nil {
		c.registers[w.Reg] = make([]byte, low)
	}
	copy(c.registers[w.Reg][w.Off:], binary.LittleEndian.AppendUint64(nil, v)[:size])
}

// onlyAssignment returns the registers of the scalars of a result. It returns an error if they depend on the processor features that the code was
// compiled for.
func onlyAssignment(v interp.Value, in *abi.ResultRegisters) ([]abi.ReturnedPart, error) {
	var parts []abi.ReturnedPart
	for i, l := range in.Lowerings {
		a := abi.Assignment{ResultRegisters: in, Lowering: l}
		if err := a.Value(v, ""); err != nil {
			return nil, err
		}
		same := slices.EqualFunc(parts, a.Parts, func(x, y abi.ReturnedPart) bool { return slices.Equal(x.Words, y.Words) })
		if i > 0 && !same {
			return nil, errors.New("its return registers depend on the processor that the code was compiled for")
		}
		parts = a.Parts
	}
	return parts, nil
}

// registers returns the names of the registers of a scalar.
func registers(p *abi.ReturnedPart, arch *machine.Arch) string {
	name := ""
	for i, w := range p.Words {
		if i > 0 && w.Reg == p.Words[i-1].Reg {
			continue
		}
		size := 8
		if abi.ResultsOf[arch].IsVector(w.Reg) {
			size = 16
		}
		name += ":" + arch.NameOf(w.Reg, size)
		if w.Off > 0 {
			name += fmt.Sprintf("+%d", w.Off)
		}
	}
	return name[1:]
}
