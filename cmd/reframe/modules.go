package main

import (
	"fmt"

	"reframe/deopt"
	"reframe/deopt/ir"
)

// checkedWhole is how large a module may be, in bytes, for all of its functions to be read before
// any process is touched. It takes a few milliseconds.
const checkedWhole = 128 << 10

// options reads the files. A file that is broken stops here, before any process is touched; of a
// large module a function's body is read when a frame needs it. Words that are not known are named, if there is an app to
// do it.
func (k *known) options(a *app) (deopt.Options, error) {
	o := deopt.Options{Thread: k.thread}
	for _, path := range k.modules {
		m, err := ir.ParseFile(path)
		if err == nil && m.Size() <= checkedWhole {
			err = m.Check()
		}
		if err != nil {
			return o, err
		}
		o.Modules = append(o.Modules, m)
	}
	if a != nil {
		a.modules = append(a.modules, o.Modules...)
		a.warn()
	}
	for _, path := range k.layouts {
		l, err := deopt.ReadLayout(path)
		if err != nil {
			return o, err
		}
		o.Layouts = append(o.Layouts, l)
	}
	return o, nil
}

// shownWords is how many words of a module are named that are not known; lint lists them.
const shownWords = 8

// warn names the words of the modules that are not known, each once: those of a large module's function are met as it is read.
func (a *app) warn() {
	if a.warned == nil {
		a.warned = map[ir.Warning]bool{}
	}
	for _, m := range a.modules {
		list, _ := m.Warnings()
		for n, w := range list {
			said := ir.Warning{What: m.Name, Word: w.What + " " + w.Word}
			if a.warned[said] || n > shownWords {
				continue
			}
			a.warned[said] = true
			if n == shownWords {
				fmt.Fprintf(a.stderr, "%s: %s that are not known; reframe lint lists them\n", printable(m.Name), count(len(list)-n, "more word"))
				continue
			}
			fmt.Fprintf(a.stderr, "%s:%d: unknown %s '%s'; %s\n", printable(m.Name), w.Line, w.What, printable(w.Word), w.Meaning())
		}
	}
}
