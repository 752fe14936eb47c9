package vmlayout

import (
	"fmt"
	"strings"
	"sync"

	"go.starlark.net/starlark"
)

// These bound the output of a layout's print.
const (
	maxPrints = 1000    // number of lines
	maxPrint  = 4 << 10 // bytes of one line
)

// leftOut ends the last line if a layout prints too many.
const leftOut = " (further output of the layout is left out)"

// printer passes the output of a layout to a function, or keeps it until one is set. A method of a Layout may run in several goroutines.
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
	line = line[:min(len(line), maxPrint+len(leftOut))] // if the layout runs in its own process, that process may have added leftOut
	if !strings.HasSuffix(line, leftOut) {
		if line = line[:min(len(line), maxPrint)]; p.n == maxPrints {
			line += leftOut
		}
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

// sent returns the lines that a process of layouts sends with its response, and restarts the count there. The requesting process bounds all output,
// and does not count output that it drops.
func (p *printer) sent() []string {
	p.mu.Lock()
	p.n = 0
	p.mu.Unlock()
	return p.take()
}

// OnPrint sets the function that gets the layout's output, one line with its position at a time. The function gets earlier output at once.
func (l *Layout) OnPrint(to func(line string)) {
	l.prints.mu.Lock()
	l.prints.to = to
	l.prints.mu.Unlock()
	for _, line := range l.prints.take() {
		to(line)
	}
}

// HoldPrints keeps the layout's output from now on, until OnPrint or DropPrints is called.
func (l *Layout) HoldPrints() {
	l.prints.mu.Lock()
	defer l.prints.mu.Unlock()
	l.prints.to = nil
}

// DropPrints discards the output that is kept. That output does not count against the bound of the output.
func (l *Layout) DropPrints() {
	l.prints.mu.Lock()
	defer l.prints.mu.Unlock()
	l.prints.n, l.prints.lines = min(l.prints.n, maxPrints)-len(l.prints.lines), nil
}

// said returns a printed text with its position and record.
func (l *Layout) said(r *run, t *starlark.Thread, text string) string {
	at := l.Name
	if line := (&run{layout: l}).here(t); line != "" {
		at += ":" + line
	}
	switch {
	case r == nil || r.site == nil:
	case r.site.Native != nil:
		at += ": native frame of " + r.site.Function
	default:
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

// MakesFrames reports whether the layout defines frames(site). A layout without it describes objects only.
func (l *Layout) MakesFrames() bool { return l.has("frames") }
