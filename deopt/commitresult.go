package deopt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"reframe/deopt/frame"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

// place puts the result where the caller looks for it, and lists its scalars.
func (r *ran) place(to *continuation) ([]frame.CommittedResult, error) {
	list := []frame.CommittedResult{}
	if r.result.Value.IsNone() {
		return list, nil
	}
	parts, err := onlyAssignment(r, to.results)
	if err != nil {
		return nil, fmt.Errorf("the result, of type %v: %w", r.result.Type, err)
	}
	for _, p := range parts {
		words, unknown := p.v.Bits()
		if slices.ContainsFunc(unknown, func(u uint64) bool { return u != 0 }) {
			return nil, fmt.Errorf("the result%s has undefined bits: %s", p.path, p.v.Format())
		}
		t := p.v.Type()
		// Who calls a function with such a result relies on 32 bits (LangRef, "Parameter Attributes"); the others
		// may be anything.
		if to.native.Ret.SignExt && t.Kind == ir.IntKind && t.Bits < 64 {
			n, _ := p.v.Int()
			words = []uint64{uint64(n)}
		}
		for i, w := range p.words {
			to.put(w, words[i], min(8, (bitWidth(t)-64*i+7)/8))
		}
		list = append(list, frame.CommittedResult{Path: p.path, Type: t.String(), Value: p.v.Format(), Register: p.registers(to.arch)})
	}
	return list, nil
}

// put puts so many bytes of a word into a register: a general one has all of it, and of a vector register what is
// not said otherwise is zero.
func (c *continuation) put(w returnedWord, v uint64, size int) {
	if !c.results.isVector(w.reg) {
		c.set(w.reg, v)
		return
	}
	const low = 16
	if c.registers[w.reg] == nil {
		c.registers[w.reg] = make([]byte, low)
	}
	copy(c.registers[w.reg][w.off:], binary.LittleEndian.AppendUint64(nil, v)[:size])
}

// onlyAssignment gives the scalars of a result their registers, if these are the same whatever features the
// code was made for.
func onlyAssignment(r *ran, in *resultRegisters) ([]returnedPart, error) {
	var parts []returnedPart
	for i, l := range in.lowerings {
		a := assignment{resultRegisters: in, lowering: l}
		if err := a.value(r.result.Value, ""); err != nil {
			return nil, err
		}
		same := slices.EqualFunc(parts, a.parts, func(x, y returnedPart) bool { return slices.Equal(x.words, y.words) })
		if i > 0 && !same {
			return nil, errors.New("in which registers it is returned depends on what processor the code was made for")
		}
		parts = a.parts
	}
	return parts, nil
}

// registers names where a scalar lies.
func (p *returnedPart) registers(arch *machine.Arch) string {
	name := ""
	for i, w := range p.words {
		if i > 0 && w.reg == p.words[i-1].reg {
			continue
		}
		size := 8
		if resultsOf[arch].isVector(w.reg) {
			size = 16
		}
		name += ":" + arch.NameOf(w.reg, size)
		if w.off > 0 {
			name += fmt.Sprintf("+%d", w.off)
		}
	}
	return name[1:]
}
