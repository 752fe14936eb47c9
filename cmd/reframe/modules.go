package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/replay"
)

// options reads the files of the flags. It reports a broken file before any process is stopped. The body of a function in a large module is read when
// a frame needs it. Unknown words of the modules are reported unless a is nil.
func (k *inputs) options(a *app) (deopt.Options, error) {
	o := deopt.Options{Thread: k.thread, Depth: k.depth}
	k.embedded = slices.Contains(k.Modules, inProcess)
	if k.embedded && !k.looks {
		return o, usage("--ir %s requires frames, resume or explain; use ./%s for a file of that name", inProcess, inProcess)
	}
	files := slices.DeleteFunc(slices.Clone(k.Modules), func(name string) bool { return name == inProcess })
	modules, notes, err := k.readModules(files)
	if err != nil {
		return o, err
	}
	if k.follows && len(files) > 0 {
		var began time.Time // zero if the process has not started yet
		if k.pid > 0 {
			if began, err = system.Started(k.pid); err != nil {
				began = time.Time{} // the process was not found; opening it reports the error
			}
		}
		k.dumps = described.NewDumps(files, modules, began)
		o.Refuses = k.dumps.Refuses
	}
	o.Modules = modules
	if a != nil {
		for _, note := range notes {
			fmt.Fprintln(text.Fold(a.stderr), text.Printable(note))
		}
	}
	if a != nil {
		a.modules = append(a.modules, o.Modules...)
		a.warn()
	}
	for _, name := range k.Layouts {
		if !k.apart || !vmlayout.IsLayout(name) || vmlayout.IsBuiltin(name) {
			err = replay.ReadLayouts(&o, []string{name})
		} else if l, failed := layoutApart(name); failed != nil {
			err = failed
		} else {
			o.VMs = append(o.VMs, l)
		}
		var wrong *layout.Error
		var star *vmlayout.Error
		switch {
		case k.mistake != nil && (errors.As(err, &wrong) || errors.As(err, &star)):
			k.mistake(err)
			err = nil
		case err != nil:
			return o, err
		}
	}
	a.showPrints(o.VMs)
	return o, nil
}

// showPrints prints the output of layouts on standard error. Without an app it does nothing.
func (a *app) showPrints(layouts []*vmlayout.Layout) {
	if a == nil {
		return
	}
	for _, l := range layouts {
		l.OnPrint(func(line string) { fmt.Fprintln(text.Fold(a.stderr), text.Printable(line)) })
	}
}

// layoutApart runs a user's layout in a process of its own, because the layout runs for many sites, and Starlark limits only its steps, not its
// memory.
func layoutApart(name string) (*vmlayout.Layout, error) {
	text, err := vmlayout.ReadText(name)
	if err != nil {
		return nil, err
	}
	return startLayout(name, text)
}

// startLayout starts a process that runs a layout. The process ends with this one.
func startLayout(name string, text []byte) (*vmlayout.Layout, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	is, _, err := vmlayout.Start([]string{self, layoutCommand}, name, text)
	return is, err
}

// readModules reads the modules that names refer to. For a verb that follows a process, folders and patterns may match no file yet, or files that
// are still being written and cannot be read.
func (k *inputs) readModules(names []string) (modules []*ir.Module, notes []string, err error) {
	if !k.follows {
		return ir.ReadNamed(names)
	}
	modules, notes, grows, err := ir.ReadGrowing(names)
	k.grows = k.grows || grows
	return modules, notes, err
}

// inProcess is the value of --ir that selects the IR embedded in the target.
const inProcess = "process"

// inProcess adds the IR that is embedded in the target to o.
func (k *inputs) inProcess(a *app, t *ptrace.Target, o *deopt.Options) error {
	modules, notes, err := sites.EmbeddedIR(t)
	if err != nil {
		return err
	}
	for _, note := range notes {
		k.once(note, func() { fmt.Fprintln(text.Fold(a.stderr), text.Printable(note)) })
	}
	o.Modules = append(o.Modules, modules...)
	a.modules = append(a.modules, modules...)
	a.warn()
	return nil
}

// undescribed returns which descriptions reframe reads from the target: modules, which can be combined with given ones, and layouts if none was
// given.
func (k *inputs) undescribed() trace.Undescribed {
	return trace.Undescribed{Modules: !k.mute, Layouts: !k.mute && len(k.Layouts) == 0}
}

// yet returns what is unknown before the target runs: its modules, if none was given or if a folder or pattern may match more files later, and its
// layouts, if none was given.
func (k *inputs) yet() trace.Undescribed {
	return trace.Undescribed{Modules: !k.mute && len(k.Modules) == 0 || k.grows, Layouts: k.undescribed().Layouts}
}

// describes reports whether reframe reads descriptions from the target.
func (k *inputs) describes() bool { return k.undescribed() != trace.Undescribed{} }

// description adds to o the IR that the target contains, and its layouts if none was given. If a released process has a layout, the process is
// captured again and held. All others are stopped only while memory is copied.
func (k *inputs) description(ctx context.Context, a *app, t *ptrace.Target, held bool, o *deopt.Options) (*ptrace.Target, error) {
	layouts, modules := len(k.Layouts) == 0, true
	if layouts && !held && !k.still() {
		if layouts = len(described.Of(t, true, false).Layouts) > 0; layouts {
			t.Close()
			var err error
			if t, err = k.target(ctx, true); err != nil {
				return nil, err
			}
		}
	}
	if k.group == nil {
		var err error
		if k.group, err = newGroup(); err != nil {
			return nil, err
		}
	}
	d := described.Of(t, layouts, modules)
	said, notes := take(d, k.group, o)
	a.showPrints(o.VMs)
	once := func(text string) { k.once(text, func() { a.note(text) }) }
	if said != "" {
		once(using(d) + ": " + said + " (--no-self-description to ignore them)")
	}
	for _, note := range notes {
		once("its own description: " + note)
	}
	return t, nil
}

// once prints a note about the target unless the note was printed before, because a target may be captured several times.
func (k *inputs) once(note string, print func()) {
	if k.told[note] {
		return
	}
	if k.told == nil {
		k.told = map[string]bool{}
	}
	k.told[note] = true
	print()
}

// take adds the description in a target to the options. It returns a summary of what it added, and notes about what could not be read. A layout that
// is not the name of a builtin one runs in a process of its own, which ends with this process.
func take(d *described.Description, group *vmlayout.Group, o *deopt.Options) (what string, notes []string) {
	var said []string
	more, failed := 0, 0
	for _, l := range d.Layouts {
		is, name, err := describedLayout(l, group)
		if err != nil {
			if failed++; failed <= shownLayouts {
				d.Notes = append(d.Notes, err.Error())
			}
			continue
		}
		for _, img := range l.Images {
			is.Describes(img)
		}
		o.VMs = append(o.VMs, is)
		if len(said) < shownLayouts {
			said = append(said, name)
		} else {
			more++
		}
	}
	if more > 0 {
		said = append(said, text.Count(more, "more layout"))
	}
	if failed > shownLayouts {
		d.Notes = append(d.Notes, text.Count(failed-shownLayouts, "more layout")+" cannot be used")
	}
	if n := len(d.Modules); n > 0 {
		o.Modules = append(o.Modules, d.Modules...)
		said = append(said, text.Count(n, "module"))
	}
	return strings.Join(said, ", "), d.Notes
}

// shownLayouts bounds the number of a target's layouts that a message names.
const shownLayouts = 8

// newGroup returns the processes in which the layouts of a target run.
func newGroup() (*vmlayout.Group, error) {
	self, err := os.Executable()
	return &vmlayout.Group{Command: []string{self, layoutCommand}}, err
}

// using returns a text for the user about the descriptions that reframe uses from the process.
func using(d *described.Description) string {
	what := "IR"
	switch {
	case len(d.Layouts) > 0 && len(d.Modules) > 0:
		what = "layout and IR"
	case len(d.Layouts) > 0:
		what = "layout"
	}
	return "using the " + what + " found in the process"
}

// describedLayout starts a layout that the target contains, and returns it with its name for messages.
func describedLayout(l described.Layout, group *vmlayout.Group) (*vmlayout.Layout, string, error) {
	if name := string(l.Text); vmlayout.IsBuiltin(name) {
		is, err := vmlayout.Read(name)
		return is, fmt.Sprintf("layout %s (%s)", name, l.Where), err
	}
	is, err := group.Start(l.Where+", layout", l.Text)
	return is, "layout of " + l.Where, err
}

// describer is like description, for a target that keeps running. Each object that it registers may contain IR or a layout, and it may write more of
// the given files. describer returns nil if neither can happen. It must be called once for each process.
func (k *inputs) describer(warn func(string)) described.Ask {
	ask := described.Ask(func(string, *object.Image) ([]*ir.Module, []*vmlayout.Layout) { return nil, nil })
	switch {
	case k.describes():
		ask = describer(len(k.Layouts) == 0, true, " (--no-self-description to ignore them)", func(text string) { warn("note: " + text) })
	case k.dumps == nil:
		return nil
	}
	if k.dumps != nil && k.described {
		k.dumps.Begin()
	}
	k.described = true
	return func(where string, img *object.Image) ([]*ir.Module, []*vmlayout.Layout) {
		modules, layouts := ask(where, img)
		if k.dumps != nil {
			dumped, notes := k.dumps.Registered(img)
			modules = append(modules, dumped...)
			for _, note := range notes {
				warn(note)
			}
		}
		k.learned.modules, k.learned.layouts = k.learned.modules || len(modules) > 0, k.learned.layouts || len(layouts) > 0
		return modules, layouts
	}
}

// nameless reports whether neither the user nor the target gave a module or a layout, which are the sources of slot names.
func (k *inputs) nameless() bool {
	return len(k.Modules) == 0 && len(k.Layouts) == 0 && !k.learned.modules && !k.learned.layouts
}

// withoutModules returns why, and for a verb that runs modules adds that no module was given.
func (k *inputs) withoutModules(why string) string {
	if len(k.Modules) == 0 && !k.learned.modules {
		why += "; no module for the interpreter: the target contains none, and --ir FILE.ll was not given"
	}
	return why
}

// describer reads layouts, modules or both from a target. When it first finds any, it calls warn once, with a hint.
func describer(wantLayouts, wantModules bool, hint string, warn func(string)) described.Ask {
	d, said, started := &described.Description{}, false, map[string]*vmlayout.Layout{} // the layouts by their text; nil for an unusable one
	group, err := newGroup()
	if err != nil {
		warn("its layouts cannot be used: " + err.Error())
		wantLayouts = false
	}
	return func(where string, img *object.Image) ([]*ir.Module, []*vmlayout.Layout) {
		modules, notes := len(d.Modules), len(d.Notes)
		layout := d.Add(where, img, wantLayouts, wantModules)
		add := &described.Description{Modules: d.Modules[modules:], Notes: slices.Clone(d.Notes[notes:])}
		var o deopt.Options
		if layout != nil {
			if is, known := started[string(layout.Text)]; !known {
				add.Layouts = append(add.Layouts, *layout)
			} else if is != nil {
				is.Describes(img)
				o.VMs = append(o.VMs, is)
			}
		}
		what, more := take(add, group, &o)
		for _, l := range o.VMs {
			l.OnPrint(warn)
		}
		if len(add.Layouts) > 0 {
			started[string(layout.Text)] = nil
			if len(o.VMs) > 0 {
				started[string(layout.Text)] = o.VMs[0]
			}
		}
		if !said && what != "" {
			said = true
			warn(using(add) + hint)
		}
		for _, note := range more {
			warn("its own description: " + note)
		}
		return o.Modules, o.VMs
	}
}

// layoutCommand is the hidden command that runs a target's layout for another process of reframe.
const layoutCommand = "__layout"

func layoutServer() *cobra.Command {
	return &cobra.Command{Use: layoutCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return vmlayout.Serve(os.Stdin, os.Stdout) }}
}

// shownWords bounds the number of a module's unknown words that are reported; lint reports all.
const shownWords = 8

// warn reports each unknown word of the modules once. Words in the functions of a large module are found when a function is read.
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
				fmt.Fprintf(text.Fold(a.stderr), "%s: %s; reframe lint lists them\n", text.Printable(m.Name), text.Count(len(list)-n, "more unknown word"))
				continue
			}
			fmt.Fprintf(text.Fold(a.stderr), "%s:%d: unknown %s '%s'; %s\n", text.Printable(m.Name), w.Line, w.What, text.Printable(w.Word), w.Meaning())
		}
	}
}

// compiledFrom determines for each frame whether its code was compiled from the given module, and warns if it was not.
func (a *app) compiledFrom(v *deopt.View) {
	for _, t := range v.Threads {
		for _, f := range t.Frames {
			f.CompiledFrom = deopt.ProvenanceOfFrame(f)
		}
	}
	for _, from := range v.CompiledFrom() {
		if from.Sure == string(sites.Contradicted) {
			fmt.Fprintln(text.Fold(a.stderr), "reframe: warning: "+text.PrintableLines(from.Why))
		}
	}
}
