package main

import (
	"runtime"

	"reframe/deopt/maps"
)

// batch is how many records, at least, one goroutine puts into words at a time, and usual how many bytes those of one take: what is written
// stays in the processor's cache until it is handed on. An image with less than few records is not parted, nor one with a function of more
// than most.
const (
	batch = 1024
	usual = 512
	few   = 2 * batch
	most  = 64 * batch
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

// wording appends a function to b, and says how many records it has shown.
type wording func(b []byte, f *maps.Function) (longer []byte, shown int)

// shared reports whether several goroutines put the records of an image into words. What is known of modules is found out once, and not
// by two at a time. A JIT may have registered many objects of few records; and of a function with very many, all would be held at once.
func shared(i *maps.Image) bool {
	if i.HasModules() || i.Records() < few {
		return false
	}
	for f := range i.Functions() {
		if f.Len() > most {
			return false
		}
	}
	return true
}

// functions prints the wanted functions of an image in their order.
func (p *mapsText) functions(i *maps.Image) {
	if !shared(i) {
		for f := range i.Functions() {
			if p.want.Function(f) {
				p.function(f)
			}
		}
		return
	}
	p.flush()
	inWords(i, p.want, batch, usual, func() wording {
		own := &mapsText{style: p.style, want: p.want}
		return func(b []byte, f *maps.Function) ([]byte, int) {
			own.b, own.shown = b, 0
			own.function(f)
			return own.b, own.shown
		}
	}, func(t text) {
		p.b, p.shown = t.b, p.shown+t.shown
		p.flush()
	})
	p.b = nil
}

// inWords gives write the text of the wanted functions of an image in their order. Putting a million
// records into words takes longer than reading them, so all processors take their share.
func inWords(i *maps.Image, want *maps.Filter, batch, usual int, worker func() wording, write func(text)) {
	workers := runtime.GOMAXPROCS(0)
	work, order := make(chan part, workers), make(chan chan text, 2*workers)
	free := make(chan []byte, 4*workers)
	for range workers {
		say := worker()
		go func() {
			for w := range work {
				var t text
				select {
				case t.b = <-free:
				default:
					t.b = make([]byte, 0, batch*usual)
				}
				for _, f := range w.functions {
					var shown int
					t.b, shown = say(t.b, f)
					t.shown += shown
				}
				w.done <- t
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
			if !want.Function(f) {
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
		write(t)
		select {
		case free <- t.b[:0]:
		default:
		}
	}
}
