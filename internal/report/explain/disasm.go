package explain

import (
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// Disassembly holds the instructions around a place.
type Disassembly struct {
	Instructions []Instruction `json:"instructions,omitempty"`
	Why          string        `json:"why,omitempty"` // the reason why there are no instructions, or none before the place
}

// Instruction is one instruction.
type Instruction struct {
	Address frame.Hex `json:"address"`
	Offset  *uint64   `json:"offset,omitempty"` // the offset in its function
	Bytes   string    `json:"bytes"`            // in hexadecimal
	Text    string    `json:"text"`             // as the GNU assembler spells it, or (bad)
	Here    bool      `json:"here"`             // true at the place itself
	Notes   []string  `json:"notes,omitempty"`  // e.g. the records at its address
}

// These are the numbers of instructions that are shown before the place, and from the place on.
const (
	shownBefore = 6
	shownFrom   = 7
)

// Code decodes the code around an address: at most before instructions before it, within its function, and at most from instructions starting at it,
// within its section.
func Code(v *deopt.View, at machine.Addr, before, from int) *Disassembly {
	v.Target().ReadObject(at)
	return disassembly(v.FrameAt(v.Space().At(at), at, nil), before, from)
}

// disassembly decodes the function of the frame from its start. x86-64 instructions vary in length, so their boundaries before the place are known
// only by decoding from the start.
func disassembly(f *deopt.Frame, shownBefore, shownFrom int) *Disassembly {
	out := &Disassembly{}
	arch := f.View().Target().Arch()
	of := isa.Of(arch)
	if of == nil || of.Text == nil {
		out.Why = "code of " + arch.Title + " is not disassembled"
		return out
	}
	d := disassembler{frame: f, code: isa.NewWindow(f.View().Target(), of)}
	pc := f.Place()
	start, known := startOf(f)
	switch {
	case !known:
		out.Why = "the start of its function is unknown, so the instructions before this place cannot be decoded"
	case pc-start > sites.MaxFunction:
		out.Why = fmt.Sprintf("its function starts %d bytes before", uint64(pc-start))
	default:
		before, led := lead(d.code, start, pc, shownBefore)
		if !led {
			out.Why = "decoding from the start of its function does not reach this place"
		}
		for _, at := range before {
			i, _ := d.instruction(at)
			out.Instructions = append(out.Instructions, i)
		}
	}
	for at, n := pc, 0; n < shownFrom && !d.past(at); n++ {
		i, length := d.instruction(at)
		if length == 0 {
			if n == 0 {
				out.Why = "its code cannot be read"
			}
			break
		}
		out.Instructions = append(out.Instructions, i)
		at += machine.Addr(length)
	}
	return out
}

// startOf returns the start of the frame's function. It takes the start from the function's symbol, its FDE or its stack map.
func startOf(f *deopt.Frame) (start machine.Addr, ok bool) {
	if f.Code() == nil {
		return 0, false
	}
	within := f.Physical().Lookup()
	if _, start, ok := f.SymbolAt(within); ok {
		return start, true
	}
	if t := f.Code().Unwind.Table; t != nil {
		if fde, err := t.Find(within); err == nil {
			return fde.Start, true
		}
	}
	owner := f.Code().SymbolAt(within).Owner
	return owner, owner != 0
}

// disassembler decodes the code around a frame.
type disassembler struct {
	frame *deopt.Frame
	code  *isa.Window
}

// instruction decodes one instruction. The length is 0 if the code is unreadable.
func (d *disassembler) instruction(at machine.Addr) (i Instruction, length int) {
	f := d.frame
	b := d.code.From(at)
	text, length := d.code.Text(b, at, f.View().Space().Named)
	if length == 0 {
		return i, 0
	}
	i = Instruction{Address: frame.HexOf(at), Bytes: isa.Spaced(b[:length]), Text: text, Here: at == f.Place(), Notes: d.notes(at)}
	in := *f
	if !i.Here { // only the place itself may be a return address after the end of its function
		in.Physical().PC, in.Physical().Return, in.Physical().Overwritten = at, false, nil
	}
	start, known := machine.Addr(0), false
	if f.Code() != nil && f.Code().Image == nil { // without an image only functions with records are known
		start, known = startOf(&in)
	} else if f.Code() != nil {
		_, start, known = in.SymbolAt(in.Physical().Lookup())
	}
	if known {
		offset := uint64(at - start)
		i.Offset = &offset
	}
	return i, length
}

// past reports whether an address is outside of the section that contains the place.
func (d *disassembler) past(at machine.Addr) bool {
	f := d.frame
	if f.Code() == nil || f.Code().Image == nil {
		return false
	}
	s := f.Code().Image.CodeAt(f.Physical().Lookup())
	return s != nil && at != f.Place() && !s.Contains(at)
}

// maxAt bounds the number of records that the notes of one address name.
const maxAt = 4

// placed holds, for each kind of site, the text that a note of a record adds about the record's address.
var placed = map[string]string{
	string(ir.StackMapSite): ": the point itself", string(ir.PatchPointSite): ": its region starts",
	string(ir.StatepointSite): ": its call returns here", string(ir.DeoptimizeSite): ": its call returns here",
}

// notes returns the notes of an address: the frame that returns to it, the function that starts at it, and the records at it.
func (d *disassembler) notes(at machine.Addr) []string {
	f := d.frame
	var out []string
	if f.Rule != "" && f.Physical().Return && at == f.Physical().PC {
		out = append(out, fmt.Sprintf("frame #%d returns here", f.Physical().Index))
	}
	if _, starts := f.View().Space().StartingAt(at); starts {
		out = append(out, f.View().Space().Named(at)+" starts")
	}
	if f.Code() == nil || f.Code().Records == nil {
		return out
	}
	for n, span := 0, f.Code().Records.At(at); n < min(span.Len(), maxAt); n++ {
		e := span.Entry(n)
		r := near(f, sites.RecordEntry{Entry: e, Record: e.Record()})
		out = append(out, fmt.Sprintf("record %d%s", r.ID, placed[r.Site]))
	}
	if m := f.Match(); m != nil && m.Site != nil && m.Site.PatchBytes > 0 && at == m.Entry.Addr+machine.Addr(m.Site.PatchBytes) {
		out = append(out, fmt.Sprintf("the region of record %d ends, %d bytes", uint64(m.Entry.Record.ID), m.Site.PatchBytes))
	}
	return out
}

// lead decodes the instructions from start to an address, and returns the addresses of the last ones before it, at most most of them. ok is false if
// that address is not an instruction boundary.
func lead(w *isa.Window, start, to machine.Addr, most int) (last []machine.Addr, ok bool) {
	for at := start; at != to; {
		b := w.From(at)
		if at > to || len(b) == 0 {
			return nil, false
		}
		if last = append(last, at); len(last) > most {
			last = last[1:]
		}
		at += machine.Addr(max(w.Length(b), 1)) // Text also prints an undecodable byte as one instruction
	}
	return last, true
}
