package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/cli/fold"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/ptrace"
)

// inputs holds the flags for the target and for the files that describe its code.
type inputs struct {
	pid     int
	core    string
	files   ptrace.CoreOptions // where the files of a core are
	thread  int
	stack   int
	depth   unwind.Depth // --depth; the zero value is the default
	objects []string
	flags.Inputs

	apart     bool                            // run each layout of the user in a process of its own: the verb runs it for many sites
	follows   bool                            // the verb follows a running process, which may write modules
	dumps     *described.Dumps                // the files of --ir, if follows is set
	grows     bool                            // a folder or a pattern of --ir may match more files later
	described bool                            // describer was called before
	looks     bool                            // the verb looks at one moment, and can take IR from the target
	embedded  bool                            // --ir process was given
	shows     bool                            // the verb shows frames, also if a layout has a mistake
	mistake   func(error)                     // reports a mistake of a layout; nil if a mistake is an error
	mistakes  map[string]bool                 // the mistakes that were reported
	mute      bool                            // --no-self-description
	learned   struct{ modules, layouts bool } // what a running target has described of itself
}

// frameNumbers is the help text about frame numbers.
const frameNumbers = "; -1 is the outermost one"

// selfFlag adds --no-self-description.
func (k *inputs) selfFlag(c *cobra.Command) {
	c.Flags().BoolVar(&k.mute, "no-self-description", false, "do not take IR from the target, nor layouts where --layout is not given")
}

// coreHelp is the help text of every verb that can look at a core.
const coreHelp = `With --core it looks at a core: one of the kernel, of gcore, of reframe record, of
Delve or of QEMU's user mode. What a core leaves out, such as code, is read from the
files that it names, where they are the same by their build ids: below --sysroot DIR
if that is given, and with --exe FILE in place of its program.`

func (k *inputs) addFlags(c *cobra.Command) {
	k.controlFlags(c)
	k.coreFlags(c)
	k.objectFlag(c)
	c.Flags().IntVar(&k.stack, "stack-bytes", 0, "how much of each stack is copied, in `BYTES` (default 524288, of deep stacks up to 9437184)")
}

// objectFlag adds --object, for code that is not registered.
func (k *inputs) objectFlag(c *cobra.Command) {
	c.Flags().StringArrayVar(&k.objects, "object", nil, "the object whose code was copied to this address and not registered, `FILE@ADDR`; also FILE@SECTION=ADDR or @SYMBOL=ADDR, or FILE alone: its code is searched for (repeatable)")
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
	f.StringVar(&k.core, "core", "", "the core `FILE` to look at")
	flags.Core(f, &k.files, flags.Usage{
		"exe":     "with --core: the program that the core is of, `FILE`, in place of the one that it names",
		"sysroot": "with --core: look for the files that it names below `DIR`, and only there",
	})
	f.StringArrayVar(&k.files.DebugDirs, "debug-dir", nil, "look for separate debug files by build id below `DIR` (repeatable; default "+ptrace.DebugDir+")")
}

// frameFlag adds --frame, the number of a frame. Its default is -1, which help does not mention.
func frameFlag(c *cobra.Command, number *int, usage string) {
	flags.Frame(c.Flags(), number, flags.Usage{"frame": usage})
	unnumbered(c)
}

// unnumbered hides the default of --frame from help.
func unnumbered(c *cobra.Command) {
	c.Flags().Lookup("frame").DefValue = "0" // pflag prints no zero default
}

// withoutCore adds a hidden --core, so that a verb can say why it does not accept a core.
func (k *inputs) withoutCore(c *cobra.Command) {
	c.Flags().StringVar(&k.core, "core", "", "")
	_ = c.Flags().MarkHidden("core")
}

// refuseCore rejects --core for such a verb.
func refuseCore(c *cobra.Command) error {
	if c.Flags().Changed("core") {
		return usage("%s watches a process run, and a core is one moment of it: -p PID or -- COMMAND; frames, resume and explain take --core", c.Name())
	}
	return nil
}

// controlFlags adds the flags for a process that is not copied.
func (k *inputs) controlFlags(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&k.pid, "pid", "p", 0, "the process to look at")
	flags.Thread(f, &k.thread, flags.Usage{"thread": "only the thread of this `TID`"})
	k.Inputs.Add(f, inputUsage)
	_ = c.RegisterFlagCompletionFunc("pid", completePID)
	completeInputs(c)
}

// completeInputs completes --ir and --layout with files of their kinds, for a verb that has one of these flags or both.
func completeInputs(c *cobra.Command) {
	for name, extensions := range map[string][]string{"ir": {"ll", "bc"}, "layout": {"json", "star"}} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)) // an error: the verb lacks this flag
	}
}

// inputUsage holds the help texts of --ir and --layout.
var inputUsage = flags.Usage{
	"ir":     "the IR that was compiled: a module (text, bitcode), a folder or a pattern, `FILE.ll` (repeatable)",
	"layout": "how exits map to other functions, `FILE.json`, or which frames of a virtual machine they are, FILE.star or a name, such as simple (repeatable)",
}

// check rejects contradictory flags.
func (k *inputs) check(c *cobra.Command) error {
	given := c.Flags().Changed
	if given("pid") || !given("core") {
		if err := k.checkProcess(c); err != nil {
			return err
		}
	}
	switch {
	case given("core") && given("stack-bytes"):
		return usage("--stack-bytes says how much of a process is copied; a core has what it has")
	case k.thread < 0:
		return usage("-t %d: a thread number is above 0", k.thread)
	case given("stack-bytes") && (k.stack < 4096 || k.stack > 1<<30):
		return usage("--stack-bytes %d: 4096 to %d", k.stack, 1<<30)
	}
	return k.checkFiles(c)
}

func (k *inputs) checkProcess(c *cobra.Command) error {
	given := c.Flags().Changed
	switch {
	case given("pid") && given("core"):
		return usage("-p and --core: one of them")
	case !given("pid"):
		return usage("%s needs a process or a core: -p PID or --core CORE", c.Name())
	case k.pid <= 0:
		return usage("-p %d: a process number is above 0", k.pid)
	}
	return nil
}

// checkFiles rejects contradictory flags of a core.
func (k *inputs) checkFiles(c *cobra.Command) error {
	given := c.Flags().Changed
	for _, f := range []struct{ name, value string }{{"core", k.core}, {"exe", k.files.Exe}, {"sysroot", k.files.Sysroot}} {
		switch {
		case given(f.name) && f.value == "":
			return usage("the name behind --%s is empty", f.name)
		case given(f.name) && !given("core"):
			return usage("--%s is for a core; of a process the files are known", f.name)
		}
	}
	return nil
}

// look captures the process, or opens the core, and builds its frames. The caller closes the target.
func (k *inputs) look(a *app, c *cobra.Command, hold bool) (*ptrace.Target, *deopt.View, error) {
	if err := k.check(c); err != nil {
		return nil, nil, err
	}
	k.looks = true
	if k.shows {
		k.mistake = k.mistaken(func(text string) { fmt.Fprintln(fold.To(a.stderr), "reframe: "+printableLines(text)) })
	}
	o, err := k.options(a)
	o.Mistake, o.Direct = k.mistake, true
	if err != nil {
		return nil, nil, err
	}
	hold = hold || len(o.VMs) > 0 // layouts of virtual machines follow pointers
	t, err := k.target(hold)
	if err == nil && k.embedded {
		err = k.inProcess(a, t, &o)
		if err != nil {
			t.Close()
		}
	}
	if err == nil && k.describes() {
		t, err = k.description(a, t, hold, &o)
	}
	t, view, err := framesOf(t, err, o)
	if err == nil {
		a.compiledFrom(view)
	}
	return t, view, err
}

// maxMistakes bounds the mistakes of layouts that are reported.
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

// target captures the process, or opens the core.
func (k *inputs) target(hold bool) (*ptrace.Target, error) {
	objects, err := k.given()
	switch {
	case err != nil:
		return nil, err
	case k.core != "":
		o := k.files
		o.Given = objects
		return ptrace.OpenCore(k.core, o)
	}
	return ptrace.Capture(k.pid, ptrace.Options{Hold: hold, StackBytes: k.stack, DebugDirs: k.files.DebugDirs, Objects: objects})
}

// capture captures a process and builds its frames. The caller closes the target.
func capture(pid int, p ptrace.Options, o deopt.Options) (*ptrace.Target, *deopt.View, error) {
	t, err := ptrace.Capture(pid, p)
	return framesOf(t, err, o)
}

// framesOf builds the frames of a target. It returns err if that is set.
func framesOf(t *ptrace.Target, err error, o deopt.Options) (*ptrace.Target, *deopt.View, error) {
	if err != nil {
		return nil, nil, err
	}
	view, err := deopt.Frames(t, o)
	if err != nil {
		t.Close()
		return nil, nil, err
	}
	return t, view, nil
}

// completeWithin bounds the time to look at all processes.
const completeWithin = 200 * time.Millisecond

// completePID completes a process id, with the command as description. Processes in which a JIT has left code come first.
func completePID(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, p := range ptrace.Running(completeWithin) {
		command := []rune(printable(p.Command))
		if len(command) > longest {
			command = append(command[:longest-1], '…')
		}
		out = append(out, strconv.Itoa(p.PID)+"\t"+string(command))
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// longest bounds the characters of a command that are shown.
const longest = 60
