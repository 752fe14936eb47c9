package ir

import (
	"slices"
	"strings"
	"sync"
)

// lazyDescriptions holds the debug information about a function's values. It is filled on first use.
type lazyDescriptions struct {
	once sync.Once
	all  map[variable][]description
	in   map[*Block]map[variable][]int // for each block, the ascending indices of its descriptions
	// at holds the position of a reference to each variable's node.
	at    map[variable]span
	preds [][]*Block
}

// variable is a source variable in one inlined call. Both are identified by the text of the references to their nodes.
type variable struct{ node, inlinedAt string }

// description assigns a value to a variable, from an instruction on or for the whole scope.
type description struct {
	block *Block
	index int   // index of the instruction after it
	value Value // nil if no single value describes the variable
	where bool  // the value is the address of the variable
}

// record is a debug record: #dbg_value(…).
type record struct {
	kind string
	at   span // position of the record's argument list
	// index is the index of the instruction after the record.
	index int
}

// Variables returns, for each value, the source variables that have it just before the instruction runs, innermost scope first. It names a variable only if
// the debug information gives it that value on every path to the instruction. It names none if a path assigned another value, or recomputed the value. If a
// value is the address of a variable, the name is &x.
//
// The debug information consists of the records #dbg_value, #dbg_declare and #dbg_assign (LangRef, "Debug Records"), or of calls of the intrinsics with
// the same names. Only those with an empty DIExpression count.
func (i *Instr) Variables(values []Value) [][]string {
	names := make([][]string, len(values))
	f := i.Block.Func
	d := &f.computed().described
	d.once.Do(func() { d.find(f) })
	if len(d.all) == 0 {
		return names
	}
	wanted := map[Value]bool{}
	for _, v := range values {
		wanted[v] = true
	}
	budget := maxWays
	for _, scope := range i.scopes() {
		var here []variable
		for v := range d.all {
			if v.inlinedAt == scope.inlinedAt {
				here = append(here, v)
			}
		}
		slices.SortFunc(here, func(a, b variable) int { return strings.Compare(a.node, b.node) })
		for _, v := range here {
			m := f.Module
			kind, fields, ok := m.debugNode(d.at[v])
			if !ok || kind != "DILocalVariable" || m.text(fields["scope"]) != scope.node {
				continue
			}
			if !slices.ContainsFunc(d.all[v], func(x description) bool { return wanted[x.value] }) {
				continue
			}
			value, where := d.reaching(i, v, &budget)
			name := m.debugString(fields["name"])
			if value == nil || name == "" {
				continue
			}
			if where {
				name = "&" + name
			}
			for k := range values {
				if values[k] == value && !slices.Contains(names[k], name) {
					names[k] = append(names[k], name)
				}
			}
		}
	}
	return names
}

// maxWays limits the blocks that are searched for all variables of one instruction.
const maxWays = 1 << 20

// scopes returns the scopes around an instruction, innermost first.
func (i *Instr) scopes() (list []variable) {
	m := i.Block.Func.Module
	at := i.debug
	if at == (span{}) { // without a location, only the function's scope is known
		if own := m.text(i.Block.Func.debug); own != "" {
			list = append(list, variable{own, ""})
		}
		return list
	}
	for budget := maxScopes; budget > 0 && at != (span{}); budget-- {
		kind, fields, ok := m.debugNode(at)
		if !ok || kind != "DILocation" {
			break
		}
		inlinedAt, scope := m.text(fields["inlinedAt"]), fields["scope"]
		for ; budget > 0; budget-- {
			kind, around, ok := m.debugNode(scope)
			if !ok {
				break
			}
			list = append(list, variable{m.text(scope), inlinedAt})
			if kind == "DISubprogram" {
				break
			}
			scope = around["scope"]
		}
		at = fields["inlinedAt"]
	}
	return list
}

// text returns the source text at a position.
func (m *Module) text(at span) string { return trimRight(m.src[at.pos:at.end]) }

// find collects the function's debug records and debug intrinsics.
func (d *lazyDescriptions) find(f *Func) {
	d.all, d.in, d.at = map[variable][]description{}, map[*Block]map[variable][]int{}, map[variable]span{}
	d.preds = make([][]*Block, len(f.computed().body.blocks))
	for _, b := range f.computed().body.blocks {
		for _, s := range successors(b) {
			d.preds[s.Index] = append(d.preds[s.Index], b)
		}
		records := b.records
		for _, in := range b.Instrs {
			for ; len(records) > 0 && records[0].index == in.Index; records = records[1:] {
				d.add(b, in.Index, records[0].kind, f.Module.arguments(records[0].at))
			}
			kind, ok := debugIntrinsic(in)
			if !ok {
				continue
			}
			var args []span
			for _, a := range in.Args {
				if a, ok := a.(*Metadata); ok {
					args = append(args, a.at)
				}
			}
			d.add(b, in.Index, kind, append(args, in.debug))
		}
	}
}

// debugIntrinsic returns the kind of the debug record that equals a call of a debug intrinsic.
func debugIntrinsic(i *Instr) (kind string, ok bool) {
	if i.Call == nil {
		return "", false
	}
	callee, ok := i.Call.Callee.(*Func)
	if !ok {
		return "", false
	}
	name, ok := strings.CutPrefix(callee.Name, "llvm.dbg.")
	return "dbg_" + name, ok
}

// add adds a record. Its arguments are the value, the variable, the expression, three more for dbg_assign, and the location.
func (d *lazyDescriptions) add(b *Block, index int, kind string, args []span) {
	m := b.Func.Module
	if kind != "dbg_value" && kind != "dbg_declare" && kind != "dbg_assign" || len(args) < 4 {
		return
	}
	location, fields, ok := m.debugNode(args[len(args)-1])
	if !ok || location != "DILocation" {
		return
	}
	v := variable{m.text(args[1]), m.text(fields["inlinedAt"])}
	x := description{block: b, index: index, where: kind == "dbg_declare"}
	// A non-empty expression computes the variable from the value, so the value does not describe the variable. debugNode does not accept it.
	if expression, _, empty := m.debugNode(args[2]); empty && expression == "DIExpression" {
		x.value = b.Func.describedBy(args[0])
	}
	if d.in[b] == nil {
		d.in[b] = map[variable][]int{}
	}
	d.in[b][v] = append(d.in[b][v], len(d.all[v]))
	d.all[v], d.at[v] = append(d.all[v], x), args[1]
}

// describedBy returns the local value that the first argument of a record names, or nil.
func (f *Func) describedBy(at span) Value {
	l := lexer{file: f.Module.Name, src: f.Module.src, pos: at.pos, end: at.end, line: 1}
	var last token
	for l.next(); l.tok.kind != tokEOF; l.next() {
		last = l.tok
	}
	if l.err != nil || last.kind != tokLocal || last.pos == at.pos {
		return nil
	}
	if _, block := f.computed().body.names[last.text].(*Block); block {
		return nil
	}
	return f.computed().body.names[last.text]
}

// arguments returns the positions of the arguments in brackets, separated by commas.
func (m *Module) arguments(at span) (list []span) {
	l := lexer{file: m.Name, src: m.src, pos: at.pos, end: at.end, line: 1}
	if l.next(); !l.isPunct('(') {
		return nil
	}
	l.next()
	for start := l.tok.pos; l.tok.kind != tokEOF; {
		switch {
		case l.isPunct('('), l.isPunct('{'), l.isPunct('['), l.isPunct('<'):
			if l.isPunct('<') {
				l.next()
				continue
			}
			l.skipBalanced()
		case l.isPunct(','), l.isPunct(')'):
			list = append(list, span{start, l.tok.pos})
			l.next()
			start = l.tok.pos
		default:
			l.next()
		}
	}
	return list
}

// reaching returns the value of a variable just before an instruction runs. On every path the last description must give the same value, and the value must
// not be recomputed after it.
func (d *lazyDescriptions) reaching(i *Instr, v variable, budget *int) (value Value, where bool) {
	all := d.all[v]
	if all[0].where {
		// A declared variable lies at one address for its whole scope.
		for _, x := range all {
			if !x.where || x.value != all[0].value {
				return nil, false
			}
		}
		if in, ok := all[0].value.(*Instr); !ok || in.Op != OpAlloca {
			return nil, false
		}
		return all[0].value, true
	}
	type stretch struct {
		block    *Block
		from, to int // instruction indices
	}
	var passed []stretch
	var found *description
	// back searches a block backwards from an instruction. It reports whether it found a description, and whether the value is still the same.
	back := func(b *Block, to int) (described, same bool) {
		list := d.in[b][v]
		for k := len(list) - 1; k >= 0; k-- {
			x := &all[list[k]]
			if x.index > to {
				continue
			}
			if x.value == nil || x.where || found != nil && found.value != x.value {
				return true, false
			}
			found = x
			passed = append(passed, stretch{b, x.index, to})
			return true, true
		}
		passed = append(passed, stretch{b, 0, to})
		return false, true
	}
	queue, seen := []*Block{}, map[*Block]bool{}
	described, same := back(i.Block, i.Index)
	if !same {
		return nil, false
	}
	enter := func(b *Block) bool {
		if b.Index == 0 || len(d.preds[b.Index]) == 0 {
			return false // the function begins without a description
		}
		for _, p := range d.preds[b.Index] {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
		return true
	}
	if !described && !enter(i.Block) {
		return nil, false
	}
	for len(queue) > 0 {
		b := queue[0]
		queue = queue[1:]
		if *budget--; *budget < 0 {
			return nil, false
		}
		described, same := back(b, len(b.Instrs))
		if !same || !described && !enter(b) {
			return nil, false
		}
	}
	if found == nil {
		return nil, false
	}
	if in, ok := found.value.(*Instr); ok {
		for _, s := range passed {
			if s.block == in.Block && in.Index >= s.from && in.Index < s.to {
				return nil, false
			}
		}
	}
	return found.value, false
}
