package interp

import (
	"errors"

	"reframe/deopt/interp/internal/regex"
	"reframe/deopt/machine"
)

// regexFuncs are <regex.h> (POSIX.1-2017), with the answers of glibc in the locale "C".
var regexFuncs = map[string]Builtin{
	"regcomp": scalar(regcomp), "regexec": scalar(regexec), "regfree": procedure(regfree), "regerror": scalar(regerror),
}

// regexProgram is the compiled expression of a regex_t, found by the address in its first member.
type regexProgram struct {
	*regex.Program
	charged uint64 // bytes
}

// keep counts a program's memory anew.
func (c *ccall) keep(p *regexProgram) {
	size := p.Size()
	if size > p.charged {
		c.fail(c.in.view.charge(size - p.charged))
	} else {
		c.in.view.release(p.charged - size)
	}
	if c.err == nil {
		p.charged = size
	}
}

// regexBudget returns a budget that charges expressions to the steps and the memory of the run. done releases the memory that a match took.
func (c *ccall) regexBudget() (budget regex.Budget, done func()) {
	const step = 16 // a step of a match beside a byte that is moved
	steps, held := uint64(0), uint64(0)
	return regex.Budget{
		Steps: func(n int) error {
			if steps += step * uint64(n); steps < 1<<10 {
				return nil
			}
			all := steps
			steps = 0
			return c.in.work(all)
		},
		Bytes: func(n int) error {
			err := c.in.view.charge(uint64(n))
			if err == nil {
				held += uint64(n)
			}
			return err
		},
	}, func() { c.in.view.release(held) }
}

// regexFailed returns the code of an error of the regular expression; an unsupported feature ends the run.
func (c *ccall) regexFailed(err error) uint64 {
	var code regex.Error
	var no *regex.Unsupported
	switch {
	case errors.As(err, &code):
		return uint64(code)
	case errors.As(err, &no):
		c.fail(unsupported("", "@%s of %s", c.Name, no.What))
	default:
		c.fail(err)
	}
	return 0
}

// Members of a regex_t, each of the size of a pointer (glibc's regex.h, struct re_pattern_buffer); bits of an int follow them.
const (
	regexBuffer  = 0
	regexGroups  = 6 // re_nsub
	regexMembers = 7
)

func (c *ccall) regexMember(k int) machine.Addr {
	return c.addr(0) + machine.Addr(k*c.longSize())
}

func regcomp(c *ccall) uint64 {
	pattern, size := c.text(1), c.longSize()
	c.fill(c.addr(0), 0, uint64(regexMembers*size+4))
	if c.err != nil {
		return 0
	}
	budget, done := c.regexBudget()
	defer done()
	p, groups, err := regex.Compile(pattern, regex.Flags(c.int(2)), budget)
	c.put(c.regexMember(regexGroups), size, uint64(groups))
	if err != nil {
		return c.regexFailed(err)
	}
	at, err := c.in.heap.alloc(1, 16, true)
	if c.fail(err); c.err != nil {
		return 0
	}
	kept := &regexProgram{Program: p}
	if c.keep(kept); c.err != nil {
		return 0
	}
	if c.in.clib.regexes == nil {
		c.in.clib.regexes = map[machine.Addr]*regexProgram{}
	}
	c.in.clib.regexes[at] = kept
	c.put(c.regexMember(regexBuffer), size, uint64(at))
	return 0
}

// compiled finds the program of a regex_t, which may be a copy of the one that regcomp filled.
func (c *ccall) compiled(at machine.Addr) *regexProgram {
	p := c.in.clib.regexes[at]
	if p == nil && c.err == nil {
		if c.in.opt.Memory != nil {
			c.fail(unsupported("", "@%s of a regex_t that native code compiled", c.Name))
		} else {
			c.fail(troublef(KindFault, "@%s of a regex_t that holds nothing that regcomp compiled", c.Name))
		}
	}
	return p
}

// noMatch and badFlags are answers of regexec.
const (
	noMatch  = uint64(regex.NoMatch)
	badFlags = uint64(regex.BadPattern)
)

// startEnd is REG_STARTEND of BSD: the first span gives the subject.
const startEnd = 4

func regexec(c *ccall) uint64 {
	p := c.compiled(machine.Addr(c.get(c.regexMember(regexBuffer), c.longSize())))
	subject, want, spans, flags := c.addr(1), c.uint(2), c.addr(3), c.uint(4)&0xffffffff
	if c.err != nil {
		return 0
	}
	if flags > 7 {
		return badFlags
	}
	var text []byte
	from := 0
	if flags&startEnd != 0 {
		start, end := int64(int32(c.get(spans, 4))), int64(int32(c.get(spans+4, 4)))
		if c.err == nil && (start < 0 || start > end) {
			c.fail(unsupported("", "@%s from %d to %d", c.Name, start, end))
			return 0
		}
		// Of the text before the start, only the last byte is needed.
		skip := max(start-1, 0)
		text, from = c.bytes(subject+machine.Addr(skip), uint64(end-skip)), int(start-skip)
		subject = machine.Addr(skip) // what the places count from
	} else {
		text, subject = c.textAt(subject, ^uint64(0)), 0
	}
	if c.err != nil {
		return 0
	}
	budget, done := c.regexBudget()
	defer done()
	n := int(min(want, uint64(p.Groups)+1))
	found, ok, err := p.Match(text, from, n, regex.MatchFlags(flags&3), budget)
	if c.keep(p); err != nil {
		return c.regexFailed(err)
	}
	if !ok {
		return noMatch
	}
	if p.NoSub() {
		return 0
	}
	for k := uint64(0); k < want && c.err == nil; k++ {
		s := regex.Span{From: -1, To: -1}
		if k < uint64(len(found)) && found[k].From >= 0 {
			s = regex.Span{From: found[k].From + int(subject), To: found[k].To + int(subject)}
		}
		c.put(spans+machine.Addr(8*k), 4, uint64(s.From))
		c.put(spans+machine.Addr(8*k+4), 4, uint64(s.To))
	}
	return 0
}

func regfree(c *ccall) {
	member := c.regexMember(regexBuffer)
	at := machine.Addr(c.get(member, c.longSize()))
	if c.err != nil || at == 0 {
		return
	}
	p := c.compiled(at)
	if c.err != nil {
		return
	}
	c.in.view.release(p.charged)
	delete(c.in.clib.regexes, at)
	c.fail(c.in.heap.free(at))
	c.put(member, c.longSize(), 0)
}

func regerror(c *ccall) uint64 {
	code := c.int(0)
	if c.err == nil && (code < 0 || code >= int64(len(regex.Texts))) {
		c.fail(troublef(KindAbort, "regerror of %d, which is no error of regcomp", code)) // glibc aborts
	}
	if c.err != nil {
		return 0
	}
	text, size := regex.Texts[code], c.uint(3)
	c.truncated(c.addr(2), []byte(text), size)
	return uint64(len(text)) + 1
}
