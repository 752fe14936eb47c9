package sites

import (
	"cmp"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// FirstLeaf returns the first scalar or vector in a type. LLVM records only this part of an aggregate.
func FirstLeaf(t *ir.Type) *ir.Type {
	switch t.Kind {
	case ir.StructKind:
		for _, f := range t.Fields {
			if Leaves(f) > 0 {
				return FirstLeaf(f)
			}
		}
	case ir.ArrayKind:
		return FirstLeaf(t.Elem)
	}
	return t
}

// X86Triple reports whether a triple is for x86-64. A module without a triple counts too: llc's default is its host.
func X86Triple(triple string) bool {
	first, _, _ := strings.Cut(triple, "-")
	return first == "x86_64" || first == "amd64" || first == ""
}

// LeavesFunction reports whether a site leaves the function: no code runs after the site in this frame.
func LeavesFunction(s *ir.Site) bool { return s.Kind == ir.DeoptimizeSite || s.Kind == ir.GuardSite }

// AllSites returns the sites and guards of a function in program order.
func AllSites(f *ir.Func) ([]*ir.Site, error) {
	sites, err := f.Sites()
	if err != nil {
		return nil, err
	}
	guards, err := f.Guards()
	if err != nil || len(guards) == 0 {
		return sites, err
	}
	all := slices.Concat(sites, guards)
	slices.SortFunc(all, func(a, b *ir.Site) int {
		return cmp.Or(a.Instr.Block.Index-b.Instr.Block.Index, a.Instr.Index-b.Instr.Index)
	})
	return all, nil
}

// Reachable returns the blocks that are reachable from the entry; the code generator drops the others.
func Reachable(f *ir.Func) map[*ir.Block]bool {
	blocks, err := f.Body()
	if err != nil || len(blocks) == 0 {
		return nil
	}
	seen, work := map[*ir.Block]bool{blocks[0]: true}, []*ir.Block{blocks[0]}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, next := range b.Instrs[len(b.Instrs)-1].Blocks {
			if !seen[next] {
				seen[next] = true
				work = append(work, next)
			}
		}
	}
	return seen
}

// StatepointLike reports whether the live values of a site are those of its deopt bundle.
func StatepointLike(s *ir.Site) bool {
	return s.Kind != ir.StackMapSite && s.Kind != ir.PatchPointSite
}

// NameOf returns the name of a value in the module, or "" for a constant.
func NameOf(v ir.Value) string {
	switch v := v.(type) {
	case *ir.Param:
		return v.Ref()
	case *ir.Instr:
		return v.Ref()
	}
	return ""
}

// OnFrame reports whether an alloca has a fixed place in its function's frame: it is in the entry block and has a constant size.
func OnFrame(i *ir.Instr) bool {
	if i.Op != ir.OpAlloca || i.Block.Index != 0 || i.Flags&ir.InAlloca != 0 {
		return false
	}
	for _, n := range i.Args {
		if _, constant := n.(*ir.Const); !constant {
			return false
		}
	}
	return true
}

// CalledName returns the name of the directly called function, or "".
func CalledName(i *ir.Instr) string {
	if callee, direct := i.Call.Callee.(*ir.Func); direct {
		return callee.Name
	}
	return ""
}

// MaxFunction limits the bytes of a function that are decoded.
const MaxFunction = 1 << 20
