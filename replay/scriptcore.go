package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// read reads the modules and layouts for a core.
func (c *call) read(i flags.Inputs) (deopt.Options, error) {
	c.resolve(i)
	c.dumps, c.grows = nil, false
	return readInputs(i.Modules, i.Layouts)
}

// follow reads the modules and layouts for a program that is about to start. While the program runs, it may write more modules into the folders, or
// to files that match the patterns.
func (c *call) follow(i flags.Inputs) (o deopt.Options, err error) {
	c.resolve(i)
	c.dumps = nil
	if o.Modules, _, c.grows, err = ir.ReadGrowing(i.Modules); err != nil {
		return o, err
	}
	if len(i.Modules) > 0 {
		c.dumps = described.NewDumps(i.Modules, o.Modules, time.Time{})
		o.Refuses = c.dumps.Refuses
	}
	return o, ReadLayouts(&o, i.Layouts)
}

// resolve makes file names absolute.
func (c *call) resolve(i flags.Inputs) {
	for _, list := range [][]string{i.Modules, i.Layouts} {
		for k := range list {
			if !vmlayout.IsBuiltin(list[k]) {
				list[k] = c.file(list[k])
			}
		}
	}
}

// untold returns whether modules, layouts or both are read from targets: those that the script does not give.
func (c *call) untold(given flags.Inputs) trace.Undescribed {
	asks := c.scripts.Describe != nil
	return trace.Undescribed{Modules: asks && len(given.Modules) == 0 || c.grows, Layouts: asks && len(given.Layouts) == 0}
}

// describer returns the function that reads modules and layouts from targets, and modules that a program has written meanwhile. It returns nil if
// neither is needed.
func (c *call) describer(given flags.Inputs) described.Ask {
	warn := func(text string) { c.ts.Logf("%s", text) }
	var ask described.Ask
	if modules, layouts := len(given.Modules) == 0, len(given.Layouts) == 0; c.scripts.Describe != nil && (modules || layouts) {
		ask = c.scripts.Describe(layouts, modules, warn)
	}
	set := c.dumps
	if set == nil || len(given.Modules) == 0 {
		return ask
	}
	return func(where string, img *object.Image) (modules []*ir.Module, layouts []*vmlayout.Layout) {
		if ask != nil {
			modules, layouts = ask(where, img)
		}
		dumped, notes := set.Registered(img)
		for _, note := range notes {
			warn(note)
		}
		return append(modules, dumped...), layouts
	}
}

// file returns the absolute path of a file that the script names, and records its use.
func (c *call) file(name string) string {
	path := c.ts.MkAbs(name)
	inside := strings.HasPrefix(path, c.work+string(filepath.Separator)) // files in $WORK belong to the script, so their use is not recorded
	if !inside && path != os.DevNull {
		use(c.ctx, path)
	}
	return path
}

func (c *call) core() error {
	var in flags.Inputs
	o := ptrace.CoreOptions{Files: c.scripts.Files}
	f := c.flags()
	in.Add(f, nil)
	flags.Core(f, &o, nil)
	args, err := c.parse(f, 1, 1)
	if err != nil {
		return err
	}
	for _, path := range []*string{&o.Exe, &o.Sysroot} {
		if *path != "" {
			*path = c.file(*path)
		}
	}
	options, err := c.read(in)
	if err != nil {
		return err
	}
	c.close()
	c.target, err = ptrace.OpenCore(c.file(args[0]), o)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the name is misspelled; the core is not broken
		return err
	case err != nil:
		return unmet{err}
	}
	c.options = options
	if ask := c.describer(in); ask != nil {
		take(c.target, ask, &c.options)
	}
	_, err = c.look()
	return err
}

// look returns the frames of the script's core or program.
func (c *call) look() (*deopt.View, error) {
	if c.view != nil {
		return c.view, nil
	}
	target := c.target
	switch {
	case c.session != nil:
		var err error
		if target, err = c.session.Target(); err != nil {
			return nil, err
		}
	case c.exit != nil && target == nil:
		return nil, errors.New("the program has ended")
	case target == nil:
		return nil, errors.New("no target: use core or launch first")
	}
	v, err := deopt.Frames(target, c.options)
	if err != nil {
		return nil, err
	}
	c.view = v
	return v, nil
}

// only returns a view with one thread, or with all threads if thread is 0.
func only(v *deopt.View, thread int) (*deopt.View, error) {
	if thread == 0 {
		return v, nil
	}
	out := *v
	out.Threads = slices.DeleteFunc(slices.Clone(v.Threads), func(t deopt.Thread) bool { return t.ID != thread })
	if len(out.Threads) == 0 {
		return nil, fmt.Errorf("thread %d not found", thread)
	}
	return &out, nil
}

func (c *call) frames() error {
	var thread int
	var choice deopt.Choice
	var steady, json bool
	f := c.flags()
	flags.Thread(f, &thread, nil)
	flags.Choice(f, &choice, nil)
	f.BoolVar(&steady, "stable", false, "")
	f.BoolVar(&json, "json", false, "")
	if _, err := c.parse(f, 0, 0); err != nil {
		return err
	}
	if steady && json {
		return c.wrong("--stable and --json cannot be combined")
	}
	v, err := c.look()
	if err != nil {
		return err
	}
	if v, err = only(v, thread); err != nil {
		return err
	}
	kept := *v
	kept.Threads = slices.Clone(v.Threads)
	for i := range kept.Threads {
		kept.Threads[i].Frames = slices.Clone(kept.Threads[i].Frames)
	}
	all := v.Records()
	kept.Keep(choice)
	switch p := c.scripts.Printer; {
	case p == nil:
	case steady:
		err = printStable(c, p, &kept)
	case json:
		err = p.JSON(c.out(), kept.Report())
	default:
		err = p.Frames(c.out(), &kept)
	}
	switch {
	case err != nil:
		return err
	case kept.Records() > 0:
		return nil
	case all > 0:
		return unmet{fmt.Errorf("no selected frame is at a recorded site; %d of all frames are", all)}
	}
	return unmet{errors.New(v.WhyNone())}
}

// printStable prints the parts of the frames that are the same in each run.
func printStable(c *call, p Printer, v *deopt.View) error {
	for i, t := range v.Threads {
		shown := slices.DeleteFunc(slices.Clone(t.Frames), func(f *deopt.Frame) bool { return f.Kind != frame.JIT })
		if len(shown) == 0 {
			continue
		}
		if len(v.Threads) > 1 {
			fmt.Fprintf(c.out(), "thread %d %q\n", i+1, t.Name)
		}
		for _, f := range shown {
			if err := p.Frame(c.out(), stable(&f.Frame)); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose implements the frame command.
func (c *call) choose() error {
	thread := 0
	f := c.flags()
	f.IntVarP(&thread, "thread", "t", 0, "")
	args, err := c.parse(f, 1, 1)
	if err != nil {
		return err
	}
	v, err := c.look()
	if err != nil {
		return err
	}
	if v, err = only(v, thread); err != nil {
		return err
	}
	number, notNumber := strconv.Atoi(args[0])
	for i := range v.Threads {
		t := &v.Threads[i]
		for _, f := range t.Frames {
			if notNumber == nil && f.Index == number || f.Function == args[0] {
				c.frame, c.thread = f, t
				return nil
			}
		}
	}
	if notNumber == nil {
		return unmet{fmt.Errorf("there is no frame %d", number)}
	}
	return unmet{fmt.Errorf("no frame of %s found", args[0])}
}

// current returns the chosen frame, and its thread.
func (c *call) current() (*deopt.Thread, *deopt.Frame, error) {
	v, err := c.look()
	if err != nil || c.frame != nil {
		return c.thread, c.frame, err
	}
	stack, err := v.Pick(deopt.Choice{Frame: -1})
	if err != nil {
		if v.Records() == 0 {
			err = errors.New(v.WhyNone())
		}
		return nil, nil, err
	}
	return stack.Thread, stack.Frames[0], nil
}

// titled returns a frame's function and record, for messages.
func titled(f *deopt.Frame) string {
	if f.Record == nil {
		return f.Title()
	}
	return fmt.Sprintf("%s at record %d", f.Title(), f.Record.ID)
}
