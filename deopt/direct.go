package deopt

import (
	"cmp"
	"fmt"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
)

var errDisagree = frame.Because(frame.DirectUnknown, "the records of the function have it in different places")

// fillDirect adds the variables that other records of the frame's function locate by address. LLVM permits that: "the runtime can determine this
// alloca's relative location on the stack immediately after compilation, or at any time thereafter" ("Direct Stack Map Entries").
func (f *Frame) fillDirect(name string, owner machine.Addr) {
	if !f.view.showDirect || f.code.Records == nil || owner == 0 || f.physical.Undecided() || f.physical.Overwritten != nil {
		return
	}
	places := f.view.directPlaces(f.code, name, owner)
	for k := range places {
		f.Direct = append(f.Direct, f.direct(&places[k]))
	}
}

// direct reads one variable.
func (f *Frame) direct(p *directPlace) frame.Direct {
	out := frame.Direct{Location: stackmap.LocationOf(p.entry.Map, p.location, f.view.target.Arch()), Record: uint64(p.entry.Record.ID), Records: p.records, Status: frame.Missing}
	if p.value != nil {
		out.Name = p.value.Ref()
		out.Type = interp.FrameType(p.site.Func.Module.Layout, p.content())
		if all := f.view.modules.Variables(p.site); p.number < len(all) {
			out.Variable = strings.TrimPrefix(all[p.number], "&")
		}
	}
	if err := f.readDirect(&out, p); err != nil {
		out.Code, out.Reason = frame.CodeOf(err), err.Error()
	}
	return out
}

// readDirect reads the content of a variable. The error is the reason why the content is missing or a guess.
func (f *Frame) readDirect(out *frame.Direct, p *directPlace) error {
	if p.err != nil {
		return unknownPlace(p.err)
	}
	at, err := f.view.unwinder.AddressIn(&f.physical, p.place)
	if err != nil {
		return unknownPlace(err)
	}
	out.Address, out.Place = frame.HexOf(at), p.place.String()
	if err := f.outOfFrame(at); err != nil {
		return err
	}
	if why := cmp.Or(p.shared, p.unsized(out.Type), p.misaligned(at)); why != "" {
		return frame.Because(frame.DirectUnknown, why)
	}
	arch := f.view.target.Arch()
	b := make([]byte, out.Type.Size())
	if err := f.view.memory.ReadMemory(b, at); err != nil {
		return err
	}
	b = mask(b, out.Type, arch)
	out.Status, out.Hex, out.Value = frame.OK, frame.HexBytes(b, arch.Order), out.Type.Format(b, arch.Order)
	why := f.WhyUncertain()
	if why == nil {
		why = p.dead
	}
	if why != nil {
		out.Status = frame.Guessed
	}
	return why
}

// unknownPlace returns err, the reason why the place of a variable is unknown. The general code [frame.Unreadable] is replaced by
// [frame.DirectUnknown].
func unknownPlace(err error) error {
	if frame.CodeOf(err) == frame.Unreadable {
		return frame.Because(frame.DirectUnknown, err.Error())
	}
	return err
}

// outOfFrame returns the reason why an address is not in the frame at this pc, or nil. Memory below the stack pointer is not yet reserved by the
// prologue, or already released by the epilogue. Memory from the CFA up belongs to the caller; a tail call may have put its arguments there.
func (f *Frame) outOfFrame(at machine.Addr) error {
	arch := f.view.target.Arch()
	sp, err := f.physical.Registers.Addr(arch.SP)
	switch {
	case err != nil:
		return err
	case at < sp:
		return frame.Because(frame.NotInFrame, "it is below the stack pointer: the prologue has yet to reserve it, or the epilogue has released it")
	case at >= f.physical.CFA && !f.physical.Return:
		return frame.Because(frame.NotInFrame, "it is in the memory of the caller, where the arguments of a tail call may be")
	}
	return nil
}

// content returns the type of the variable at the place.
func (p *directPlace) content() *ir.Type {
	switch v := p.value.(type) {
	case *ir.Param:
		return v.Attrs.ByVal
	case *ir.Instr:
		if len(v.Args) == 0 {
			return v.Elem
		}
		if n := v.Args[0].(*ir.Const); n.Kind == ir.ConstInt && n.Int.IsUint64() && n.Int.Uint64() != 1 {
			return &ir.Type{Kind: ir.ArrayKind, Elem: v.Elem, Len: n.Int.Uint64()}
		}
		return v.Elem
	}
	return nil
}

// unsized returns the reason why the size of the content is unknown or not supported, or "".
func (p *directPlace) unsized(t frame.Type) string {
	switch {
	case p.value == nil:
		return "no module names the variable there"
	case t.IsZero() || t.Size() == 0:
		return fmt.Sprintf("a value of type %s is not read", t.Source)
	}
	return ""
}

// misaligned returns the reason why a variable of the module cannot be at an address, or "".
func (p *directPlace) misaligned(at machine.Addr) string {
	if i, ok := p.value.(*ir.Instr); ok && i.Align > 1 && uint64(at)%uint64(i.Align) != 0 {
		return fmt.Sprintf("the module aligns it to %d bytes, but the address is not aligned", i.Align)
	}
	return ""
}

// mayBeDead returns the reason why a variable may have no content at some pc, or nil. LLVM gives the same memory to variables with disjoint lifetimes
// in the module (StackColoring.cpp).
func (p *directPlace) mayBeDead() error {
	i, ok := p.value.(*ir.Instr)
	if !ok {
		return nil
	}
	blocks, err := i.Block.Func.Body()
	if err != nil {
		return err
	}
	for _, b := range blocks {
		for _, c := range b.Instrs {
			if c.Call == nil || !strings.HasPrefix(sites.CalledName(c), "llvm.lifetime.") {
				continue
			}
			for _, arg := range c.Args {
				if inFrame(arg) == p.value {
					return frame.Because(frame.MayBeDead)
				}
			}
		}
	}
	return nil
}

// sharing returns the reason why place k may hold another variable, or "".
func (d *directFinder) sharing(k int) string {
	p := &d.places[k]
	for n := range d.places {
		q := &d.places[n]
		if n == k || p.err != nil || q.err != nil {
			continue
		}
		bytes, known := q.place.Near(p.place)
		if !known || bytes >= p.bytes() || -bytes >= q.bytes() {
			continue
		}
		name := "another variable"
		if q.value != nil {
			name = q.value.Ref()
		}
		return fmt.Sprintf("%s overlaps it in memory, and which of them is live is unknown", name)
	}
	return ""
}

// bytes returns the size of the variable at the place, or 1 if it is unknown.
func (p *directPlace) bytes() int64 {
	const most = 1 << 31
	if p.value == nil {
		return 1
	}
	return int64(max(1, min(most, p.site.Func.Module.Layout.Size(p.content()))))
}
