package interp

import (
	"slices"

	"example.com/reframe/internal/machine"
)

// typeKind identifies the class of a std::type_info object (Itanium C++ ABI 2.9.5).
type typeKind uint8

const (
	plainType typeKind = iota // fundamental types, arrays, functions, enumerations
	functionType
	classType  // a class without bases
	singleType // a class with one public base at offset 0
	multipleType
	pointerType
	memberType // a pointer to a member
)

// typeTables maps the vtables of the type_info classes to their kinds.
var typeTables = map[string]typeKind{
	"_ZTVN10__cxxabiv123__fundamental_type_infoE": plainType, "_ZTVN10__cxxabiv117__array_type_infoE": plainType,
	"_ZTVN10__cxxabiv116__enum_type_infoE": plainType, "_ZTVN10__cxxabiv120__function_type_infoE": functionType,
	"_ZTVN10__cxxabiv117__class_type_infoE": classType, "_ZTVN10__cxxabiv120__si_class_type_infoE": singleType,
	"_ZTVN10__cxxabiv121__vmi_class_type_infoE": multipleType, "_ZTVN10__cxxabiv119__pointer_type_infoE": pointerType,
	"_ZTVN10__cxxabiv129__pointer_to_member_type_infoE": memberType,
}

// typeInfo is a std::type_info.
type typeInfo struct {
	addr machine.Addr
	kind typeKind
	name string
}

// Flags of pointer types, of classes with several bases, and of their bases.
const (
	constFlag      = 1
	qualifierFlags = 7
	effectFlags    = 0x60 // the pointee is transaction_safe or noexcept
	virtualFlag    = 1
	publicFlag     = 2
)

// maxBases bounds the visited bases of one class, and maxLevels the depth of bases and of pointers: in a hostile module, a class can be its own base.
const (
	maxBases  = 1 << 12
	maxLevels = 100
)

func (in *Interp) wordSize() machine.Addr { return machine.Addr(in.layout.PointerBytes(0)) }

func (in *Interp) readUint(a machine.Addr, size machine.Addr) (uint64, error) {
	p := make([]byte, size)
	if err := in.view.read(p, nil, a); err != nil {
		return 0, err
	}
	return in.opt.Arch.Uint(p), nil
}

func (in *Interp) readWord(a machine.Addr) (machine.Addr, error) {
	v, err := in.readUint(a, in.wordSize())
	return machine.Addr(v), err
}

// typeAt reads a type_info.
func (in *Interp) typeAt(a machine.Addr) (typeInfo, error) {
	t := typeInfo{addr: a}
	if err := in.work(64); err != nil {
		return t, err
	}
	table, err := in.readWord(a)
	if err != nil {
		return t, err
	}
	name, err := in.readWord(a + in.wordSize())
	if err != nil {
		return t, err
	}
	if in.clib.typeKinds == nil {
		in.clib.typeKinds = map[machine.Addr]typeKind{}
		for name, kind := range typeTables {
			if a, err := in.runtimeAddr(name); err == nil {
				in.clib.typeKinds[a+2*in.wordSize()] = kind
			}
		}
	}
	kind, ok := in.clib.typeKinds[table]
	if !ok {
		return t, unsupported("", "the class of the type_info at %v", a)
	}
	text, err := in.cstring(name, 1<<16)
	t.kind, t.name = kind, string(text)
	return t, err
}

// is reports whether t and u are the same type. It compares their names, or their addresses if a type is local to a module.
func (t typeInfo) is(u typeInfo) bool {
	return t.addr == u.addr || t.name == u.name && (t.name == "" || t.name[0] != '*')
}

// catches reports whether a handler accepts an exception. t is the address of the handler's type, 0 for catch(...). It also returns the value passed
// to the handler: the address of the object or of its base, or the thrown pointer.
func (in *Interp) catches(t machine.Addr, x *exception) (machine.Addr, bool, error) {
	if t == 0 {
		return x.object, true, nil
	}
	if x.of == nil {
		return 0, false, nil
	}
	handler, err := in.typeAt(t)
	if err != nil {
		return 0, false, err
	}
	threw, err := in.typeAt(x.of.typ)
	if err != nil {
		return 0, false, err
	}
	at := x.object
	if threw.kind == pointerType {
		if at, err = in.readWord(at); err != nil {
			return 0, false, err
		}
	}
	return in.converts(threw, handler, at, 1)
}

// converts reports whether a handler of type to accepts a value of type from, and returns the adjusted address. Bit 0 of consts is set if all
// pointers so far are to const. The other bits of consts count the pointers so far (C++17 18.3, paragraph 3).
func (in *Interp) converts(from, to typeInfo, at machine.Addr, consts int) (machine.Addr, bool, error) {
	if from.is(to) {
		return at, true, nil
	}
	switch {
	case consts > maxLevels:
		return 0, false, unsupported("", "a type with more than %d levels of pointers", maxLevels)
	case to.kind == pointerType && from.kind == plainType && from.name == "Dn":
		return 0, true, nil // a null pointer of any type
	case to.kind == memberType && from.kind == plainType && from.name == "Dn":
		return 0, false, unsupported("", "nullptr that is caught as a pointer to a member")
	case to.kind != from.kind && !(to.class() && from.class()):
		return 0, false, nil
	case to.class():
		if consts >= 4 {
			return 0, false, nil // a conversion from derived to base does not apply to pointers to pointers
		}
		return in.base(from, to, at)
	case to.kind != pointerType && to.kind != memberType || consts&1 == 0:
		return 0, false, nil
	}
	w := in.wordSize()
	var flags [2]uint64
	var pointees, contexts [2]typeInfo
	for k, t := range []typeInfo{from, to} {
		var err error
		if flags[k], err = in.readUint(t.addr+2*w, 4); err != nil {
			return 0, false, err
		}
		if pointees[k], err = in.pointedType(t.addr + 3*w); err != nil {
			return 0, false, err
		}
		if t.kind == memberType {
			if contexts[k], err = in.pointedType(t.addr + 4*w); err != nil {
				return 0, false, err
			}
		}
	}
	switch {
	case to.kind == memberType && !contexts[0].is(contexts[1]),
		flags[1]&effectFlags&^flags[0] != 0,    // noexcept and transaction_safe may be dropped
		flags[0]&qualifierFlags&^flags[1] != 0: // qualifiers may only be added
		return 0, false, nil
	}
	if flags[1]&constFlag == 0 {
		consts &^= 1
	}
	if to.kind == pointerType && consts < 2 && pointees[1].kind == plainType && pointees[1].name == "v" {
		return at, pointees[0].kind != functionType, nil
	}
	return in.converts(pointees[0], pointees[1], at, consts+2)
}

func (t typeInfo) class() bool {
	return t.kind == classType || t.kind == singleType || t.kind == multipleType
}

func (in *Interp) pointedType(a machine.Addr) (typeInfo, error) {
	t, err := in.readWord(a)
	if err != nil {
		return typeInfo{}, err
	}
	return in.typeAt(t)
}

// part is a subobject, with the path to it. If the object is a null pointer, at is the offset from the virtual base that contains the subobject.
type part struct {
	t      typeInfo
	at     machine.Addr
	within machine.Addr // if the object is a null pointer: the type of that virtual base
	path   []stepTo     // from the complete object
}

type stepTo struct {
	t      typeInfo
	at     machine.Addr
	public bool // the base is public
}

// parts calls visit for an object and for each of its base subobjects. It visits a virtual base once for each path to it.
func (in *Interp) parts(t typeInfo, at machine.Addr, visit func(p part)) error {
	seen := 0
	null := at == 0
	var walk func(p part) error
	walk = func(p part) error {
		if seen++; seen > maxBases || len(p.path) > maxLevels {
			return unsupported("", "'%s', a class with more than %d bases", t.name, maxBases)
		}
		visit(p)
		bases, err := in.bases(p.t)
		if err != nil {
			return err
		}
		for _, b := range bases {
			base, err := in.typeAt(b.t)
			if err != nil {
				return err
			}
			next := part{t: base, at: p.at + machine.Addr(b.offset), within: p.within}
			switch {
			case b.virtual && null:
				next.at, next.within = 0, base.addr
			case b.virtual:
				table, err := in.readWord(p.at)
				if err != nil {
					return err
				}
				offset, err := in.readWord(table + machine.Addr(b.offset))
				if err != nil {
					return err
				}
				if in.wordSize() == 4 {
					offset = machine.Addr(int32(offset))
				}
				next.at = p.at + offset
			}
			if in.wordSize() == 4 {
				next.at = machine.Addr(uint32(next.at))
			}
			next.path = append(slices.Clip(p.path), stepTo{base, next.at, b.public})
			if err := walk(next); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(part{t: t, at: at, path: []stepTo{{t, at, true}}})
}

// baseClass is one base class of a class.
type baseClass struct {
	t               machine.Addr
	offset          int64 // for a virtual base: position of its offset in the vtable
	virtual, public bool
}

func (in *Interp) bases(t typeInfo) ([]baseClass, error) {
	w := in.wordSize()
	switch t.kind {
	case singleType:
		b, err := in.readWord(t.addr + 2*w)
		return []baseClass{{t: b, public: true}}, err
	case multipleType:
		n, err := in.readUint(t.addr+2*w+4, 4)
		if err != nil {
			return nil, err
		}
		if n > maxBases {
			return nil, unsupported("", "'%s', a class with more than %d bases", t.name, maxBases)
		}
		var list []baseClass
		for k := range machine.Addr(n) {
			b, err := in.readWord(t.addr + 2*w + 8 + 2*w*k)
			if err != nil {
				return nil, err
			}
			flags, err := in.readWord(t.addr + 2*w + 8 + 2*w*k + w)
			if err != nil {
				return nil, err
			}
			offset := int64(flags) >> 8
			if w == 4 {
				offset = int64(int32(flags) >> 8)
			}
			list = append(list, baseClass{b, offset, flags&virtualFlag != 0, flags&publicFlag != 0})
		}
		return list, nil
	}
	return nil, nil
}

// base converts the address of an object of type from to that of its base of type to, and reports whether the base is public. It returns 0 if the
// object has no such base, or more than one.
func (in *Interp) base(from, to typeInfo, at machine.Addr) (machine.Addr, bool, error) {
	type subobject struct{ at, within machine.Addr }
	found := map[subobject]bool{} // true if a path to the base is public
	err := in.parts(from, at, func(p part) {
		if p.t.is(to) {
			s := subobject{p.at, p.within}
			found[s] = found[s] || p.public(0)
		}
	})
	if err != nil || len(found) != 1 {
		return 0, false, err
	}
	for s, public := range found {
		if at == 0 {
			s.at = 0
		}
		return s.at, public, nil
	}
	return 0, false, nil
}

// public reports whether all bases after index from of the path are public.
func (p part) public(from int) bool {
	return !slices.ContainsFunc(p.path[from+1:], func(s stepTo) bool { return !s.public })
}

// dynamicCast implements dynamic_cast for a class with virtual functions (C++17 8.2.7, paragraph 8).
func dynamicCast(c cxxCall) uint64 {
	at, from, to := c.addr(0), c.addr(1), c.addr(2)
	w := c.in.wordSize()
	table := c.word(at)
	top, whole := c.word(table-2*w), c.word(table-w)
	if c.err != nil || at == 0 {
		return 0
	}
	object := at + top
	if w == 4 {
		object = machine.Addr(uint32(object))
	}
	var types [3]typeInfo
	for k, a := range []machine.Addr{whole, from, to} {
		var err error
		if types[k], err = c.in.typeAt(a); err != nil {
			c.fail(err)
			return 0
		}
	}
	derived := map[machine.Addr]bool{} // objects of the target type that contain the given object; true if the given one is a public base of it
	wanted := map[machine.Addr]bool{}  // all objects of the target type; true for a public base of the complete object
	public := false                    // the given object is a public base of the complete object
	c.fail(c.in.parts(types[0], object, func(p part) {
		if p.t.is(types[2]) {
			wanted[p.at] = wanted[p.at] || p.public(0)
		}
		if p.at != at || !p.t.is(types[1]) {
			return
		}
		public = public || p.public(0)
		for k, s := range p.path {
			if s.t.is(types[2]) {
				derived[s.at] = derived[s.at] || p.public(k)
			}
		}
	}))
	if c.err != nil {
		return 0
	}
	if len(derived) == 1 {
		for a, ok := range derived {
			if ok {
				return uint64(a)
			}
		}
	}
	if public && len(wanted) == 1 {
		for a, ok := range wanted {
			if ok {
				return uint64(a)
			}
		}
	}
	return 0
}
