package vmlayout

import (
	"fmt"
	"sync"

	"go.starlark.net/starlark"
)

// Bounds of the output of a layout's print.
const (
	maxPrints = 1000    // lines
	maxPrint  = 4 << 10 // bytes of one
)

// printer passes on what a layout prints, or keeps it until there is a function for it. A method of a Layout may run in several goroutines.
type printer struct {
	mu    sync.Mutex
	lines []string
	n     int // number of lines so far
	to    func(line string)
}

func (p *printer) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n++; p.n > maxPrints {
		return
	}
	if line = line[:min(len(line), maxPrint)]; p.n == maxPrints {
		line += " (further output of the layout is left out)"
	}
	if p.to != nil {
		p.to(line)
		return
	}
	p.lines = append(p.lines, line)
}

// take returns the lines that were not passed on.
func (p *printer) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := p.lines
	p.lines = nil
	return lines
}

// OnPrint sets the function that gets what the layout prints, a line with its position each time. It gets what was printed before at once.
func (l *Layout) OnPrint(to func(line string)) {
	l.prints.mu.Lock()
	l.prints.to = to
	l.prints.mu.Unlock()
	for _, line := range l.prints.take() {
		to(line)
	}
}

// said returns a printed text with its position and record.
func (l *Layout) said(r *run, t *starlark.Thread, text string) string {
	at := l.Name
	if line := (&run{layout: l}).here(t); line != "" {
		at += ":" + line
	}
	if r != nil && r.site != nil {
		at += fmt.Sprintf(": record %d of @%s", r.site.Record, r.site.Function)
	}
	return at + ": " + text
}

// returned is the error that a function of the layout returned a value of another type, at the position of the function.
func (l *Layout) returned(f starlark.Callable, v starlark.Value, want string) error {
	e := &Error{File: l.Name, Err: fmt.Errorf("%s returned a %s; expected %s", f.Name(), v.Type(), want)}
	if f, ok := f.(*starlark.Function); ok {
		e.At = lineOf(f.Position())
	}
	return e
}

// Defined returns the position of frames(site) in the layout, as line:column.
func (l *Layout) Defined() string {
	if l.child != nil {
		return l.child.defined
	}
	if f, ok := l.frames.(*starlark.Function); ok {
		return lineOf(f.Position())
	}
	return ""
}
