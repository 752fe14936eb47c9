package text

import (
	"runtime"

	"example.com/reframe/internal/static/maps"
)

// These bound the batches of records that goroutines format in parallel.
const (
	batch = 1024       // least number of records of a batch; its text fits in the processor's cache until it is written
	usual = 512        // usual size of a record's text in bytes
	few   = 2 * batch  // an image with fewer records is not divided
	most  = 64 * batch // an image in which a function has more records is not divided
)

// part is a range of functions, and the channel for its text.
type part struct {
	functions []*maps.Function
	done      chan partText
}

// partText is the text of a part.
type partText struct {
	b     []byte
	shown int
}

// wording appends the text of a function to b, and returns the number of records in it.
type wording func(b []byte, f *maps.Function) (longer []byte, shown int)

// shared reports whether several goroutines format the records of an image. With modules only one goroutine does, because the analysis of modules is
// cached and not safe for concurrent use. The same holds for layouts of virtual machines, which look up symbols. Small images are not divided,
// because a JIT may register many of them. A very large function is excluded, because all of its text would be held at once.
func shared(i *maps.Image) bool {
	if i.HasModules() || i.HasLayouts() || i.Records() < few {
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
	}, func(t partText) {
		p.b, p.shown = t.b, p.shown+t.shown
		p.flush()
	})
	p.b = nil
}

// inWords passes the text of the wanted functions of an image to write, in their order. Formatting a million records takes longer than reading them,
// so all processors share the work.
func inWords(i *maps.Image, want *maps.Filter, batch, usual int, worker func() wording, write func(partText)) {
	workers := runtime.GOMAXPROCS(0)
	work, order := make(chan part, workers), make(chan chan partText, 2*workers)
	free := make(chan []byte, 4*workers)
	for range workers {
		say := worker()
		go func() {
			for w := range work {
				var t partText
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
			w := part{functions, make(chan partText, 1)}
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
