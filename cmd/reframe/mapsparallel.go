package main

import (
	"runtime"

	"reframe/deopt/maps"
)

// batch is how many records, at least, one goroutine puts into words at a time, and usual how
// many bytes those of one take.
const (
	batch = 1024
	usual = 512
)

// part is a run of functions, and where its text goes.
type part struct {
	functions []*maps.Function
	done      chan text
}

// text is what a part became.
type text struct {
	b     []byte
	shown int
}

// functions prints the wanted functions of an image in their order. Putting a million
// records into words takes longer than reading them, so all processors take their share.
func (p *mapsText) functions(i *maps.Image) {
	// What is known of modules is found out once, and not by two at a time. A JIT may have
	// registered many objects of few records.
	if i.HasModules() || i.Records() < 2*batch {
		for f := range i.Functions() {
			if p.want.Function(f) {
				p.function(f)
			}
		}
		return
	}
	p.flush()
	workers := runtime.GOMAXPROCS(0)
	work, order := make(chan part, workers), make(chan chan text, 2*workers)
	free := make(chan []byte, 4*workers)
	for range workers {
		go func() {
			own := &mapsText{style: p.style, want: p.want}
			for w := range work {
				own.b, own.shown = nil, 0
				select {
				case own.b = <-free:
				default:
					own.b = make([]byte, 0, batch*usual)
				}
				for _, f := range w.functions {
					own.function(f)
				}
				w.done <- text{own.b, own.shown}
			}
		}()
	}
	go func() {
		send := func(functions []*maps.Function) {
			w := part{functions, make(chan text, 1)}
			order <- w.done
			work <- w
		}
		var functions []*maps.Function
		records := 0
		for f := range i.Functions() {
			if !p.want.Function(f) {
				continue
			}
			functions = append(functions, f)
			if records += f.Len(); records >= batch {
				send(functions)
				functions, records = nil, 0
			}
		}
		send(functions)
		close(work)
		close(order)
	}()
	for done := range order {
		t := <-done
		p.b, p.shown = t.b, p.shown+t.shown
		p.flush()
		select {
		case free <- p.b:
		default:
		}
	}
	p.b = nil
}
