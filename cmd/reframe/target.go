package main

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"reframe/deopt"
	"reframe/deopt/ir"
	"reframe/ptrace"
)

// known are the flags that say which target and what is known about its code.
type known struct {
	pid     int
	thread  int
	stack   int
	modules []string
	layouts []string
}

func (k *known) flags(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&k.pid, "pid", "p", 0, "the process to look at")
	f.IntVarP(&k.thread, "thread", "t", 0, "only the thread of this `TID`")
	f.StringArrayVar(&k.modules, "ir", nil, "the IR module that the JIT compiled, `FILE.ll` (repeatable)")
	f.StringArrayVar(&k.layouts, "layout", nil, "how exits map to other functions, `FILE.json` (repeatable)")
	f.IntVar(&k.stack, "stack-bytes", 0, "how much of each stack is copied, in `BYTES` (default 524288)")
	_ = c.RegisterFlagCompletionFunc("pid", completePID)
	_ = c.RegisterFlagCompletionFunc("ir", cobra.FixedCompletions([]string{"ll"}, cobra.ShellCompDirectiveFilterFileExt))
	_ = c.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveFilterFileExt))
}

// check refuses what cannot be meant.
func (k *known) check(c *cobra.Command) error {
	switch {
	case !c.Flags().Changed("pid"):
		return usage("%s needs a process: -p PID", c.Name())
	case k.pid <= 0:
		return usage("-p %d: a process number is above 0", k.pid)
	case k.thread < 0:
		return usage("-t %d: a thread number is above 0", k.thread)
	case c.Flags().Changed("stack-bytes") && (k.stack < 4096 || k.stack > 1<<30):
		return usage("--stack-bytes %d: 4096 to %d", k.stack, 1<<30)
	}
	return nil
}

// checkedWhole is how large a module may be, in bytes, for all of its functions to be read before
// any process is touched. It takes a few milliseconds.
const checkedWhole = 128 << 10

// options reads the files. A file that is broken stops here, before any process is touched; of a
// large module a function's body is read when a frame needs it.
func (k *known) options() (deopt.Options, error) {
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
	for _, path := range k.layouts {
		l, err := deopt.ReadLayout(path)
		if err != nil {
			return o, err
		}
		o.Layouts = append(o.Layouts, l)
	}
	return o, nil
}

// look captures the process and makes its frames. The caller closes the target.
func (k *known) look(c *cobra.Command, hold bool) (*ptrace.Target, *deopt.View, error) {
	if err := k.check(c); err != nil {
		return nil, nil, err
	}
	o, err := k.options()
	if err != nil {
		return nil, nil, err
	}
	return capture(k.pid, ptrace.Options{Hold: hold, StackBytes: k.stack}, o)
}

// capture captures a process and makes its frames. The caller closes the target.
func capture(pid int, p ptrace.Options, o deopt.Options) (*ptrace.Target, *deopt.View, error) {
	t, err := ptrace.Capture(pid, p)
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

// completePID offers the running processes with their names.
func completePID(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		name, err2 := os.ReadFile(filepath.Join(dir, "comm"))
		if err == nil && err2 == nil {
			out = append(out, strconv.Itoa(pid)+"\t"+printable(string(name)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
