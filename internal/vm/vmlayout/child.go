package vmlayout

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"example.com/reframe/internal/machine"
)

// These bound a layout that runs in its own process. Builtin layouts take some milliseconds and some MiB.
const (
	childMemory = 256 << 20
	childTime   = time.Minute // limit for one answer, in addition to the bounds of steps and memory. A machine whose host swaps takes 11 s to fill 512 MiB.
	childLine   = 32 << 20
)

// Child is a process that runs layouts. They need their own process because Starlark bounds steps but not memory.
type Child struct {
	mu      sync.Mutex // held during a request and its answer
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	fail    error // the reason why the process ended
	layouts int   // number of layouts that were started in it
}

// hosted is a layout in another process.
type hosted struct {
	*Child
	number int
	has    map[string]bool

	layout  *Layout
	defined string // position of frames(site)
}

// Start runs a layout in another process: a command that calls [Serve] with its standard input and output. Close ends it. Errors in the text are
// [*Error]s.
func Start(command []string, name string, text []byte) (*Layout, *Child, error) {
	c, err := startChild(command)
	if err != nil {
		return nil, nil, err
	}
	l, err := c.start(name, text)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return l, c, nil
}

func startChild(command []string) (*Child, error) {
	c := &Child{cmd: exec.Command(command[0], command[1:]...)}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReaderSize(out, 64<<10)
	return c, c.cmd.Start()
}

// ended returns the reason why the process ended, or nil.
func (c *Child) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fail
}

// start runs the top level of a layout in the process.
func (c *Child) start(name string, text []byte) (*Layout, error) {
	if len(text) > maxText {
		return nil, &Error{File: name, Err: fmt.Errorf("over %d MiB", maxText>>20)}
	}
	c.mu.Lock()
	l := &Layout{Name: name, Text: text, child: &hosted{Child: c, number: c.layouts}}
	c.layouts++
	c.mu.Unlock()
	l.child.layout = l
	if len(text) == 0 {
		text = []byte("\n")
	}
	r, err := l.child.ask(nil, &request{Name: name, Text: text})
	if err == nil {
		err = r.failure(l, nil)
	}
	if err != nil {
		return nil, err
	}
	l.child.has, l.child.defined, l.interpreterFunctions = r.Has, r.At, r.Runs[:min(len(r.Runs), maxFunctions)]
	return l, nil
}

// Group runs the layouts that a target contains in a few processes; a target may contain one layout for each method. A layout that ends its process
// ends only the other layouts in that process.
type Group struct {
	Command []string // the command that [Start] takes

	processes [groupProcesses]*Child
	layouts   map[string]*Layout // by their texts, so that a target that is captured again gets the same layouts
	started   int
	spent     time.Duration
}

// These bound a group. A layout of 1,000 lines starts in some milliseconds.
const (
	groupProcesses = 4
	groupTime      = 20 * time.Second // to start all layouts
)

// Start runs a layout in one of the group's processes.
func (g *Group) Start(name string, text []byte) (*Layout, error) {
	if known := g.layouts[string(text)]; known != nil && known.child.ended() == nil {
		return known, nil
	}
	if g.spent > groupTime {
		return nil, &Error{File: name, Err: fmt.Errorf("not started: starting the target's %d layouts before it took over %v", g.started, groupTime)}
	}
	began := time.Now()
	defer func() { g.spent += time.Since(began) }()
	c := &g.processes[g.started%groupProcesses]
	g.started++
	if *c == nil || (*c).ended() != nil {
		var err error
		if *c, err = startChild(g.Command); err != nil {
			*c = nil
			return nil, err
		}
	}
	l, err := (*c).start(name, text)
	if err != nil {
		return nil, err
	}
	if g.layouts == nil {
		g.layouts = map[string]*Layout{}
	}
	g.layouts[string(text)] = l
	return l, nil
}

// Close ends the processes of a group.
func (g *Group) Close() {
	for _, c := range g.processes {
		c.Close()
	}
}

// ask sends a request about the layout.
func (c *hosted) ask(from *Source, r *request) (*response, error) {
	r.Layout = c.number
	got, err := c.Child.ask(from, r)
	if err == nil {
		for _, line := range got.Prints[:min(len(got.Prints), maxPrints)] {
			c.layout.prints.add(line)
		}
	}
	return got, err
}

// Close ends the process.
func (c *Child) Close() {
	if c == nil {
		return
	}
	_ = c.in.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // the error only reports that Close has killed the process
	if c.fail == nil {
		c.fail = errors.New("its process has ended")
	}
}

// failure returns the error in a response.
func (r *response) failure(l *Layout, site *Site) error {
	if r.Error == "" {
		return nil
	}
	return &Error{File: l.Name, At: r.At, Via: r.Via, Site: site, Err: errors.New(r.Error[:min(len(r.Error), maxMessage)]), NeedsTarget: r.Needs}
}

// maxMessage bounds the length of an error, because many sites may each have one.
const maxMessage = 4 << 10

// ask sends a request and returns the response. It serves the child's reads of memory from a source.
func (c *Child) ask(from *Source, r *request) (*response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return nil, c.fail
	}
	timer := time.AfterFunc(childTime, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	ended := func(err error) (*response, error) {
		if !timer.Stop() {
			c.fail = fmt.Errorf("the layout took over %v", childTime)
		} else {
			c.fail = fmt.Errorf("the layout's process ended; its memory is limited to %d MiB", childMemory>>20)
		}
		c.Close()
		return nil, c.fail
	}
	if err := c.send(r); err != nil {
		return ended(err)
	}
	for reads := 0; ; reads++ {
		var got response
		line, err := c.line()
		if err != nil {
			return ended(err)
		}
		if err := json.Unmarshal(line, &got); err != nil {
			return ended(err)
		}
		if got.Read == nil {
			return &got, nil
		}
		if err := c.send(from.answer(got.Read, reads)); err != nil {
			return ended(err)
		}
	}
}

func (c *Child) send(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	return err
}

// line reads a line of bounded length.
func (c *Child) line() (line []byte, err error) {
	for {
		part, more := c.out.ReadSlice('\n')
		if line = append(line, part...); len(line) > childLine {
			return nil, errors.New("an endless line")
		}
		if more != bufio.ErrBufferFull {
			return line, more
		}
	}
}

// maxReads bounds the reads for one answer.
const maxReads = 1 << 14

// answer reads memory for a layout in another process.
func (from *Source) answer(r *wireRead, reads int) *wireMemory {
	if from == nil || from.Static == nil {
		return &wireMemory{Error: errNoMemory.Error()}
	}
	if r.Symbol != "" {
		switch {
		case from.symbol == nil:
			return &wireMemory{}
		case len(r.Symbol) > maxString:
			return &wireMemory{Error: fmt.Sprintf("a symbol of %d bytes; the limit is %d", len(r.Symbol), maxString)}
		case reads > maxReads:
			return &wireMemory{Error: fmt.Sprintf("over %d reads and symbols", maxReads)}
		}
		at, _, err := from.symbol(r.Symbol)
		if err != nil {
			return &wireMemory{Error: err.Error()}
		}
		return &wireMemory{At: uint64(at)}
	}
	if r.Size <= 0 || r.Size > maxPart || reads > maxReads {
		return &wireMemory{Error: "too much memory requested"}
	}
	buf := make([]byte, r.Size)
	if err := from.Static.ReadMemory(buf, machine.Addr(r.Addr)); err != nil {
		return &wireMemory{Error: err.Error(), Needs: errors.Is(err, errNoTarget)}
	}
	return &wireMemory{Data: buf}
}

func (c *hosted) frames(l *Layout, site *Site) (*Shape, error) {
	from := site.Target.source()
	r, err := c.ask(from, &request{Site: &wireSite{site.Function, site.Record, site.Kind, site.Moment, wireOperands(site.Operands), wireOperands(site.Args), from != nil, site.Native}})
	if err == nil {
		err = r.failure(l, site)
	}
	if err == nil && r.Shape != nil {
		err = r.Shape.sound(site)
	}
	if err != nil {
		var mine *Error
		if !errors.As(err, &mine) {
			err = &Error{File: l.Name, Site: site, Err: err}
		}
		return nil, err
	}
	if r.Shape == nil {
		return nil, nil
	}
	r.Shape.Layout = l
	r.Shape.tokens(func(v *Value) {
		if v.CodecNumber != 0 {
			v.Codec = &codecElsewhere{c, v.CodecNumber}
		}
	})
	return r.Shape, nil
}

// told sends a request as ask does, and returns an error that is in the response.
func (c *hosted) told(from *Source, r *request) (*response, error) {
	got, err := c.ask(from, r)
	if err == nil && got.Error != "" && got.At == "" && !got.Needs {
		return nil, errors.New(got.Error)
	}
	if err == nil && got.Error != "" {
		return nil, &Error{File: c.layout.Name, At: got.At, Via: got.Via, Err: errors.New(got.Error[:min(len(got.Error), maxMessage)]), NeedsTarget: got.Needs}
	}
	return got, err
}

func (c *hosted) name(from *Source, what string, bits uint64) (string, error) {
	r, err := c.told(from, &request{Of: what, Bits: bits})
	if err != nil {
		return "", err
	}
	return r.Text[:min(len(r.Text), maxString)], nil
}

func (c *hosted) reference(bits uint64) (uint64, error) {
	r, err := c.told(nil, &request{Of: "reference", Bits: bits})
	if err != nil {
		return 0, err
	}
	return r.Bits, nil
}

func (c *hosted) info(from *Source, method uint64, position int64) (map[string]string, error) {
	r, err := c.told(from, &request{Of: "info", Bits: method, Place: position})
	if err != nil {
		return nil, err
	}
	return r.Info, nil
}

// codecElsewhere is a codec of a layout in another process.
type codecElsewhere struct {
	child  *hosted
	number int
}

func (c *codecElsewhere) Decode(bits uint64) (Typed, error) {
	return c.decode(nil, []uint64{bits})
}

func (c *codecElsewhere) decode(from *Source, words []uint64) (Typed, error) {
	r, err := c.child.told(from.current(), &request{Decode: c.number, Words: words, Memory: from != nil, Left: int64(from.left())})
	switch {
	case err != nil:
		return Typed{}, err
	case r.Typed == nil:
		return Typed{}, errors.New("no value")
	}
	if t := r.Typed.Type; known(t) != nil && t != "null" && t != "symbol" {
		return Typed{}, known(t)
	}
	return *r.Typed, nil
}

func (c *codecElsewhere) Encode(v Typed) (uint64, error) {
	words, err := c.encode(nil, v, []uint64{0})
	if err != nil {
		return 0, err
	}
	return words[0], nil
}

func (c *codecElsewhere) encode(from *Source, v Typed, words []uint64) ([]uint64, error) {
	r, err := c.child.told(from.current(), &request{Encode: &v, Codec: c.number, Words: words, Memory: from != nil, Left: int64(from.left())})
	if err == nil && len(r.Words) != len(words) {
		err = fmt.Errorf("%d words for a value of %d", len(r.Words), len(words))
	}
	if err != nil {
		return nil, err
	}
	return r.Words, nil
}
