package vmlayout

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"example.com/reframe/internal/machine/object"
)

// Layout is a program that reads an encoding. Several goroutines may use it at once.
type Layout struct {
	Name string // a file, or the name of a builtin layout
	Text []byte

	frames     starlark.Callable // the function frames(site); nil if the layout describes only objects
	object     starlark.Callable // this function and the next ones are nil if the layout does not define them
	methodName starlark.Callable
	className  starlark.Callable
	info       starlark.Callable
	reference  starlark.Callable
	localName  starlark.Callable
	fieldName  starlark.Callable
	text       starlark.Callable

	interpreterFrames    starlark.Callable // nil unless the layout also defines interpreter_functions
	interpreterFunctions []string          // names of the native functions whose frames interpreterFrames describes

	prints printer

	child *hosted // the layout in the process that runs it; nil if this process runs it

	mu     sync.Mutex
	images map[*object.Image]bool // the images that contain the layout
}

// Describes notes that an image contains the layout, so that [For] returns this layout before all others for the records of that image.
func (l *Layout) Describes(img *object.Image) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.images == nil {
		l.images = map[*object.Image]bool{}
	}
	l.images[img] = true
}

func (l *Layout) describes(img *object.Image) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.images[img]
}

// For returns layouts in the order in which they are tried on the records of an image, with those that the image contains first. The image may be
// nil.
func For(img *object.Image, layouts []*Layout) []*Layout {
	if img == nil || len(layouts) < 2 {
		return layouts
	}
	var own, others []*Layout
	for _, l := range layouts {
		if l.describes(img) {
			own = append(own, l)
		} else {
			others = append(others, l)
		}
	}
	return append(own, others...)
}

// Join returns the layouts of both lists, without duplicates.
func Join(list, more []*Layout) []*Layout {
	list = slices.Clip(list)
	for _, l := range more {
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// Limits of one call of a layout's function. A record has some hundred operands; twenty steps for each are enough.
const (
	maxSteps  = 2_000_000
	maxText   = 1 << 20
	maxFrames = 1 << 10
	maxPlaced = 1 << 16 // values of all frames and objects
)

// stepsPerCheck is the number of steps after which a call reads the clock again. It is small, because some steps are slow, such as reads of memory.
const stepsPerCheck = 500

// errSteps is the reason for which a call with too many steps is cancelled.
var errSteps = fmt.Errorf("it did not end after %d steps", maxSteps)

// cancelKey is the local of a Starlark thread that holds the reason for which the call was cancelled.
const cancelKey = "reframe cancelled"

// cancel ends a call for a reason, which [Layout.wrong] returns: the text of the error may also come from the layout.
func cancel(t *starlark.Thread, why error) {
	t.SetLocal(cancelKey, why)
	t.Cancel(why.Error())
}

//go:embed layouts/*.star
var builtin embed.FS

// Builtin returns the names of the layouts that come with reframe, in alphabetical order.
func Builtin() (names []string) {
	entries, _ := builtin.ReadDir("layouts")
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".star"))
	}
	slices.Sort(names)
	return names
}

// IsBuiltin reports whether reframe has a builtin layout with a name.
func IsBuiltin(name string) bool { return slices.Contains(Builtin(), name) }

// IsLayout reports whether a name is that of a layout of this package: a file that ends in .star, or a name in [Builtin].
func IsLayout(name string) bool { return strings.HasSuffix(name, ".star") || IsBuiltin(name) }

// Read reads a layout by its name. Errors in the text are [*Error]s.
func Read(name string) (*Layout, error) {
	if IsBuiltin(name) {
		text, err := builtin.ReadFile(path.Join("layouts", name+".star"))
		if err != nil {
			return nil, err
		}
		return Parse(name, text)
	}
	text, err := ReadText(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// ReadText reads the text of a layout file. If the file is too large, it reads just enough to show that.
func ReadText(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := make([]byte, maxText+1)
	n := 0
	for n < len(text) {
		k, err := f.Read(text[n:])
		if n += k; err != nil || k == 0 {
			break
		}
	}
	return text[:n], nil
}

// Parse runs the top level of a layout, which defines its functions.
func Parse(name string, text []byte) (*Layout, error) {
	if len(text) > maxText {
		return nil, &Error{File: name, Err: fmt.Errorf("over %d MiB", maxText>>20)}
	}
	l := &Layout{Name: name, Text: text}
	options := &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}
	t := l.thread(nil)
	globals, err := starlark.ExecFileOptions(options, t, name, text, l.universe())
	if err != nil {
		return nil, l.wrong(t, nil, err)
	}
	globals.Freeze()
	for _, f := range []struct {
		name string
		to   *starlark.Callable
	}{{"frames", &l.frames}, {"object", &l.object}, {"method_name", &l.methodName}, {"class_name", &l.className}, {"info", &l.info}, {"reference", &l.reference}, {"local_name", &l.localName}, {"field_name", &l.fieldName}, {"text", &l.text}, {"interpreter_frames", &l.interpreterFrames}} {
		v, there := globals[f.name]
		if !there {
			continue
		}
		call, ok := v.(starlark.Callable)
		if !ok {
			return nil, &Error{File: name, Err: fmt.Errorf("%s is a %s; expected a function", f.name, v.Type())}
		}
		*f.to = call
	}
	if l.frames == nil && l.object == nil {
		return nil, &Error{File: name, Err: errors.New("it defines neither frames(site) nor object(addr)")}
	}
	if err := l.listFunctions(globals); err != nil {
		return nil, &Error{File: name, Err: err}
	}
	return l, nil
}

// thread returns the Starlark thread of one call.
func (l *Layout) thread(r *run) *starlark.Thread {
	t := &starlark.Thread{Name: l.Name, Print: func(t *starlark.Thread, text string) { l.prints.add(l.said(r, t, text)) }}
	t.SetMaxExecutionSteps(maxSteps)
	t.OnMaxSteps = func(t *starlark.Thread) { cancel(t, errSteps) }
	if r != nil {
		t.SetLocal(runKey, r)
	}
	return t
}

// call calls a function of the layout at an exit. If the source is nil, no memory may be read.
func (l *Layout) call(f starlark.Callable, from *Source, args ...starlark.Value) (starlark.Value, error) {
	return l.callOn(l.thread(&run{layout: l, source: from}), f, args...)
}

// callWithin is like call. It also ends the call after a time.
func (l *Layout) callWithin(limit time.Duration, f starlark.Callable, from *Source, args ...starlark.Value) (starlark.Value, error) {
	t, end := l.thread(&run{layout: l, source: from}), time.Now().Add(limit)
	t.SetMaxExecutionSteps(stepsPerCheck)
	t.OnMaxSteps = func(t *starlark.Thread) {
		switch {
		case t.Steps >= maxSteps:
			cancel(t, errSteps)
		case !time.Now().Before(end):
			cancel(t, errCodecTime)
		default:
			t.SetMaxExecutionSteps(min(t.Steps+stepsPerCheck, maxSteps))
		}
	}
	return l.callOn(t, f, args...)
}

func (l *Layout) callOn(t *starlark.Thread, f starlark.Callable, args ...starlark.Value) (starlark.Value, error) {
	v, err := starlark.Call(t, f, args, nil)
	if err != nil {
		return nil, l.wrong(t, nil, err)
	}
	return v, nil
}

// Frames runs the layout for a site: frames(site), or interpreter_frames(native) if the site is a native frame. The shape is nil if the function
// returned None, or is missing: the site does not belong to the layout. The error is an [*Error].
func (l *Layout) Frames(site *Site) (*Shape, error) {
	if l.child != nil {
		return l.child.frames(l, site)
	}
	r := newRun(l, site)
	by, of := l.frames, starlark.Value(&siteValue{r})
	if site.Native != nil {
		by, of = l.interpreterFrames, &nativeValue{base{"native"}, r}
	}
	if by == nil {
		return nil, nil
	}
	t := l.thread(r)
	v, err := starlark.Call(t, by, starlark.Tuple{of}, nil)
	if err != nil {
		return nil, l.wrong(t, r, err)
	}
	if v == starlark.None {
		return nil, nil
	}
	shape, err := r.shape(v)
	if err != nil {
		return nil, l.wrong(t, r, err)
	}
	return shape, nil
}

// Error is an error in a layout, or in a record that it reads.
type Error struct {
	File string
	At   string // line:column in the file, "" if unknown
	Via  string // the places of the calls in the file that led to At, innermost first; "" for none
	Site *Site  // nil if the error is not about a record
	Err  error
	// NeedsTarget is set if the layout reads memory to make frames, and the site has no target.
	NeedsTarget bool
}

// Error implements error.
func (e *Error) Error() string {
	where := e.File
	if e.At != "" {
		where += ":" + e.At
	}
	switch {
	case e.Site != nil && e.Site.Native != nil:
		where += ": native frame of " + e.Site.Function
	case e.Site != nil:
		where += fmt.Sprintf(": record %d of @%s", e.Site.Record, e.Site.Function)
	}
	return fmt.Sprintf("%s: %v", where, e.Err)
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// wrong converts an error of a Starlark thread to an [Error].
func (l *Layout) wrong(t *starlark.Thread, r *run, err error) *Error {
	var mine *Error
	if errors.As(err, &mine) {
		return mine
	}
	e := &Error{File: l.Name, Err: err, NeedsTarget: errors.Is(err, errNoTarget)}
	if r != nil {
		e.Site = r.site
	}
	var at *placed
	if errors.As(err, &at) {
		e.At, e.Err = at.at, at.err
		return e
	}
	var resolved syntax.Error
	var eval *starlark.EvalError
	switch {
	case errors.As(err, &resolved):
		e.At, e.Err = lineOf(resolved.Pos), errors.New(resolved.Msg)
	case errors.As(err, &eval):
		var calls []string
		for n := range eval.CallStack { // without recursion, which Starlark rejects, the stack is as deep as the layout has functions
			if pos := eval.CallStack.At(n).Pos; pos.Filename() == l.Name {
				calls = append(calls, lineOf(pos))
			}
		}
		if len(calls) > 0 {
			e.At, e.Via = calls[0], strings.Join(calls[1:min(len(calls), maxVia)], " ")
		}
		if e.Err = errors.New(eval.Msg); t.Local(cancelKey) != nil {
			e.Err, _ = t.Local(cancelKey).(error)
		}
	}
	if list := (resolveErrors)(nil); errors.As(err, &list) {
		e.At, e.Err = lineOf(list[0].Pos), errors.New(list[0].Msg)
	}
	return e
}

// maxVia bounds the calls in [Error].Via.
const maxVia = 64

// PositionOf returns the position of an error in the layout with those of the calls that led to it, or its text if it has none. Different mistakes may be
// found by the same function of the layout.
func PositionOf(err error) string {
	var e *Error
	if errors.As(err, &e) && e.At != "" {
		return strings.TrimSpace(e.At + " " + e.Via)
	}
	return err.Error()
}

func lineOf(p syntax.Position) string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }
