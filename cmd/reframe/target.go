package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/text"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// inputs holds the flags for the target and for the files that describe its code.
type inputs struct {
	pid      int
	core     string
	remote   string             // the address of a stub
	delve    string             // the address of a server of dlv
	controls bool               // the verb runs the process of --remote
	waits    bool               // the verb has the flag for wait
	wait     time.Duration      // the time limit for all answers of the debugger; 0 for a minute until the target is open
	files    ptrace.CoreOptions // where the files of a core are
	thread   int
	stack    int
	depth    unwind.Depth // --depth; the zero value selects the default
	objects  []string
	flags.Inputs
	goroutines *goroutines // nil for a verb that does not show goroutines

	apart     bool                            // run each layout of the user in a process of its own, because the verb runs it for many sites
	follows   bool                            // the verb follows a running process, which may write modules
	dumps     *described.Dumps                // the files of --ir, if follows is set
	grows     bool                            // a folder or a pattern of --ir may match more files later
	described bool                            // describer has been called
	looks     bool                            // the verb reads one moment of a target, and can take IR from the target
	embedded  bool                            // --ir process was given
	shows     bool                            // the verb shows frames, also if a layout has a mistake
	walks     bool                            // the verb reads the objects of the heap, if a layout describes them; the process must be held meanwhile
	mistake   func(error)                     // reports a mistake of a layout; nil if a mistake is an error
	also      []machine.Range                 // memory that layouts read; a stop copies it
	group     *vmlayout.Group                 // processes that run the target's layouts; nil until one is needed
	told      map[string]bool                 // notes about the target's description that were printed
	mistakes  map[string]bool                 // mistakes that were reported
	paused    time.Duration                   // total time for which earlier attempts stopped the process
	mute      bool                            // --no-self-description
	learned   struct{ modules, layouts bool } // kinds of descriptions that a running target has provided
}

// frameNumbers is the help text about frame numbers.
const frameNumbers = "; -1 is the outermost one"

// selfFlag adds --no-self-description.
func (k *inputs) selfFlag(c *cobra.Command) {
	c.Flags().BoolVar(&k.mute, "no-self-description", false, "ignore IR in the target, and layouts in it if --layout is not given")
}

// coreHelp is the help text of every verb that can read a core.
const coreHelp = `--core opens a core of the kernel, gcore, reframe record, Delve or QEMU user mode. Memory
that the core omits, such as code, is read from the files that it names, if their build ids match: below
--sysroot DIR, if given, and from --exe FILE instead of its program.`

func (k *inputs) addFlags(c *cobra.Command) {
	k.controlFlags(c)
	k.coreFlags(c)
	k.debuggerFlags(c)
	k.objectFlag(c)
	c.Flags().IntVar(&k.stack, "stack-bytes", 0, "copy at most `BYTES` of each stack (default 524288, for deep stacks up to 9437184)")
}

// objectFlag adds --object, for code that is not registered.
func (k *inputs) objectFlag(c *cobra.Command) {
	c.Flags().StringArrayVar(&k.objects, "object", nil, "an object whose code is at this address and not registered, `FILE@ADDR`; also FILE@SECTION=ADDR, FILE@SYMBOL=ADDR, or FILE alone to search for its code (repeatable)")
	_ = c.RegisterFlagCompletionFunc("object", cobra.FixedCompletions([]string{"o"}, cobra.ShellCompDirectiveFilterFileExt))
}

// given parses the values of --object.
func (k *inputs) given() (list []ptrace.Object, err error) {
	for _, text := range k.objects {
		o, err := ptrace.ParseObject(text)
		if err != nil {
			return nil, usage("--object %v", err)
		}
		list = append(list, o)
	}
	return list, nil
}

// coreFlags adds the flags for a core.
func (k *inputs) coreFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&k.core, "core", "", "open the core `FILE`")
	flags.Core(f, &k.files, flags.Usage{
		"exe":     "with --core, --remote or --delve: `FILE` is its program, instead of the one that it names",
		"sysroot": "with --core, --remote or --delve: look only below `DIR` for the files that the core or stub names",
	})
	f.StringArrayVar(&k.files.DebugDirs, "debug-dir", nil, "search separate debug files by build id below `DIR` (repeatable; default "+ptrace.DebugDir+")")
}

// frameFlag adds --frame, the number of a frame. Its default is -1, which the help does not mention.
func frameFlag(c *cobra.Command, number *int, usage string) {
	flags.Frame(c.Flags(), number, flags.Usage{"frame": usage})
	unnumbered(c)
}

// unnumbered hides the default of --frame from help.
func unnumbered(c *cobra.Command) {
	c.Flags().Lookup("frame").DefValue = "0" // pflag does not print a default of zero
}

// withoutCore adds hidden flags for targets that a verb does not support, so that the error can say why.
func (k *inputs) withoutCore(c *cobra.Command, names ...string) {
	values := map[string]*string{"core": &k.core, "remote": &k.remote, "delve": &k.delve}
	for _, name := range names {
		c.Flags().StringVar(values[name], name, "", "")
		_ = c.Flags().MarkHidden(name)
	}
}

// refuseCore rejects the flags that withoutCore has added.
func (k *inputs) refuseCore(c *cobra.Command) error {
	switch {
	case c.Flags().Changed("core"):
		return usage("%s requires a running process, not a core: -p PID or -- COMMAND; frames, resume and explain take --core", c.Name())
	case c.Flags().Changed("remote") && !k.controls:
		return usage("%s controls the process, which --remote does not: -p PID or -- COMMAND; frames, resume and explain take --remote", c.Name())
	case c.Flags().Changed("delve"):
		return usage("%s controls the process, which --delve does not: -p PID or -- COMMAND; frames, resume and explain take --delve", c.Name())
	}
	return nil
}

// controlFlags adds the flags for a process that is traced instead of copied.
func (k *inputs) controlFlags(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&k.pid, "pid", "p", 0, "the process to inspect")
	flags.Thread(f, &k.thread, flags.Usage{"thread": "only the thread of this `TID`"})
	k.Inputs.Add(f, inputUsage)
	_ = c.RegisterFlagCompletionFunc("pid", completePID)
	completeInputs(c)
}

// completeInputs completes the values of --ir and --layout with files of the right types, for a verb that has at least one of these flags.
func completeInputs(c *cobra.Command) {
	for name, extensions := range map[string][]string{"ir": {"ll", "bc"}, "layout": {"json", "star"}} {
		// An error means that the verb lacks the flag.
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt))
	}
}

// inputUsage holds the help texts of --ir and --layout.
var inputUsage = flags.Usage{
	"ir":     "the compiled IR, `FILE.ll`: a module (text or bitcode), a folder or a pattern (repeatable)",
	"layout": "how exits map to other functions, `FILE.json`, or to frames of a virtual machine, FILE.star or a builtin name such as simple (repeatable)",
}

// check rejects contradictory flags.
func (k *inputs) check(c *cobra.Command) error {
	given := c.Flags().Changed
	if err := k.checkTarget(c); err != nil {
		return err
	}
	if err := k.checkWait(c); err != nil {
		return err
	}
	switch {
	case k.elsewhere() && given("stack-bytes"):
		return usage("--stack-bytes requires a process: -p PID")
	case k.thread < 0:
		return usage("-t %d: a thread id must be above 0", k.thread)
	case given("stack-bytes") && (k.stack < 4096 || k.stack > 1<<30):
		return usage("--stack-bytes %d: must be from 4096 to %d", k.stack, 1<<30)
	}
	return k.checkFiles(c)
}

// checkTarget requires exactly one target.
func (k *inputs) checkTarget(c *cobra.Command) error {
	given := kindsGiven(c)
	switch {
	case len(given) > 1:
		return usage("%s and %s cannot be combined", flagName(given[0]), flagName(given[1]))
	case len(given) == 0:
		return usage("%s requires a process or a core: -p PID or --core CORE", c.Name())
	case given[0] == "pid" && k.pid <= 0:
		return usage("-p %d: a process id must be above 0", k.pid)
	}
	return nil
}

// flagName returns the name of a flag as users write it.
func flagName(flag string) string {
	if flag == "pid" {
		return "-p"
	}
	return "--" + flag
}

// checkFiles rejects contradictory flags about the files of a core.
func (k *inputs) checkFiles(c *cobra.Command) error {
	given := c.Flags().Changed
	for _, f := range []struct{ name, value string }{{"core", k.core}, {"remote", k.remote}, {"delve", k.delve}, {"exe", k.files.Exe}, {"sysroot", k.files.Sysroot}} {
		switch {
		case given(f.name) && f.value == "" && f.name == "remote":
			return usage("--remote requires an address: HOST:PORT, unix:PATH or '| COMMAND'")
		case given(f.name) && f.value == "" && f.name == "delve":
			return usage("--delve requires an address: HOST:PORT or unix:PATH")
		case given(f.name) && f.value == "":
			return usage("--%s requires the name of a file", f.name)
		case given(f.name) && !k.elsewhere():
			return usage("--%s requires --core, --remote or --delve: the files of a process are known", f.name)
		}
	}
	return nil
}

// look captures the process, or opens the core, and builds its frames. The caller must close the target.
func (k *inputs) look(a *app, c *cobra.Command, hold bool) (*ptrace.Target, *deopt.View, error) {
	if err := k.check(c); err != nil {
		return nil, nil, err
	}
	k.looks = true
	if k.shows {
		k.mistake = k.mistaken(func(message string) { fmt.Fprintln(text.Fold(a.stderr), "reframe: "+text.PrintableLines(message)) })
	}
	o, err := k.options(a)
	o.Mistake, o.Direct = k.mistake, true
	if err != nil {
		return nil, nil, err
	}
	hold = hold || k.walksBy(o.VMs)
	if !hold && !k.still() && (len(o.VMs) > 0 || k.undescribed().Layouts) {
		if t, view, err := k.lookBriefly(c.Context(), a, o); t != nil || err != nil {
			return t, view, err
		}
		hold = true
	}
	t, err := k.target(c.Context(), hold)
	if err == nil && k.embedded {
		err = k.inProcess(a, t, &o)
		if err != nil {
			t.Close()
		}
	}
	if err == nil && k.describes() {
		t, err = k.description(c.Context(), a, t, hold, &o)
	}
	t, view, err := framesOf(t, err, o)
	if err == nil {
		a.compiledFrom(view)
	}
	return t, view, err
}

// lookBriefly builds the frames of a process whose layouts follow pointers, without a long stop. It copies memory, resumes the process, and then runs
// the layouts. Their reads are known only after they have run. So a first run reads the memory of the running process, and the next short stop also
// copies the memory that it read. Memory may change between two reads of such a run, so its errors, mistakes and prints are discarded with its
// frames. After five stops lookBriefly returns nil if layouts still read uncopied memory: the process must then be held.
func (k *inputs) lookBriefly(ctx context.Context, a *app, given deopt.Options) (*ptrace.Target, *deopt.View, error) {
	defer func() { k.also = nil }()
	defer a.showPrints(given.VMs)
	const attempts = 5
	for range attempts {
		o := given
		o.Modules, o.VMs = slices.Clip(o.Modules), slices.Clip(o.VMs)
		t, err := k.target(ctx, false)
		if err == nil && k.embedded {
			if err = k.inProcess(a, t, &o); err != nil {
				t.Close()
			}
		}
		if err == nil && k.describes() {
			t, err = k.description(ctx, a, t, true, &o)
		}
		if err != nil {
			return nil, nil, err
		}
		var mistakes []error
		if given.Mistake != nil {
			o.Mistake = func(wrong error) { mistakes = append(mistakes, wrong) }
		}
		for _, l := range o.VMs {
			l.HoldPrints()
		}
		plan, pause := t.Plan(), t.Pause
		o.VMMemory = plan
		t, view, err := framesOf(t, nil, o)
		if err == nil && k.walksBy(o.VMs) {
			k.paused = t.Pause
			t.Close()
			return nil, nil, nil
		}
		if plan.Missed() {
			k.also, k.paused = plan.Join(k.also), pause
			for _, l := range o.VMs {
				l.DropPrints()
			}
			if t != nil {
				t.Close()
			}
			continue
		}
		a.showPrints(o.VMs)
		for _, wrong := range mistakes {
			given.Mistake(wrong)
		}
		if err != nil {
			return nil, nil, err
		}
		a.compiledFrom(view)
		return t, view, nil
	}
	return nil, nil, nil
}

// walksBy reports whether the verb reads the objects that one of the layouts describes.
func (k *inputs) walksBy(layouts []*vmlayout.Layout) bool {
	return k.walks && vmlayout.DescribesObjects(layouts) != nil
}

// maxMistakes bounds the number of mistakes in layouts that are reported.
const maxMistakes = 64

// mistaken reports each mistake of a layout once.
func (k *inputs) mistaken(warn func(string)) func(error) {
	k.mistakes = map[string]bool{}
	return func(wrong error) {
		if text := wrong.Error(); !k.mistakes[text] && len(k.mistakes) < maxMistakes {
			k.mistakes[text] = true
			warn(text)
		}
	}
}

// target captures the process, or opens a target that the verb does not run.
func (k *inputs) target(ctx context.Context, hold bool) (*ptrace.Target, error) {
	objects, err := k.given()
	switch {
	case err != nil:
		return nil, err
	case k.still():
		o := k.files
		o.Given = objects
		return k.openStill(ctx, o)
	}
	o := ptrace.Options{Hold: hold, Also: k.also, StackBytes: k.stack, DebugDirs: k.files.DebugDirs, Objects: objects}
	if k.goroutines != nil {
		o.Goroutines = k.goroutines.layout
	}
	t, err := ptrace.Capture(k.pid, o)
	if err == nil {
		t.Pause += k.paused
	}
	return t, err
}

// capture captures a process and builds its frames. The caller must close the target.
func capture(pid int, p ptrace.Options, o deopt.Options) (*ptrace.Target, *deopt.View, error) {
	t, err := ptrace.Capture(pid, p)
	return framesOf(t, err, o)
}

// framesOf builds the frames of a target, unless err is set, which it returns.
func framesOf(t *ptrace.Target, err error, o deopt.Options) (*ptrace.Target, *deopt.View, error) {
	if err != nil {
		return nil, nil, err
	}
	view, err := deopt.Frames(t, o)
	if err == nil {
		err = t.Lost() // the process ended before everything was read
	}
	if err != nil {
		t.Close()
		return nil, nil, err
	}
	return t, view, nil
}

// completeWithin bounds the time for examining all processes.
const completeWithin = 200 * time.Millisecond

// completePID completes a process id, with the process's command as the description. Processes that contain JIT-compiled code come first.
func completePID(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, p := range ptrace.Running(completeWithin) {
		command := []rune(text.Printable(p.Command))
		if len(command) > longest {
			command = append(command[:longest-1], '…')
		}
		out = append(out, strconv.Itoa(p.PID)+"\t"+string(command))
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// longest bounds the number of characters of a command that are shown.
const longest = 60
