package main

import (
	"fmt"
	"slices"

	"reframe/deopt"
	"reframe/deopt/ir"
	"reframe/deopt/irset"
	"reframe/deopt/sites"
	"reframe/ptrace"
	"reframe/replay"
)

// options reads the files. A file that is broken stops here, before any process is touched; of a
// large module a function's body is read when a frame needs it. Words that are not known are named, if there is an app to
// do it.
func (k *inputs) options(a *app) (deopt.Options, error) {
	o := deopt.Options{Thread: k.thread}
	k.embedded = slices.Contains(k.Modules, inProcess)
	if k.embedded && !k.looks {
		return o, usage("--ir %s is for frames, resume and explain; a file of that name is ./%s", inProcess, inProcess)
	}
	files := slices.DeleteFunc(slices.Clone(k.Modules), func(name string) bool { return name == inProcess })
	modules, notes, err := irset.Read(files)
	if err != nil {
		return o, err
	}
	o.Modules = modules
	if a != nil {
		for _, note := range notes {
			fmt.Fprintln(folded(a.stderr), printable(note))
		}
	}
	if a != nil {
		a.modules = append(a.modules, o.Modules...)
		a.warn()
	}
	err = replay.ReadLayouts(&o, k.Layouts)
	return o, err
}

// inProcess stands for the IR that the target has in it.
const inProcess = "process"

// inProcess takes IR from the target.
func (k *inputs) inProcess(a *app, t *ptrace.Target, o *deopt.Options) error {
	modules, notes, err := sites.EmbeddedIR(t)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(folded(a.stderr), printable(note))
	}
	o.Modules = append(o.Modules, modules...)
	a.modules = append(a.modules, modules...)
	a.warn()
	return nil
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
				fmt.Fprintf(folded(a.stderr), "%s: %s that are not known; reframe lint lists them\n", printable(m.Name), count(len(list)-n, "more word"))
				continue
			}
			fmt.Fprintf(folded(a.stderr), "%s:%d: unknown %s '%s'; %s\n", printable(m.Name), w.Line, w.What, printable(w.Word), w.Meaning())
		}
	}
}
