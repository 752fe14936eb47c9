package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
)

// Parting is the first difference between native code and the interpreter.
type Parting struct {
	Pair   *Pair     // the pair that shows the difference
	Before *ir.Instr // the last site at which both sides agreed; nil for the exit
	By     By        // the kind of evidence for the difference
	// Instr is the first instruction, in the order of the interpreter's run, whose value or effect differs in native code. If none can be named, it is
	// nil, and Why has the reason.
	Instr *ir.Instr
	Steps uint64 // instructions of the interpreter between the exit and the last execution of Instr
	Why   string
	// Interpreted and Native are the values of Instr, or the values that Instr stores or returns, as text. They are "" if Instr has no value, or if the
	// value is unknown.
	Interpreted, Native string
	Operands            []Operand // the operands of Instr that are not constants
	// Suspects lists Instr and the instructions that its value depends on: through operands, through the interpreter's memory, and through branches. It
	// omits instructions whose value a site has shown to be the same in native code. Any of the suspects may be wrong in native code. They are in the
	// order in which they ran. If native code has stored to other addresses, or has omitted stores, some suspects may be missing.
	Suspects []*ir.Instr
	// Alike lists other values of the function whose value in the interpreter equals the native value of Instr: the record may describe one of them.
	Alike []string
}

// By is the kind of evidence for a difference.
type By int

// The kinds of evidence.
const (
	Agreed   By = iota // no difference: both sides returned the same result
	ByValue            // the values of a slot in a record differ
	ByRecord           // the record has other operands than the module: the value was the same before, or is in another slot
	ByBranch           // both sides reached different places
	ByResult           // the results of the function differ
	ByMemory           // the memory differs at the return
	ByCall             // the calls of native code differ
	ByEnd              // the interpreter cannot continue where native code does
)

// Operand is an operand of an instruction.
type Operand struct {
	Name        string
	Interpreted string
	Native      string // its native value at the last site that shows it; "" without such a site
}

// Bisect runs native code and the interpreter from site to site, as [Session.Both] does, until they differ or the activation has returned. It names
// the first instruction whose value or effect differs. The process is then stopped at the place at which the difference was found. Bisect returns the
// errors of Both. ctx bounds the whole search, and each step between sites is bounded as in Both.
func (s *Session) Bisect(ctx context.Context) (*Parting, error) {
	b := &bisection{done: map[*computed]bool{}, seen: seen{values: map[*ir.Instr][]ir.Value{}, unsure: map[ir.Value]bool{}}}
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p, err := s.Both(ctx)
		if err != nil {
			return nil, err
		}
		b.out = &Parting{Pair: p, Before: b.before, Why: p.Why}
		switch {
		case p.Differs:
			b.run = s.run
			return b.out, b.find(ctx)
		case p.Returned || p.Why != "" || p.Frame == nil:
			return b.out, nil
		}
		b.before = p.At
		for _, r := range p.Rows {
			b.seen.unsure[r.value] = b.seen.unsure[r.value] || !r.Same
		}
		b.seen.values[p.At] = p.Frame.Match().Site.Live
	}
}

// bisection is the state of a running [Session.Bisect].
type bisection struct {
	seen
	before *ir.Instr
	run    *Run
	walk   *walk
	done   map[*computed]bool // the executions that the method suspect has handled
	out    *Parting
}

// find sets the first instruction whose value or effect differs, or the reason why it is unknown.
func (b *bisection) find(ctx context.Context) (err error) {
	p := b.out.Pair
	var watched []machine.Addr
	for _, d := range p.Memory {
		watched = append(watched, d.Differing()...)
	}
	watched = watched[:min(len(watched), maxWatched)]
	if b.walk, err = b.run.walk(ctx, &b.seen, watched); err != nil {
		return err
	}
	switch {
	case p.Failed != "":
		b.failed()
	case p.Elsewhere():
		b.branched()
	case p.Frame != nil:
		b.differs()
	case p.Call != nil:
		b.called()
	default:
		b.returned()
	}
	if b.out.Instr == nil && b.out.Why == "" {
		b.out.Why = "no instruction that the interpreter ran since the exit explains it"
	}
	return nil
}

// maxWatched bounds the bytes of memory whose last store is tracked.
const maxWatched = 1024

// name sets the instruction of the result to that of c, and its value in native code.
func (b *bisection) name(c *computed, native string) {
	out := b.out
	out.Instr, out.Steps, out.Native = c.instr, c.step, native
	if !c.value.IsNone() {
		out.Interpreted = c.value.Format()
	}
	for n, a := range c.instr.Args {
		if sites.IsConst(a) || a.Ref() == "" {
			continue
		}
		if _, block := a.(*ir.Block); block {
			continue
		}
		out.Operands = append(out.Operands, b.operand(a, c.args, n))
	}
	b.suspect(c)
	slices.SortStableFunc(out.Suspects, func(x, y *ir.Instr) int { return cmp.Compare(b.walk.last[x].stepOr(c), b.walk.last[y].stepOr(c)) })
}

// stepOr returns the step at which the instruction ran. If c is nil, it returns the step of other.
func (c *computed) stepOr(other *computed) uint64 {
	if c == nil {
		return other.step
	}
	return c.step
}

// operand describes an operand of an instruction that was run.
func (b *bisection) operand(v ir.Value, args []*computed, n int) Operand {
	o := Operand{Name: v.Ref()}
	var of *computed
	if n < len(args) {
		of = args[n]
	}
	if of != nil {
		o.Interpreted = of.value.Format()
	} else if is, _ := b.run.valueOf(v); !is.IsNone() {
		o.Interpreted = is.Format()
	}
	if of != nil && of.agreed || of == nil {
		o.Native = o.Interpreted
	}
	for _, r := range b.out.Pair.Rows {
		if r.value == v && of != nil && b.walk.last[v] == of && r.Why == "" {
			o.Native = r.Native.Value
		}
	}
	return o
}

// suspect adds an executed instruction to the suspects, and those that computed its operands. It omits values that a site has shown to be the same.
func (b *bisection) suspect(c *computed) {
	if b.done[c] || len(b.done) == maxSuspects {
		return
	}
	b.done[c] = true
	if !slices.Contains(b.out.Suspects, c.instr) {
		b.out.Suspects = append(b.out.Suspects, c.instr)
	}
	for _, a := range append(slices.Clone(c.args), c.from) {
		if a != nil && !a.agreed && !b.same(a) {
			b.suspect(a)
		}
	}
	for _, t := range c.chose {
		if t.cond != nil && !t.cond.agreed && !b.same(t.cond) && (t.way < b.walk.way || b.leads(t)) {
			b.suspect(t.cond)
		}
	}
}

// leads reports whether another target of a branch leads to the place of native code without another site in between.
func (b *bisection) leads(t taken) bool {
	return slices.ContainsFunc(t.br.Blocks, func(other *ir.Block) bool { return other != t.to && b.reaches(other) })
}

// maxSuspects bounds the executed instructions that are examined for suspects.
const maxSuspects = 10_000

// same reports whether the record shows the value and native code has the same value.
func (b *bisection) same(c *computed) bool {
	return slices.ContainsFunc(b.out.Pair.Rows, func(r Row) bool { return r.Same && b.walk.last[r.value] == c })
}

// differs handles different values in a record: it names the one that was computed first, unless an earlier site showed it to be the same.
func (b *bisection) differs() {
	p := b.out.Pair
	list := p.Differing()
	b.out.By = ByRecord
	var first *computed
	var row Row
	for _, r := range list {
		c := b.walk.last[r.value]
		if c == nil || c.agreed {
			continue // an earlier site showed the same value on both sides
		}
		if c = c.root(); first == nil || c.step < first.step {
			first, row = c, r
		}
	}
	if first == nil || exchanged(list) {
		b.out.Instr, b.out.Steps, b.out.Suspects = p.At, p.Steps, []*ir.Instr{p.At}
		row = list[0]
		b.out.Interpreted, b.out.Native = row.Interpreted.Value, row.Native.Value
		for _, r := range list {
			b.out.Operands = append(b.out.Operands, Operand{r.Name, r.Interpreted.Value, r.Native.Value})
		}
	} else {
		b.out.By = ByValue
		b.name(first, row.Native.Value)
	}
	values, err := b.run.Values(0)
	if err != nil {
		return
	}
	for _, v := range values {
		if v.Name != row.Name && v.Type.Equal(row.value.Type()) && v.Value.Format() == row.Native.Value && (b.out.Instr == nil || v.Name != b.out.Instr.Ref()) {
			b.out.Alike = append(b.out.Alike, v.Name)
		}
	}
}

// exchanged reports whether the native values are a permutation of the interpreter's values.
func exchanged(list []Row) bool {
	var is, native []string
	for _, r := range list {
		if r.Type.Bits < 8 {
			return false // small types have few values, so equal values are no evidence
		}
		is, native = append(is, r.Type.Source+r.Interpreted.Value), append(native, r.Type.Source+r.Native.Value)
	}
	slices.Sort(is)
	slices.Sort(native)
	return len(list) > 1 && slices.Equal(is, native)
}

// branched handles different places: it names a branch whose other target leads to native code's place without another site in between.
func (b *bisection) branched() {
	b.out.By = ByBranch
	var list []taken
	for _, t := range b.walk.taken {
		if b.leads(t) && !slices.ContainsFunc(list, func(u taken) bool { return u.br == t.br }) {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		b.out.Why = "no branch that the interpreter took since the last site leads to the place of native code"
		return
	}
	for _, t := range list {
		if t.cond == nil {
			t.cond = &computed{instr: t.br}
		}
		if b.out.Instr == nil {
			native := ""
			if one := t.cond.value; len(list) == 1 && !one.IsNone() && one.Type().Bits == 1 {
				native = map[string]string{"true": "false", "false": "true"}[one.Format()]
			}
			b.name(t.cond, native)
		}
		b.suspect(t.cond)
	}
}

// reaches reports whether a path leads from a block to the place of native code without another site on it.
func (b *bisection) reaches(from *ir.Block) bool {
	done := map[*ir.Block]bool{}
	blocks := []*ir.Block{from}
	for len(blocks) > 0 {
		at := blocks[len(blocks)-1]
		blocks = blocks[:len(blocks)-1]
		if done[at] {
			continue
		}
		done[at] = true
		site := slices.IndexFunc(at.Instrs, b.run.lockstep.Site)
		last := at.Instrs[len(at.Instrs)-1]
		switch p := b.out.Pair; {
		case site >= 0:
			if p.Frame != nil && at.Instrs[site] == siteOf(p.Frame) {
				return true
			}
		case last.Op == ir.OpRet:
			if p.Returned {
				return true
			}
		default:
			blocks = append(blocks, last.Blocks...)
		}
	}
	return false
}

// returned handles different results or memory: it names the result or store that was computed first.
func (b *bisection) returned() {
	p := b.out.Pair
	var first *computed
	native := ""
	for _, part := range p.Result {
		if !part.Same && b.walk.ended != nil && b.walk.ended.instr.Op == ir.OpRet {
			b.out.By, first = ByResult, b.walk.ended
			if of := first.args[0]; of != nil && !of.agreed {
				first = of.root()
			}
			if native = part.Native; part.Path != "" {
				native = "" // only a part of the value is known
			}
			break
		}
	}
	stored := b.walk.writers()
	if len(b.walk.watched) > len(stored) && len(stored) > 0 {
		first, native = nil, "" // a store to a wrong place may have caused the wrong result
	}
	for _, c := range stored {
		if first == nil || c.step < first.step {
			b.out.By, first, native = ByMemory, c, ""
		}
	}
	if first == nil {
		b.out.By, b.out.Why = ByMemory, "native code stored to addresses that the interpreter did not: "+b.addresses()
		return
	}
	if of := first.args; b.out.By == ByMemory && first.instr.Op == ir.OpStore && of[0] != nil {
		b.out.Interpreted = of[0].value.Format()
	}
	b.name(first, native)
}

func (b *bisection) addresses() string {
	var list []string
	for _, d := range b.out.Pair.Memory {
		list = append(list, string(d.Address))
	}
	return strings.Join(list, ", ")
}

// called handles a difference in a native call: it names the call, or the instruction that computed the differing argument.
func (b *bisection) called() {
	b.out.By = ByCall
	d := b.out.Pair.Call
	b.out.Interpreted, b.out.Native = d.Interpreter, d.Native
	if b.walk.ended == nil || d.Line == 0 {
		b.out.Why = fmt.Sprintf("only native code calls %s", d.Callee)
		return
	}
	c := b.walk.ended
	if n := d.Argument - 1; n >= 0 && n < len(c.args) && c.args[n] != nil && !c.args[n].agreed && d.At == "" {
		c = c.args[n].root()
	}
	b.name(c, d.Native)
}

// failed handles a run of the interpreter that cannot continue: it names the instruction that ran last.
func (b *bisection) failed() {
	b.out.By = ByEnd
	if b.walk.ended != nil {
		b.name(b.walk.ended, "")
	}
}

// String returns the name of the evidence.
func (b By) String() string {
	return [...]string{"nothing", "a value of the record", "the record", "a branch", "the result", "memory", "a call", "the end of the interpreter's run"}[b]
}
