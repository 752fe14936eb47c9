package abi

import (
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// argumentRegisters holds the argument registers in the order in which they are assigned.
type argumentRegisters struct {
	integers, floats []machine.DWARFReg
	result           *machine.DWARFReg // holds the address of a result in memory; nil if that address is an ordinary argument
	pushed           uint64            // bytes between the stack pointer and the stack arguments at function entry
}

var arm64Result machine.DWARFReg = 8

// argumentRegistersOf follows the System V ABI, AMD64 supplement, 3.2.3, and AAPCS64, 6.8.2 and 6.9.
var argumentRegistersOf = map[*machine.Arch]argumentRegisters{
	machine.AMD64: {
		integers: []machine.DWARFReg{dwRDI, dwRSI, dwRDX, dwRCX, dwR8, dwR9},
		floats:   vectorRegisters(0, 7),
		pushed:   word, // the return address
	},
	machine.ARM64: {
		integers: []machine.DWARFReg{0, 1, 2, 3, 4, 5, 6, 7},
		floats:   []machine.DWARFReg{64, 65, 66, 67, 68, 69, 70, 71},
		result:   &arm64Result,
	},
}

// ArgumentWord is the location of one word of an argument at function entry: a register, or an offset in bytes from the start of the stack arguments.
type ArgumentWord struct {
	Register machine.DWARFReg
	OnStack  bool
	Offset   uint64
}

// Argument describes an argument and its location at function entry, before the first instruction.
type Argument struct {
	Type *ir.Type
	// Why is the reason why the location is unknown, or "".
	Why   string
	words []ArgumentWord
	// memory reports whether the argument is memory on the stack (byval); its value is then the address.
	memory bool
	arch   *machine.Arch
	layout *ir.DataLayout
}

// Signature holds the properties of a function that determine the places of its arguments.
type Signature struct {
	Layout *ir.DataLayout
	CC     string // as in the IR
	Types  []*ir.Type
	Attrs  []ir.ParamAttrs // attributes of the types; may be shorter
}

// SignatureOf returns the signature of a function.
func SignatureOf(f *ir.Func) Signature {
	s := Signature{Layout: f.Module.Layout, CC: f.CC}
	for _, p := range f.Params {
		s.Types, s.Attrs = append(s.Types, p.Typ), append(s.Attrs, *p.Attrs)
	}
	return s
}

// argumentConventions lists the conventions that place arguments as C does (X86CallingConv.td, CC_X86_64; AArch64CallingConvention.td, CC_AArch64_AAPCS).
var argumentConventions = []string{"", "ccc", "fastcc", "coldcc", "tailcc", "preserve_mostcc", "preserve_allcc"}

// Arguments returns the places of a function's arguments at its entry. If the place of an argument is unknown, or differs between releases of LLVM, its Why
// holds the reason; the other arguments are not affected.
func Arguments(s Signature, arch *machine.Arch) []Argument {
	out := make([]Argument, len(s.Types))
	rules := argumentsOf[arch]
	apart := slices.ContainsFunc(s.Attrs, func(a ir.ParamAttrs) bool { return a.Apart || a.InAlloca != nil || a.Preallocated != nil })
	for k, t := range s.Types {
		out[k] = Argument{Type: t, arch: arch, layout: s.Layout}
		switch {
		case len(rules) == 0:
			out[k].Why = "the argument registers of " + arch.Title + " are not known"
		case !slices.Contains(argumentConventions, s.CC):
			out[k].Why = "the calling convention " + s.CC
		case apart:
			out[k].Why = "an attribute of a parameter changes the places of arguments"
		}
	}
	for n, r := range rules {
		a := newArguments(r, s.Layout, arch)
		for k, t := range s.Types {
			attrs := ir.ParamAttrs{}
			if k < len(s.Attrs) {
				attrs = s.Attrs[k]
			}
			a.give(t, attrs)
			switch arg := &out[k]; {
			case arg.Why != "":
			case attrs.ByVal == nil && !placed(t, s.Layout):
				arg.Why = fmt.Sprintf("cannot tell where an argument of type %v is", t)
			case n == 0:
				arg.words, arg.memory = a.words, attrs.ByVal != nil
			case !slices.Equal(arg.words, a.words):
				arg.Why = "releases of LLVM pass it in different places"
			}
		}
	}
	return out
}

// placed reports whether the location of an argument of this type is known.
func placed(t *ir.Type, layout *ir.DataLayout) bool {
	switch t.Kind {
	case ir.IntKind:
		return t.Bits <= 128
	case ir.PointerKind, ir.FloatKind, ir.DoubleKind:
		return true
	case ir.VectorKind: // other sizes than that of a register are unknown: LLVM widens narrower vectors in several ways
		bits := BitWidth(t.Elem)
		return layout.Size(t) == 16 && bits >= 8 && bits&(bits-1) == 0
	}
	return false
}

// Read returns the value of the argument; regs are the registers at function entry.
func (a *Argument) Read(regs *machine.Registers, mem machine.Memory) (v interp.Value, err error) {
	if a.Why != "" {
		return v, frame.Because(frame.ResultElsewhere, a.Why)
	}
	sp, err := regs.Addr(a.arch.SP)
	if err != nil {
		return v, err
	}
	sp += machine.Addr(argumentRegistersOf[a.arch].pushed)
	size := int(a.layout.StoreSize(a.Type))
	if a.memory {
		raw := make([]byte, word)
		a.arch.PutUint(raw, uint64(sp)+a.words[0].Offset)
		return interp.FromBytes(a.layout, a.Type, raw[:size])
	}
	var raw []byte
	for n, w := range a.words {
		part := make([]byte, min(size-len(raw), max(word, size/len(a.words))))
		if w.OnStack {
			err = mem.ReadMemory(part, sp+machine.Addr(w.Offset))
		} else {
			var b []byte
			if b, err = regs.Bytes(w.Register); err == nil && copy(part, b) < len(part) {
				err = frame.Because(frame.PartBytes, a.arch.NameOf(w.Register, 16), len(b))
			}
		}
		if err != nil {
			return v, fmt.Errorf("word %d: %w", n+1, err)
		}
		raw = append(raw, part...)
	}
	return interp.FromBytes(a.layout, a.Type, raw)
}

// Where returns the registers or the stack offsets of the argument as text.
func (a *Argument) Where() string {
	text := ""
	for n, w := range a.words {
		if n > 0 {
			text += ":"
		}
		switch {
		case w.OnStack:
			text += fmt.Sprintf("stack+%d", w.Offset)
		default:
			text += a.arch.NameOf(w.Register, int(min(16, a.layout.StoreSize(a.Type))))
		}
	}
	return text
}

// SameBits reports whether a native value equals the interpreter's. Undefined bits equal any bits, and NaNs equal each other.
func SameBits(v, native interp.Value) bool {
	if v.Type().Kind == ir.VectorKind {
		for i := range v.Len() {
			a, _ := v.Elem(i)
			b, ok := native.Elem(i)
			if !ok || !SameBits(a, b) {
				return false
			}
		}
		return true
	}
	want, unknown := v.Bits()
	have, _ := native.Bits()
	for i := range want {
		if i >= len(have) || (want[i]^have[i])&^unknown[i] != 0 {
			return isNaN(v) && isNaN(native)
		}
	}
	return true
}
