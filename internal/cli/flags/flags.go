// Package flags defines the flags that verbs and the commands of scripts share: names, defaults, and the errors of their values.
//
// Each of its functions and types adds some flags to a set. Its main types are [Inputs], for modules and layouts, [Exits], which selects exits, and
// [Resume]. Each verb supplies its own help texts, as a [Usage].
//
// # Security
//
// Values come from the user, or from a script that the user runs. The package opens no files.
package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/ptrace"
)

// Usage holds the help texts of flags, by their names. Commands of scripts print their own help and pass none.
type Usage map[string]string

// Inputs are the files that describe the code.
type Inputs struct{ Modules, Layouts []string }

// Add adds --ir and --layout.
func (i *Inputs) Add(f *pflag.FlagSet, u Usage) {
	i.AddModules(f, u)
	i.AddLayouts(f, u)
}

// AddModules adds --ir.
func (i *Inputs) AddModules(f *pflag.FlagSet, u Usage) {
	f.StringArrayVar(&i.Modules, "ir", nil, u["ir"])
}

// AddLayouts adds --layout.
func (i *Inputs) AddLayouts(f *pflag.FlagSet, u Usage) {
	f.StringArrayVar(&i.Layouts, "layout", nil, u["layout"])
}

// Core adds --exe and --sysroot, for the files of a core.
func Core(f *pflag.FlagSet, o *ptrace.CoreOptions, u Usage) {
	f.StringVar(&o.Exe, "exe", "", u["exe"])
	f.StringVar(&o.Sysroot, "sysroot", "", u["sysroot"])
}

// Thread adds --thread.
func Thread(f *pflag.FlagSet, id *int, u Usage) { f.IntVarP(id, "thread", "t", 0, u["thread"]) }

// Choice adds --frame and --function, which select a frame.
func Choice(f *pflag.FlagSet, c *deopt.Choice, u Usage) {
	Frame(f, &c.Frame, u)
	f.Var(names.Into(&c.Function, names.Exact), "function", u["function"])
}

// Exits selects exits.
type Exits struct {
	Filter  trace.ExitFilter // set by the flags of [Exits.Add], except for its records
	Records []string         // the values of --record
	At      []*names.Pattern
}

// Add adds --record, --function, --site and --at.
func (e *Exits) Add(f *pflag.FlagSet, u Usage) {
	f.StringArrayVar(&e.Records, "record", nil, u["record"])
	f.Var(names.Into(&e.Filter.Function, names.Loose), "function", u["function"])
	f.StringArrayVar(&e.Filter.Sites, "site", nil, u["site"])
	f.Var(names.IntoAll(&e.At), "at", u["at"])
}

// Read parses the records with a function that returns its own error for a wrong number, and rejects unknown kinds of sites.
func (e *Exits) Read(record func(text string) (uint64, error)) error {
	for _, text := range e.Records {
		id, err := record(text)
		if err != nil {
			return err
		}
		e.Filter.Records = append(e.Filter.Records, id)
	}
	for _, kind := range e.Filter.Sites {
		if !slices.Contains(trace.SiteKinds, kind) {
			return fmt.Errorf("--site %s: expected one of %s", kind, strings.Join(trace.SiteKinds, ", "))
		}
	}
	return nil
}

// Some adds --every and --limit, which select some of the exits.
func Some(f *pflag.FlagSet, every, limit *uint64, u Usage) {
	f.Uint64Var(every, "every", 1, u["every"])
	f.Uint64Var(limit, "limit", 0, u["limit"])
}

// Verify adds --skip, --steps and --timeout. The defaults of the last two are the values in o.
func Verify(f *pflag.FlagSet, o *verify.Options, u Usage) {
	f.Uint64Var(&o.Skip, "skip", 0, u["skip"])
	f.Uint64Var(&o.Steps, "steps", o.Steps, u["steps"])
	f.DurationVar(&o.Time, "timeout", o.Time, u["timeout"])
}

// Stop adds --stop-at, which [Condition] parses.
func Stop(f *pflag.FlagSet, text *string, u Usage) { f.StringVar(text, "stop-at", "", u["stop-at"]) }

// Hit adds --hit, which selects one of several exits.
func Hit(f *pflag.FlagSet, hit *uint64, u Usage) { f.Uint64Var(hit, "hit", 1, u["hit"]) }

// Condition parses --stop-at, and returns nil if it was not given. A condition that can never hold is an error, unless yet reports that the target
// may describe more modules or layouts later.
func Condition(f *pflag.FlagSet, text string, o *deopt.Options, filter *trace.ExitFilter, yet trace.Undescribed) (*condition.Condition, error) {
	if !f.Changed("stop-at") {
		return nil, nil
	}
	stop, err := condition.Parse(text)
	if err == nil {
		err = trace.CheckStop(o, stop, filter, yet)
	}
	if err != nil {
		return nil, fmt.Errorf("--stop-at: %w", err)
	}
	return stop, nil
}

// Resume holds the flags that control how a frame is resumed.
type Resume struct {
	Choice  deopt.Choice
	Limits  deopt.Limits
	Timeout time.Duration
	Result  string
	With    string // the command of the VM's own interpreter; "" for the reference interpreter

	to    string
	calls []string
}

// Add adds --frame, --function, --to-frame, --result, --call, --with, --force, --steps and --timeout.
func (r *Resume) Add(f *pflag.FlagSet, u Usage) {
	Choice(f, &r.Choice, u)
	f.StringVar(&r.to, "to-frame", "", u["to-frame"])
	f.StringVar(&r.Result, "result", "", u["result"])
	f.StringArrayVar(&r.calls, "call", nil, u["call"])
	f.StringVar(&r.With, "with", "", u["with"])
	f.BoolVar(&r.Choice.Force, "force", false, u["force"])
	f.Uint64Var(&r.Limits.Steps, "steps", 0, u["steps"])
	f.DurationVar(&r.Timeout, "timeout", 10*time.Second, u["timeout"])
}

// Read parses --to-frame and --call, and rejects an empty result.
func (r *Resume) Read(f *pflag.FlagSet) error {
	switch r.to {
	case "":
	case "all":
		r.Choice.To = deopt.AllCallers
	default:
		n, err := strconv.Atoi(r.to)
		if err != nil || n < 1 {
			return fmt.Errorf("--to-frame %s: expected the number of a caller's frame, or all", r.to)
		}
		r.Choice.To = n
	}
	for _, text := range r.calls {
		name, value, ok := strings.Cut(text, "=")
		if name = strings.TrimPrefix(name, "@"); !ok || name == "" {
			return fmt.Errorf("--call %s: expected NAME=VALUE, or NAME= for a void function", text)
		}
		if _, twice := r.Limits.Calls[name]; twice {
			return fmt.Errorf("--call %s: @%s is given twice", text, name)
		}
		if r.Limits.Calls == nil {
			r.Limits.Calls = map[string]string{}
		}
		r.Limits.Calls[name] = value
	}
	switch {
	case f.Changed("result") && r.Result == "":
		return errors.New("the value of --result is empty")
	case f.Changed("with") && strings.TrimSpace(r.With) == "":
		return errors.New("the command of --with is empty")
	case r.With != "" && len(r.calls) > 0:
		return errors.New("--with and --call cannot be combined: the VM's own interpreter makes its own calls")
	}
	return nil
}

// Record adds --memory and --compress, for a recorded core.
func Record(f *pflag.FlagSet, o *ptrace.RecordOptions, u Usage) {
	f.StringVar((*string)(&o.Memory), "memory", string(ptrace.Minimal), u["memory"])
	f.BoolVar(&o.Compress, "compress", false, u["compress"])
}

// CheckMemory rejects an unknown value of --memory.
func CheckMemory(m ptrace.CoreMemory) error {
	if !slices.Contains([]ptrace.CoreMemory{ptrace.Minimal, ptrace.Writable, ptrace.All}, m) {
		return fmt.Errorf("--memory %s: expected minimal, writable or all", m)
	}
	return nil
}
