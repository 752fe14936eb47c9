package vmlayout

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// Source holds the data from which the tokens of a shape are read at an exit.
type Source struct {
	Slots  []frame.Slot   // the slots of the record; slot k is live value k
	Memory machine.Memory // the memory from which values are read, at the time of the exit
	Static machine.Memory // the memory from which names and info are read, at the same time
	// Fixed reports whether memory cannot change as long as it is mapped: then it is read once. If Fixed is nil, all memory may change.
	Fixed func(machine.Addr, int) bool
	Names *NamesRead // collects how names are read; nil for no collection
	Order binary.ByteOrder
	Spent time.Duration // time spent on frames of the VM's interpreter while the target is stopped

	names  map[nameKey]answered // cache of the results of the layout's functions
	loads  int
	codecs *spent // what codecs have used so far; nil outside of [Shape.Read]
	pairs  bool   // the record lists at least one slot for the collector

	symbol func(name string) (machine.Addr, bool, error) // while frames are made and objects are read; else nil
}

// NamesRead describes how the names, the info and the texts of exits were read.
type NamesRead struct {
	Asked    bool   // a function of a layout was called, or its earlier result used
	Varying  bool   // some came from memory that may change
	Failed   bool   // some memory could not be read
	Computed bool   // some belong to a value that is not a constant of the record: other hits of the record may read other memory
	Parts    []Part // the memory that may change; it may contain a part twice
}

// add adds the memory that a call read.
func (n *NamesRead) add(seen *footprint) {
	if n == nil || seen.empty() {
		return
	}
	n.Varying = true
	n.Parts = append(n.Parts, seen.parts...)
	for _, p := range seen.parts {
		n.Failed = n.Failed || p.Lost != nil
	}
}

// compute adds a name that belongs to a value.
func (n *NamesRead) compute(constant bool) {
	if n != nil {
		n.Computed = n.Computed || !constant
	}
}

// constant reports whether a value is the same at each hit of its record.
func (from *Source) constant(v *Value) bool {
	switch v.Kind {
	case ConstValue:
		return true
	case OperandValue:
		if v.Operand >= len(from.Slots) {
			return true
		}
		l := from.Slots[v.Operand].Location
		return l != nil && (l.Kind == "Constant" || l.Kind == "ConstantIndex")
	case ComputedValue:
		return !slices.ContainsFunc(v.Parts, func(part Value) bool { return !from.constant(&part) })
	}
	return false
}

// Moved returns a source that reads the same target at another time, through other memory. It keeps the caches.
func (from *Source) Moved(m, static machine.Memory) *Source {
	if from.names == nil {
		from.names = map[nameKey]answered{}
	}
	return &Source{Memory: m, Static: static, Fixed: from.Fixed, Order: from.Order, names: from.names}
}

// Forget drops the cache of names, because memory may have been unmapped.
func (from *Source) Forget() { clear(from.names) }

// nameKey identifies a call of a function of a layout.
type nameKey struct {
	layout   *Layout
	of       string // method, class or info
	bits     uint64
	position int64 // position in the method; only for info
}

// answered is the result of the call that a nameKey identifies.
type answered struct {
	text string
	info map[string]string
	seen *footprint // the memory that was read and may change
}

// ask returns the result of a call of a layout's function. It repeats an earlier call only if memory that the call read has changed.
func (from *Source) ask(key nameKey, call func(*Source) (answered, error)) (answered, error) {
	if from.Names != nil {
		from.Names.Asked = true
	}
	if known, ok := from.names[key]; ok && known.seen.holds(&Target{Memory: from.Static}) {
		from.Names.add(known.seen)
		return known, nil
	}
	seen := &footprint{memory: from.Static}
	watched := *from
	if from.Static != nil {
		watched.Static = seen
	}
	out, err := call(&watched)
	if from.Fixed != nil {
		seen.parts = slices.DeleteFunc(seen.parts, func(p Part) bool { return p.Lost == nil && from.Fixed(p.At, len(p.Data)) })
	}
	seen.end()
	seen.memory = nil
	out.seen = seen
	from.Names.add(seen)
	if err != nil {
		return out, err
	}
	if from.names == nil {
		from.names = map[nameKey]answered{}
	}
	if len(from.names) < maxNames {
		from.names[key] = out
	}
	return out, nil
}

// These bound the reads at one exit, because the counts in the target's memory are hostile.
const (
	maxRow   = 1 << 12 // values of one row
	maxLoads = 1 << 16 // values at one exit
	maxNames = 1 << 16 // cached names
)

// raw holds the bits of a token and their source.
type raw struct {
	bits   uint64
	have   int    // number of known bits
	typed  string // type of the slot in its module
	slot   *frame.Slot
	status frame.Status
	why    error // the reason unless status is [frame.OK]
}

// unread returns the reason why a value cannot be read as the layout requires.
func unread(format string, args ...any) error {
	return frame.Because(frame.LayoutUnread, frame.Errorf(format, args...))
}

// without returns a value that is missing for a reason.
func without(status frame.Status, why error) (v frame.VMValue) {
	v.Clear(status, why)
	return v
}

// Read reads the values of a shape's tokens.
func (s *Shape) Read(from *Source) *frame.VM {
	out := &frame.VM{Layout: s.Layout.Name}
	from.loads, from.codecs, from.pairs = 0, &spent{}, false
	for k := range from.Slots {
		from.pairs = from.pairs || from.Slots[k].GC != nil
	}
	for n := range s.Frames {
		f := &s.Frames[n]
		is := frame.VMFrame{Resume: f.Resume}
		var method *subject
		var why error
		if is.Method, is.MethodBits, method, why = s.name(from, "method", f.Method); why != nil {
			is.Reason = why.Error()
		}
		unread := method == nil && why != nil
		if f.Position != nil {
			got := from.raw(f.Position)
			if got.status != frame.OK {
				is.Reason = join(is.Reason, "its position: "+got.why.Error())
			} else {
				p := got.signed(f.Position)
				is.Position = &p
				if !unread {
					from.Names.compute(!s.Layout.has("info") || from.constant(f.Position))
					is.Info = s.info(from, is.MethodBits, p, &is)
				}
			}
		}
		is.Locals = from.all(f.Locals)
		var stack int
		is.Stack, stack = from.allCounted(f.Stack)
		is.Notes = append(is.Notes, s.nameAll(from, "local", method, is.Locals)...)
		for k := range f.Monitors {
			m := frame.VMMonitor{Eliminated: f.Monitors[k].Eliminated}
			m.Owner = from.value(&f.Monitors[k].Owner)
			is.Monitors = append(is.Monitors, m)
		}
		for _, why := range unexpected(f.Resume, stack, len(is.Monitors), is.Info) {
			is.Reason, is.Mismatch = join(is.Reason, why.String()), join(is.Mismatch, why.String())
		}
		for k := range f.Extra {
			if is.Extra == nil {
				is.Extra = map[string]frame.VMValue{}
			}
			is.Extra[f.Extra[k].Name] = from.value(&f.Extra[k].Value)
		}
		out.Frames = append(out.Frames, is)
	}
	for n := range s.Objects {
		o := &s.Objects[n]
		is := frame.VMObject{ID: o.ID}
		var class *subject
		var why error
		if is.Class, is.ClassBits, class, why = s.name(from, "class", o.Class); why != nil {
			is.Reason = why.Error()
		}
		elements := map[int64]bool{}
		for k := range o.Fields {
			elements[o.Fields[k].At] = o.Fields[k].Element
		}
		values := from.all(o.Fields)
		if why := s.nameAll(from, "field", class, values); len(why) > 0 && len(out.Frames) > 0 {
			out.Frames[0].Notes = append(out.Frames[0].Notes, why...)
		}
		for _, v := range values {
			at := *v.Index
			v.Index = nil
			is.Fields = append(is.Fields, frame.VMField{At: at, Element: elements[at], VMValue: v})
		}
		out.Objects = append(out.Objects, is)
	}
	s.describeAll(from, out)
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// name returns the name of a method or a class: from the layout's function, or else from the record. of is nil if the method or class could not be
// read.
func (s *Shape) name(from *Source, what string, v *Value) (name string, bits uint64, of *subject, why error) {
	if v == nil {
		return "", 0, nil, nil
	}
	if v.Kind == ConstValue && v.Const.Type == "symbol" {
		return v.Const.Text, 0, &subject{Name: v.Const.Text, Named: true}, nil
	}
	got := from.raw(v)
	if got.status != frame.OK {
		return "", 0, nil, frame.Errorf("its %s: %w", what, got.why)
	}
	text := string(frame.HexOf(got.bits))
	of = &subject{Bits: got.bits, Name: text}
	if !s.Layout.has(what) {
		return text, got.bits, of, nil
	}
	from.Names.compute(from.constant(v))
	named, err := from.ask(nameKey{s.Layout, what, got.bits, 0}, func(from *Source) (out answered, err error) {
		out.text, err = s.Layout.nameOf(what, from, got.bits)
		return out, err
	})
	if err != nil && got.bits == 0 { // in many encodings 0 does not denote a method, and has no name
		return text, 0, nil, nil
	}
	if err != nil {
		return text, got.bits, of, frame.Errorf("the name of its %s: %w", what, err)
	}
	of.Name = named.text
	return named.text, got.bits, of, nil
}

// info returns the layout's info for a position.
func (s *Shape) info(from *Source, method uint64, position int64, f *frame.VMFrame) map[string]string {
	if !s.Layout.has("info") {
		return nil
	}
	out, err := from.ask(nameKey{s.Layout, "info", method, position}, func(from *Source) (out answered, err error) {
		out.info, err = s.Layout.infoOf(from, method, position)
		return out, err
	})
	if err != nil {
		f.Notes = append(f.Notes, "info of its position: "+err.Error())
		return nil
	}
	return out.info
}

// all reads values with their places.
func (from *Source) all(list []Placed) []frame.VMValue {
	out, _ := from.allCounted(list)
	return out
}

// allCounted is like all. It also returns the number of values, or unknownCount if the length of a row is unavailable.
func (from *Source) allCounted(list []Placed) (out []frame.VMValue, count int) {
	if len(list) == 0 {
		return nil, 0
	}
	out = make([]frame.VMValue, 0, len(list))
	for k := range list {
		p := &list[k]
		if p.Run != nil {
			known := false
			if out, known = from.row(out, p); !known {
				count = unknownCount
			}
			continue
		}
		is, at := from.value(&p.Value), p.At
		is.Index, is.Name = &at, p.Name
		out = append(out, is)
	}
	if count == unknownCount {
		return out, count
	}
	return out, len(out)
}

// row adds the values of a row in memory, and reports whether their number was read.
func (from *Source) row(out []frame.VMValue, p *Placed) ([]frame.VMValue, bool) {
	n := from.raw(&p.Run.Count)
	if n.status == frame.OK && n.bits > maxRow {
		n.status, n.why = frame.Missing, unread("a row of %d values; the limit is %d", n.bits, maxRow)
	}
	if n.status != frame.OK {
		is, at := without(n.status, frame.Errorf("their number: %w", n.why)), p.At
		is.Index, is.Name = &at, p.Name
		return append(out, is), false
	}
	mask := raw{}
	for i := range n.bits {
		v := p.Value
		v.Offset += int64(i) * p.Run.Stride
		v.Parts = slices.Clone(v.Parts)
		for k := range v.Parts {
			v.Parts[k].Offset += int64(i) * p.Run.Stride
		}
		if p.Run.Refs != nil {
			if i%64 == 0 {
				word := *p.Run.Refs
				word.Offset += int64(i / 8)
				mask = from.raw(&word)
			}
			if mask.bits>>(i%64)&1 != 0 {
				v.As = "ref"
			}
		}
		is := from.value(&v)
		if mask.status == frame.Missing {
			is.Clear(frame.Missing, frame.Errorf("whether it is a reference: %w", mask.why))
		}
		at := p.At + int64(i)
		is.Index, is.Name = &at, p.Name
		out = append(out, is)
	}
	return out, true
}

// value reads one token.
func (from *Source) value(v *Value) frame.VMValue {
	switch v.Kind {
	case DeadValue:
		return frame.VMValue{Status: frame.Dead}
	case ObjectValue:
		id := v.Object
		return frame.VMValue{Object: &id}
	case ConstValue:
		out := frame.VMValue{Status: frame.OK}
		from.decoded(&out, v.Const)
		return out
	case MergeValue:
		n := from.raw(v.Which)
		if n.status == frame.OK && n.bits >= uint64(len(v.Of)) {
			n.status, n.why = frame.Missing, unread("it selects object %[2]d of %[1]d", len(v.Of), n.bits)
		}
		if n.status != frame.OK {
			return without(n.status, n.why)
		}
		id := v.Of[n.bits]
		return frame.VMValue{Object: &id}
	}
	if v.Kind == WordsValue {
		return from.words(v)
	}
	got := from.raw(v)
	out := from.typed(v, got)
	if v.Kind == OperandValue && got.slot != nil {
		out.GC = from.collected(&out, got.slot)
	}
	return out
}

// collected returns the role of a reference for the collector, according to the record. A record that lists any reference lists all that are neither
// null nor constant.
func (from *Source) collected(v *frame.VMValue, s *frame.Slot) *frame.GC {
	switch {
	case !strings.HasPrefix(v.Type, "ref") && !strings.Contains(v.Type, "addrspace("), s.Location != nil && s.Location.Constant != "":
		return nil
	case s.GC != nil || v.Value == "0x0":
		return s.GC
	case from.pairs:
		return &frame.GC{}
	}
	return nil
}

// typed converts the bits of a token.
func (from *Source) typed(v *Value, got raw) frame.VMValue {
	out := frame.VMValue{Status: got.status}
	if got.why != nil {
		out = without(got.status, got.why)
	}
	out.Type = v.As
	if got.slot != nil {
		index := got.slot.Index
		out.Slot = &index
	}
	if out.Type == "" {
		out.Type = got.typed
	}
	if got.status != frame.OK && got.status != frame.Guessed {
		return out
	}
	if got.slot != nil && v.As == "" && v.Codec == nil { // keep the text of the slot, which may be a vector or a wide number
		out.Value, out.Hex, out.Kind, out.Bytes = got.slot.Value, got.slot.Hex, got.slot.Type, got.slot.Bytes
		return out
	}
	if out.Hex = got.hex(v); out.Hex == "" {
		out.Hex = frame.HexOf(got.bits)
	}
	if v.Codec == nil {
		from.decoded(&out, Typed{Type: v.As, Bits: got.bits})
		return out
	}
	is, err := decode(v.Codec, from, []uint64{got.bits})
	if err != nil {
		out.Clear(frame.Missing, unread("its bits %s: %v", out.Hex, err))
		out.Type = ""
		return out
	}
	from.decoded(&out, is)
	if is.Type == "ref" && is.Text != "" {
		out.Type += " " + is.Text
	}
	return out
}

// hex returns the bits of a slot if the value consists of the whole slot; otherwise "".
func (r *raw) hex(v *Value) frame.Hex {
	if v.Kind != OperandValue || v.As != "" || r.slot == nil || len(r.slot.Bytes) > 8 {
		return ""
	}
	return r.slot.Hex
}

// decoded sets the type, text and bits of a value.
func (from *Source) decoded(v *frame.VMValue, is Typed) {
	v.Type = is.Type
	t, ok := is.Kind()
	if !ok {
		v.Value = is.String()
		return
	}
	v.Kind, v.Bytes = t, make([]byte, t.Size())
	for i := range v.Bytes {
		at := i
		if from.Order == binary.ByteOrder(binary.BigEndian) {
			at = len(v.Bytes) - 1 - i
		}
		v.Bytes[at] = byte(is.Bits >> (8 * i))
	}
	if v.Value = is.named(); v.Value == "" {
		v.Value = t.Format(v.Bytes, from.Order)
	}
}

// raw reads the bits of a token.
func (from *Source) raw(v *Value) raw {
	missing := func(why error) raw { return raw{status: frame.Missing, why: why} }
	switch v.Kind {
	case ConstValue:
		return raw{bits: v.Const.Bits, have: max(widths[v.Const.Type], 1), status: frame.OK}
	case OperandValue:
		if v.Operand >= len(from.Slots) {
			return missing(unread("live value %d of %d", v.Operand, len(from.Slots)))
		}
		s := &from.Slots[v.Operand]
		r := raw{slot: s, typed: s.Type.Source, status: s.Status, why: s.Why(), have: 8 * len(s.Bytes)}
		if s.Type.Kind == frame.Int && s.Type.Bits > 1 {
			r.have = min(r.have, s.Type.Bits) // an i20 has 3 bytes, of which 4 bits are not part of the value
		}
		if r.why == nil && s.Status != frame.OK {
			r.why = unread("it is %s", s.Status)
		}
		if !s.Read() {
			return r
		}
		if v.As == "" && v.Codec == nil && len(s.Bytes) > 8 {
			return r // a value of more than 8 bytes: the slot already has its text
		}
		if v.Extend != "" {
			if why := v.unwidened(s.Type); why != nil {
				return raw{slot: s, status: frame.Missing, why: unread("%v", why)}
			}
			r.bits, r.have = v.widened(wordOf(s.Bytes, from.Order), s.Type), widths[v.As]
			return r
		}
		if want := widths[v.As]; want > 8*len(s.Bytes) {
			return raw{slot: s, status: frame.Missing, why: unread("it is %s in the layout, but slot %d has %d bytes", v.As, s.Index, len(s.Bytes))}
		}
		if len(s.Bytes) > 8 {
			// Ignore the register bits above the value's width.
			if s.Location == nil || s.Location.Kind != "Register" {
				return raw{slot: s, status: frame.Missing, why: unread("slot %d has %d bytes; a value of a VM frame has at most 8", s.Index, len(s.Bytes))}
			}
		}
		r.bits = wordOf(s.Bytes, from.Order)
		if v.As != "" {
			r.bits, r.have = cut(r.bits, v.As), widths[v.As]
		}
		return r
	case ComputedValue:
		return from.computed(v)
	case WordsValue:
		return missing(unread("a value of several words is not a number"))
	case LoadValue:
		if from.loads++; from.loads > maxLoads {
			return missing(unread("over %d values in memory", maxLoads))
		}
		base := from.raw(v.Base)
		if base.status != frame.OK {
			return missing(frame.Errorf("its address: %w", base.why))
		}
		at := base.bits + uint64(v.Offset)
		if v.Index != nil {
			n := from.raw(v.Index)
			if n.status != frame.OK {
				return missing(frame.Errorf("its address: %w", n.why))
			}
			at += uint64(n.signed(v.Index) * v.Scale)
		}
		bits, err := from.word(from.Memory, at, v.As)
		if err != nil {
			return missing(frame.Errorf("%s at %v: %w", v.As, machine.Addr(at), err))
		}
		return raw{bits: bits, have: widths[v.As], typed: v.As, status: frame.OK}
	}
	return missing(unread("an object is not a number"))
}

// word reads a value of a type from memory. The bits above it are zero.
func (from *Source) word(m machine.Memory, at uint64, kind string) (uint64, error) {
	var b [8]byte
	n := (widths[kind] + 7) / 8
	if err := m.ReadMemory(b[:n], machine.Addr(at)); err != nil {
		return 0, err
	}
	return cut(wordOf(b[:n], from.Order), kind), nil
}

// wordOf returns the low 64 bits of bytes.
func wordOf(b []byte, order binary.ByteOrder) (bits uint64) {
	for i := range b {
		switch {
		case order == binary.ByteOrder(binary.BigEndian):
			bits = bits<<8 | uint64(b[i])
		case i < 8:
			bits |= uint64(b[i]) << (8 * i)
		}
	}
	return bits
}
