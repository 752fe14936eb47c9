package protocheck

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
)

// Names of checks that other checks depend on.
const (
	greeting  = "initialize"
	exitCheck = "exit"
)

// unknownMethod is the name of a method that no program should have.
const unknownMethod = "reframe.check: no program has this method"

// check is one check. An error of try is the violation; otherwise try may return a remark.
type check struct {
	name, what string
	exit       bool // the check needs an exit
	try        func(c *checker) (string, error)
}

var checks = []check{
	{greeting, "it answers initialize with its protocol version and a name", false, (*checker).initialize},
	{"unknown-method", "an unknown request is answered with the error -32601", false, (*checker).unknownMethod},
	{"notification", "an unknown notification is not answered", false, (*checker).notification},
	{"nobody", "a frame of an unknown method is reported as unsupported or malformed", false, (*checker).nobody},
	{"no-frames", "an empty list of frames is reported as unsupported or malformed", false, (*checker).noFrames},
	{exitCheck, "it runs the frames of the exit until the outermost has returned", true, (*checker).exit},
	{"again", "the same frames give the same result again: no state is kept between requests", true, (*checker).again},
	{"first", "the same frames give the same result in a new process", true, (*checker).afresh},
	{"order", "the members of an object may come in any order", true, (*checker).otherOrder},
	{"unknown-members", "unknown members are ignored", true, (*checker).unknownMembers},
	{"steps", "it stops after about the requested number of instructions, with unsupported", true, (*checker).steps},
	{"tail", "it returns the requested number of last instructions, or none", true, (*checker).tail},
	{"unreadable", "it does not invent a value for unreadable memory", true, (*checker).unreadable},
	{"unwritable", "it does not report returned if memory cannot be written", true, (*checker).unwritable},
	{"no-memory", "it does not report returned if objects cannot be allocated", true, (*checker).noMemory},
	{"no-symbols", "it does not end because of an unknown symbol", true, (*checker).noSymbols},
	{"stack-short", "a stack with one value too few is reported as malformed", true, (*checker).stackShort},
	{"stack-long", "a stack with one value too many is reported as malformed", true, (*checker).stackLong},
	{"position", "an invalid position is reported as malformed", true, (*checker).position},
	{"no-object", "an undescribed object is reported as malformed", true, (*checker).noObject},
	{"step", "it stops before the first instruction, after each and after every second if requested, and continues to the same result", true, (*checker).step},
	{"next", "it stops at the requested number of frames, and continues to the same result", true, (*checker).next},
	{"spelling", "its members have names of the protocol", false, (*checker).spelling},
	{"end", "it ends when its standard input ends", false, (*checker).end},
}

func (c *checker) initialize() (string, error) {
	child, err := c.running()
	if err != nil {
		return "", err
	}
	if c.report.Interpreter = child.About.Name; child.About.Name == "" {
		return "", errors.New("its answer has no name, which reports need")
	}
	return fmt.Sprintf("it is %.80s", child.About.Name), nil
}

func (c *checker) unknownMethod() (string, error) {
	err := c.ask("reframe.check", struct{}{})
	var failure *protocol.Failure
	switch {
	case err == nil:
		return "", errors.New("it has answered reframe.check with a result")
	case !errors.As(err, &failure):
		return "", err
	case failure.Code != -32601:
		return "", fmt.Errorf("it has answered reframe.check with the error %d: %.200s", failure.Code, failure.Message)
	}
	return "", nil
}

// notification also sends a request, to check that the request's answer comes next.
func (c *checker) notification() (string, error) {
	child, err := c.running()
	if err == nil {
		if err = child.Notify("reframe.check"); err == nil {
			err = c.ask("reframe.check", struct{}{})
		}
	}
	var failure *protocol.Failure
	if errors.As(err, &failure) && !child.Ended() {
		err = nil // another check reports what is wrong with this answer
	}
	return "", err
}

// refuses requires that the interpreter refuses a request with frames that no interpreter can resume.
func (c *checker) refuses(params any) (string, error) {
	r, err := c.hand(params, c.host(&empty))
	if err != nil {
		return "", err
	}
	why := r.refused()
	if why == "" {
		return "", fmt.Errorf("it reports that it %s", r.outcome())
	}
	return why, nil
}

func (c *checker) nobody() (string, error) {
	first := int64(0)
	return c.refuses(&protocol.Resume{Frames: []protocol.Frame{{Method: unknownMethod, Position: &first, Resume: "reexecute", Locals: []protocol.Value{}, Stack: []protocol.Value{}}}})
}

func (c *checker) noFrames() (string, error) {
	return c.refuses(&protocol.Resume{Frames: []protocol.Frame{}})
}

// exit runs the exit for the first time; later runs are compared with it.
func (c *checker) exit() (string, error) {
	m := c.o.Moment
	c.sending.begin()
	r, err := c.hand(m.Request, c.host(m))
	ranges, again := c.sending.end()
	if err != nil {
		return "", err
	}
	if why := r.refused(); why != "" {
		return "", errors.New(why)
	}
	c.first = r
	a := r.answer
	c.report.Exit = &Exit{Frames: len(m.Request.Frames), Objects: len(m.Request.Objects), Outcome: r.outcome(), Steps: a.Steps, Requests: a.Requests, Ranges: ranges, Again: again,
		Writes: r.memory.Writes(), Allocated: a.Allocated}
	return r.outcome(), nil
}

// asFirst returns the difference between a run and the first, or nil.
func (c *checker) asFirst(r *ran) error {
	was := c.first
	switch {
	case r.outcome() != was.outcome():
		return fmt.Errorf("it %s; the first time it %s", r.outcome(), was.outcome())
	case r.answer.Output != was.answer.Output:
		return fmt.Errorf("it printed %.100q, and the first time %.100q", r.answer.Output, was.answer.Output)
	case r.answer.Steps != was.answer.Steps:
		return fmt.Errorf("it ran %d instructions, and the first time %d", r.answer.Steps, was.answer.Steps)
	}
	if at, differ := firstDifference(was.memory, r.memory); differ {
		return fmt.Errorf("it stored another value at %v than the first time", at)
	}
	return nil
}

// firstDifference returns the first page in which two runs stored different bytes.
func firstDifference(a, b *protocol.Overlay) (machine.Addr, bool) {
	pages := map[machine.Addr]protocol.Stored{}
	for p := range a.Stored() {
		pages[p.Addr] = p
	}
	for p := range b.Stored() {
		was, ok := pages[p.Addr]
		if !ok || !bytes.Equal(was.Data, p.Data) || !bytes.Equal(was.Bits, p.Bits) {
			return p.Addr, true
		}
		delete(pages, p.Addr)
	}
	for at := range pages {
		return at, true
	}
	return 0, false
}

// same resumes the exit with a change of the request that must not change the result.
func (c *checker) same(params any) (string, error) {
	r, err := c.hand(params, c.host(c.o.Moment))
	if err == nil {
		err = c.asFirst(r)
	}
	return "", err
}

func (c *checker) again() (said string, err error) {
	said, err = c.same(c.o.Moment.Request)
	c.alone = err != nil
	return said, err
}

func (c *checker) afresh() (string, error) {
	c.child.Close()
	return c.same(c.o.Moment.Request)
}

// unknownMembers adds an unknown member to each object.
func (c *checker) unknownMembers() (string, error) {
	request, err := copyOf(c.o.Moment.Request)
	if err != nil {
		return "", err
	}
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if name != "extra" { // the members of "extra" are names of values
					add(member)
				} else if named, ok := member.(map[string]any); ok {
					for _, value := range named {
						add(value)
					}
				}
			}
			v["reframe.check"] = map[string]any{"unknown": []any{true}}
		case []any:
			for _, e := range v {
				add(e)
			}
		}
	}
	add(request)
	return c.same(request)
}

// otherOrder sends the members in alphabetical order, in which Go writes a map.
func (c *checker) otherOrder() (string, error) {
	request, err := copyOf(c.o.Moment.Request)
	if err != nil {
		return "", err
	}
	return c.same(request)
}

// changed resumes the exit with a changed copy of its request.
func (c *checker) changed(h *protocol.Host, change func(r *protocol.Resume)) (*ran, error) {
	r := *c.o.Moment.Request
	r.Frames = slices.Clone(r.Frames)
	change(&r)
	return c.hand(&r, h)
}

func (c *checker) steps() (string, error) {
	const enough = 1000 // instructions; a run that is asked to stop after about one must stop before this many
	if c.first.answer.Steps <= enough {
		return "", untried(fmt.Sprintf("it runs only %d instructions from this exit, and an interpreter need not check the bound at each", c.first.answer.Steps))
	}
	r, err := c.changed(c.host(c.o.Moment), func(r *protocol.Resume) { r.Steps = 1 })
	switch {
	case err != nil:
		return "", err
	case r.answer.Unsupported == "":
		return "", fmt.Errorf("one was requested, and it %s after %d", r.outcome(), r.answer.Steps)
	}
	return r.answer.Unsupported, nil
}

func (c *checker) tail() (string, error) {
	for _, n := range []int{3, 0} {
		if c.alone {
			c.child.Close()
		}
		r, err := c.changed(c.host(c.o.Moment), func(r *protocol.Resume) { r.Tail = n })
		if err != nil {
			return "", err
		}
		if got := len(r.answer.Tail); got > n {
			return "", fmt.Errorf("%d last instructions were requested, and its answer has %d", n, got)
		}
		if err := c.asFirst(r); err != nil {
			return "", err
		}
	}
	return "", nil
}

// fails resumes the exit over a host that fails one of the requests that the first run made.
func (c *checker) fails(h *protocol.Host) (string, error) {
	r, err := c.hand(c.o.Moment.Request, h)
	if err != nil {
		return "", err
	}
	if why := r.refused(); why != "" {
		return why, nil
	}
	return "", fmt.Errorf("it reports that it %s", r.outcome())
}

func (c *checker) unreadable() (string, error) {
	if c.report.Exit.Ranges == 0 {
		return "", untried("it reads no memory from this exit on")
	}
	h := c.host(c.o.Moment)
	h.Memory.MakeUnreadable()
	return c.fails(h)
}

func (c *checker) unwritable() (string, error) {
	writes := false
	for range c.first.memory.Stored() {
		writes = true
	}
	if !writes {
		return "", untried("it writes nothing to memory of the process from this exit on")
	}
	m := *c.o.Moment
	m.Maps = slices.Clone(m.Maps)
	for i := range m.Maps {
		m.Maps[i].Write = false
	}
	return c.fails(c.host(&m))
}

func (c *checker) noMemory() (string, error) {
	if c.first.answer.Allocated == 0 {
		return "", untried("it allocates nothing from this exit on")
	}
	h := c.host(c.o.Moment)
	h.Memory.Full()
	return c.fails(h)
}

func (c *checker) noSymbols() (string, error) {
	m := *c.o.Moment
	m.Symbol = noSymbol
	r, err := c.hand(m.Request, c.host(&m))
	if err != nil {
		return "", err
	}
	return r.outcome(), nil
}

// malformed requires that the interpreter reports impossible frames as malformed.
func (c *checker) malformed(change func(r *protocol.Resume)) (string, error) {
	r, err := c.changed(c.host(c.o.Moment), change)
	switch {
	case err != nil:
		return "", err
	case r.answer.Malformed == "":
		return "", fmt.Errorf("it was accepted: it %s", r.outcome())
	}
	return r.answer.Malformed, nil
}

func (c *checker) stackShort() (string, error) {
	frames := c.o.Moment.Request.Frames
	at := slices.IndexFunc(frames, func(f protocol.Frame) bool { return len(f.Stack) > 0 })
	if at < 0 {
		return "", untried("no frame of this exit has a value on its stack")
	}
	return c.malformed(func(r *protocol.Resume) {
		r.Frames[at].Stack = r.Frames[at].Stack[:len(r.Frames[at].Stack)-1]
	})
}

func (c *checker) stackLong() (string, error) {
	return c.malformed(func(r *protocol.Resume) {
		f := &r.Frames[len(r.Frames)-1]
		n := int64(len(f.Stack))
		f.Stack = append(slices.Clone(f.Stack), protocol.Value{Index: &n, Dead: true})
	})
}

func (c *checker) position() (string, error) {
	return c.malformed(func(r *protocol.Resume) {
		far := int64(1) << 40
		r.Frames[len(r.Frames)-1].Position = &far
	})
}

func (c *checker) noObject() (string, error) {
	if len(c.o.Moment.Request.Objects) == 0 {
		return "", untried("this exit has no unallocated objects")
	}
	return c.malformed(func(r *protocol.Resume) { r.Objects = nil })
}

// onward resumes the exit up to the first stop, then from each stop to the next one, and from the last stop to the end.
func (c *checker) onward(stops []protocol.Stop) error {
	r, h, all := *c.o.Moment.Request, c.host(c.o.Moment), protocol.Answer{}
	for n := 0; n <= len(stops); n++ {
		if r.Stop = nil; n < len(stops) {
			r.Stop = &stops[n]
		}
		if c.alone {
			c.child.Close()
		}
		child, err := c.running()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded()
		a, err := child.Resume(ctx, &r, h)
		cancel()
		if err != nil {
			return err
		}
		steps, output := all.Steps+a.Steps, all.Output+a.Output
		all = *a
		all.Steps, all.Output = steps, output
		if a.Stopped == nil {
			break
		}
		r.Frames, r.Objects, r.Returned = a.Stopped.Frames, a.Stopped.Objects, nil
	}
	return c.asFirst(&ran{&all, h.Memory})
}

// offered returns an error if the interpreter does not support stops.
func (c *checker) offered() error {
	child, err := c.running()
	if err == nil && !child.About.Step {
		err = untried("it does not support stopping")
	}
	return err
}

func (c *checker) step() (string, error) {
	if err := c.offered(); err != nil {
		return "", err
	}
	const some = 40 // number of instructions that are run with stops
	for _, way := range []struct {
		name  string
		stops []protocol.Stop
	}{
		{"by single instructions", slices.Repeat([]protocol.Stop{{After: 1}}, some)},
		{"before the first instruction", []protocol.Stop{{}}},
		{"by 2 instructions", slices.Repeat([]protocol.Stop{{After: 2}}, some/2)},
	} {
		if err := c.onward(way.stops); err != nil {
			return "", fmt.Errorf("%s: %w", way.name, err)
		}
	}
	return "", nil
}

func (c *checker) next() (string, error) {
	if err := c.offered(); err != nil {
		return "", err
	}
	for n := len(c.o.Moment.Request.Frames); n > 0; n-- {
		if err := c.onward([]protocol.Stop{{After: 1, Frames: n}}); err != nil {
			return "", fmt.Errorf("to %d frames: %w", n, err)
		}
	}
	return "", nil
}

func (c *checker) spelling() (string, error) {
	return "", c.sending.misspelled()
}

func (c *checker) end() (string, error) {
	child, err := c.running()
	if err != nil {
		return "", err
	}
	if child.Close() {
		return "", errors.New("it had not ended after two seconds, and was killed")
	}
	return "", nil
}
