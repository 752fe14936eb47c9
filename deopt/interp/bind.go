package interp

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// binding assigns addresses to globals, functions and blocks.
type binding struct {
	in      *Interp
	addr    map[ir.Value]machine.Addr
	blocks  map[*ir.Block]machine.Addr
	funcs   map[machine.Addr]*ir.Func
	blockAt map[machine.Addr]*ir.Block
	globals area
	fixed   area // memory of constant globals
	text    machine.Addr
	pending []*ir.Global // globals that have memory, but whose initializers are not written yet
	filling bool
	listed  bool // funcs already holds every function that the target has
	aliases int  // number of aliases in the chain that is being resolved
}

func newBinding(in *Interp) binding {
	return binding{
		in: in, addr: map[ir.Value]machine.Addr{}, blocks: map[*ir.Block]machine.Addr{},
		funcs: map[machine.Addr]*ir.Func{}, blockAt: map[machine.Addr]*ir.Block{},
		globals: area{&in.view, in.view.ranges.globals, in.view.ranges.fixed}, fixed: area{&in.view, in.view.ranges.fixed, in.view.ranges.unknown},
		text: in.view.ranges.text,
	}
}

// of returns the address of a global, function or alias. It first initializes a global in the interpreter's own memory, and all globals that its
// initializer points to.
func (b *binding) of(v ir.Value) (machine.Addr, error) {
	if a, ok := b.addr[v]; ok {
		return a, nil
	}
	if d, err := b.defined(v); err != nil {
		return 0, err
	} else if d != v {
		a, err := b.of(d)
		if err == nil {
			b.addr[v] = a
		}
		return a, err
	}
	switch v := v.(type) {
	case *ir.Func:
		return b.function(v), nil
	case *ir.Global:
		a, err := b.global(v)
		if err == nil && !b.filling {
			err = b.fill()
		}
		return a, err
	case *ir.Alias:
		return b.alias(v)
	}
	return 0, troublef(KindModule, "%s has no address", v.Ref())
}

func (b *binding) symbol(m *ir.Module, name string) (machine.Addr, bool) {
	if b.in.opt.Symbol == nil {
		return 0, false
	}
	if m == b.in.runtime {
		m = b.in.mods[0]
	}
	// The linker uses a name that starts with \1 unchanged, without mangling (LangRef, "Identifiers").
	return b.in.opt.Symbol(m, strings.TrimPrefix(name, "\x01"))
}

func (b *binding) newText() machine.Addr {
	b.text += gap
	return b.text
}

func (b *binding) function(f *ir.Func) machine.Addr {
	a, ok := b.symbol(f.Module, f.Name)
	if !ok {
		a = b.newText()
	}
	b.addr[f] = a
	if b.funcs[a] == nil || b.funcs[a].Declared() {
		b.funcs[a] = f
	}
	return a
}

// defined returns the definition that v's name resolves to among all modules, or v itself where no module defines the name. A name of libstdc++
// that no module defines resolves to this package's definition. It does not if the target has the name in its memory, or if native code can run
// it.
func (b *binding) defined(v ir.Value) (ir.Value, error) {
	d, err := b.among(v)
	if err != nil || d != v {
		return d, err
	}
	if _, defines := definition(v); defines {
		return v, nil
	}
	var name string
	switch v := v.(type) {
	case *ir.Func:
		if _, ok := b.symbol(v.Module, v.Name); ok && b.in.opt.Native != nil {
			return v, nil // native code runs the function
		}
		name = v.Name
	case *ir.Global:
		if _, ok := b.symbol(v.Module, v.Name); ok {
			return v, nil
		}
		name = v.Name
	}
	if own, err := b.in.runtimeValue(name); own != nil || err != nil {
		return own, err
	}
	return v, nil
}

// among resolves a name as defined does, but searches only the program's modules.
func (b *binding) among(v ir.Value) (ir.Value, error) {
	var name string
	var own *ir.Module
	switch v := v.(type) {
	case *ir.Func:
		name, own = v.Name, v.Module
	case *ir.Global:
		name, own = v.Name, v.Module
	}
	if linkage, defines := definition(v); own == nil || len(b.in.mods) == 1 || defines && (strong(linkage) || local(linkage)) {
		return v, nil
	}
	var found ir.Value
	var owner *ir.Module
	for _, m := range b.in.mods {
		other := m.Lookup(name)
		linkage, defines := definition(other)
		switch {
		case !defines || local(linkage):
		case !strong(linkage): // any replaceable definition is valid, but every reference must get the same one
			if found == nil {
				found = other
			}
		case owner != nil:
			return nil, unsupported("give only the modules that the program consists of", "%s, which both %s and %s define,", v.Ref(), owner.Name, m.Name)
		default:
			found, owner = other, m
		}
	}
	if found == nil || owner != nil && b.elsewhere(v, own, owner, name) {
		found = v
	}
	return found, nil
}

// elsewhere reports whether v is a replaceable definition, and the target has its name at one address for v's own module and at another for owner.
// This happens where a JIT resolved the name before it knew the definition in owner.
func (b *binding) elsewhere(v ir.Value, own, owner *ir.Module, name string) bool {
	if _, defines := definition(v); !defines {
		return false
	}
	meant, ok := b.symbol(own, name)
	if !ok {
		return false
	}
	at, ok := b.symbol(owner, name)
	return ok && at != meant
}

// strong reports whether only one module may define a name with this linkage.
func strong(linkage string) bool { return linkage == "" || linkage == "external" }

// definition returns the linkage of v, and whether v is a definition.
func definition(v ir.Value) (linkage string, defines bool) {
	switch v := v.(type) {
	case *ir.Func:
		return v.Linkage, !v.Declared()
	case *ir.Global:
		return v.Linkage, !v.External
	case *ir.Alias:
		return "", true
	}
	return "", false
}

// local reports whether other modules cannot refer to a name with this linkage (LangRef, "Linkage Types").
func local(linkage string) bool { return linkage == "private" || linkage == "internal" }

// maxAliases bounds chains of aliases, which may form a cycle.
const maxAliases = 100

func (b *binding) alias(v *ir.Alias) (machine.Addr, error) {
	if v.IFunc {
		return 0, unsupported("only native code can resolve it", "the ifunc @%s", v.Name)
	}
	if v.Target == nil {
		return 0, troublef(KindModule, "the alias @%s has no target", v.Name)
	}
	if b.aliases == maxAliases {
		return 0, troublef(KindModule, "the alias @%s refers to more than %d others, or to itself", v.Name, maxAliases)
	}
	b.aliases++
	w, err := b.in.constant(v.Target)
	b.aliases--
	if err != nil {
		return 0, err
	}
	if len(w) != 1 {
		return 0, troublef(KindModule, "the alias @%s is not a pointer", v.Name)
	}
	b.addr[v] = machine.Addr(w[0].v)
	return b.addr[v], nil
}

func (b *binding) global(g *ir.Global) (machine.Addr, error) {
	if a, ok := b.symbol(g.Module, g.Name); ok {
		b.addr[g] = a
		return a, nil
	}
	size := b.in.layout.Size(g.ValueType)
	why := ""
	if b.in.opt.Memory == nil && (g.External || g.Init == nil) {
		if a, ok, err := b.in.libcGlobal(g.Name); ok {
			b.addr[g] = a
			return a, err
		}
	}
	switch {
	case g.External || g.Init == nil:
		why = "@" + g.Name + " is defined outside of the module and has no address in the target"
		if b.in.opt.Memory == nil {
			why = "@" + g.Name + " is defined outside of the module"
		}
	case b.in.opt.Memory != nil && !g.Constant:
		why = "the global @" + g.Name + " has no address in the target, so its value cannot be known"
	}
	if why != "" {
		a, err := b.in.unknown.reserve(size, why)
		if err == nil {
			b.addr[g] = a
		}
		return a, err
	}
	space := &b.globals
	if g.Constant {
		space = &b.fixed
	}
	a, err := space.take(size, max(g.Align, b.in.layout.Align(g.ValueType), 1), true)
	if err != nil {
		return 0, err
	}
	b.addr[g] = a
	b.pending = append(b.pending, g)
	return a, nil
}

// fill writes the initializers of pending globals. An initializer may make other globals pending. A list replaces recursion, because a chain of
// pointers can be as long as the module.
func (b *binding) fill() error {
	b.filling, b.in.view.unlocked = true, true
	defer func() { b.filling, b.in.view.unlocked = false, false }()
	var first error
	for len(b.pending) > 0 {
		g := b.pending[len(b.pending)-1]
		b.pending = b.pending[:len(b.pending)-1]
		if err := b.in.initialize(b.addr[g], g.ValueType, g.Init); err != nil {
			// Make the global inaccessible: without its initializer it must not read as zeros.
			b.in.view.shut(b.addr[g], b.in.layout.Size(g.ValueType), true)
			if first == nil {
				first = troublef(kindOf(err), "initializer of @%s: %w", g.Name, err)
			}
		}
	}
	return first
}

// block returns the address that blockaddress yields for a block. It assigns an address to a block that has none.
func (b *binding) block(blk *ir.Block) machine.Addr {
	a, ok := b.blocks[blk]
	if !ok {
		a = b.newText()
		b.blocks[blk], b.blockAt[a] = a, blk
	}
	return a
}

// funcAt returns the function at address a and its name. If no module has that function, funcAt returns only the name, or "" if neither the modules
// nor the target know it.
func (b *binding) funcAt(a machine.Addr) (*ir.Func, string) {
	if f := b.funcs[a]; f != nil {
		return f, f.Name
	}
	if !b.listed {
		b.listed = true
		for _, m := range b.in.mods {
			for _, f := range m.Funcs {
				if a, ok := b.symbol(m, f.Name); ok && (b.funcs[a] == nil || b.funcs[a].Declared()) {
					b.funcs[a] = f
				}
			}
		}
		return b.funcAt(a)
	}
	if b.in.opt.SymbolAt == nil || b.in.view.ranges.own(a) {
		return nil, ""
	}
	name, ok := b.in.opt.SymbolAt(a)
	if !ok {
		return nil, ""
	}
	for _, m := range b.in.mods {
		if f := m.Func(name); f != nil {
			if d, err := b.defined(f); err == nil {
				if d, ok := d.(*ir.Func); ok {
					f = d
				}
			}
			b.funcs[a] = f
			return f, name
		}
	}
	return nil, name
}
