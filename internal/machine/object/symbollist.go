package object

import (
	"iter"

	"example.com/reframe/internal/machine"
)

// Functions yields the functions that the image defines, including local ones, in the order of the image. It yields each pair of address and name once.
func (i *Image) Functions() iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		type seen struct {
			name string
			addr machine.Addr
		}
		told := map[seen]bool{}
		for _, t := range i.symbolTables() {
			_ = t.text() // reads all names at once, because each is needed
			for n := range t.rows {
				row := t.row(n)
				if !row.code || row.name == 0 {
					continue
				}
				addr, ok := i.place(row)
				if !ok {
					continue
				}
				s := Symbol{t.name(row), addr, row.size}
				key := seen{s.Name, addr}
				if s.Name == "" || told[key] {
					continue
				}
				told[key] = true
				if !yield(s) {
					return
				}
			}
		}
	}
}
