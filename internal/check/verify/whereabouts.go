package verify

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/progspace"
)

// whereabouts describes addresses of the process in words.
type whereabouts struct {
	*deopt.View
	objects iter.Seq[*object.Image] // images that a JIT registered
	maps    []machine.Mapping       // the mappings now
	frames  []*deopt.Frame          // frames of the thread at the exit
}

// whereabouts returns the data with which addresses at an exit are described. It uses the current mappings, which may have changed since the exit.
func (v *verifier) whereabouts(x *trace.Exited) *whereabouts {
	maps, _ := v.watcher.View().Target().Mappings() // without them only symbols are shown
	return &whereabouts{v.watcher.View(), v.watcher.Objects(), maps, x.Frames}
}

func (n *whereabouts) mapping(addr machine.Addr) (m machine.Mapping, ok bool) {
	i := slices.IndexFunc(n.maps, func(m machine.Mapping) bool { return m.Contains(addr) })
	if i < 0 {
		return m, false
	}
	return n.maps[i], true
}

// memory describes the memory at an address: the stack of an activation, a variable, or a mapping.
func (n *whereabouts) memory(addr machine.Addr) string {
	m, mapped := n.mapping(addr)
	for i, f := range n.frames {
		cfa := f.Physical().CFA
		if f.Physical().NoCFA != "" || addr >= cfa || !mapped || !m.Contains(cfa-1) {
			continue
		}
		sp, err := f.Physical().Registers.Addr(n.Target().Arch().SP)
		if i == 0 && (err != nil || addr < sp) {
			break // the memory is not a stack
		}
		name := n.Space().Named(f.Physical().PC)
		if name == "" {
			name = f.Physical().PC.String()
		}
		return fmt.Sprintf("the stack of #%d %s, %d below its CFA", f.Index, name, cfa-addr)
	}
	if name := n.variable(addr); name != "" {
		return name
	}
	switch {
	case !mapped:
		return ""
	case m.Path == "":
		return fmt.Sprintf("anonymous memory+%#x", uint64(addr-m.Start))
	case m.Inode == 0: // a mapping without a file, such as [heap] or [stack]
		return fmt.Sprintf("%s+%#x", m.Path, uint64(addr-m.Start))
	}
	return fmt.Sprintf("%s+%#x", m.Path[strings.LastIndexByte(m.Path, '/')+1:], uint64(addr-m.Start)+m.Offset)
}

// variable returns the name of the symbol, in the images of the code, that contains an address.
func (n *whereabouts) variable(addr machine.Addr) string {
	if name := n.Space().Named(addr); name != "" {
		return name
	}
	for img := range n.objects { // at most one of them contains the address
		if sym, ok := img.SymbolAt(addr); ok {
			return progspace.Spell(sym.Name, sym.Addr, addr)
		}
	}
	return ""
}

// called returns a name for code that native code called: the function that starts at the address, or the target of a stub at the address.
func (n *whereabouts) called(at machine.Addr) string {
	if name := n.Space().Named(at); name != "" {
		return name
	}
	to := n.Unwinder().Stub(at)
	if to == 0 {
		to = at
	}
	if name := n.memory(to); name != "" {
		return name
	}
	return at.String()
}
