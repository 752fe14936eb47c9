package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/text"
)

// exitAborted is the exit status of a program that calls abort, as a shell shows it.
const exitAborted = 128 + int(syscall.SIGABRT)

// program holds the flags of run.
type program struct {
	memory   string
	function string
	until    string
	trace    bool
	profile  bool
	options  interp.Options
}

func (a *app) runCommand() *cobra.Command {
	var p program
	c := &cobra.Command{
		Use:   "run [flags] MODULE.ll [ARG...]",
		Short: "Run a whole module in the reference interpreter",
		Long: `run interprets a module of LLVM IR (text, or bitcode if llvm-dis is installed) from the start of
main, with the functions of the C library that doc/user/interpreter.md lists. The program uses
run's standard input, standard output and standard error, and its exit status is that of run.

No native code runs. The run ends with an error if it depends on an undefined or poison value,
accesses memory that was not allocated or was freed, or calls a function that exists only as
native code.

With --function another function runs: the ARGs are its arguments, and run prints its result.
Flags come before MODULE.ll; the words after it belong to the program.

Exit status: the program's own; 134 if it calls abort; 130 after Ctrl-C; 2 if it cannot be run
to its end, with the reason and the call stack on standard error.`,
		Example: `  reframe run hello.ll
  reframe run bzip2.ll -d < data.bz2 > data
  reframe run --function sum loop.ll 1000
  reframe run --trace --steps 50 hello.ll
  reframe run --until sum:loop loop.ll
  reframe run --profile hello.ll`,
		Args: needs("MODULE.ll"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.runProgram(c.Context(), &p, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return []string{"ll", "bc"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&p.function, "function", "", "run the function with this `NAME`, a symbol or a source name, and print its result")
	f.BoolVar(&p.trace, "trace", false, "print each instruction that runs to standard error")
	f.StringVar(&p.until, "until", "", "stop at the entry of a block, and show the values there (`FUNC:BLOCK`)")
	f.BoolVar(&p.profile, "profile", false, "print at the end how often blocks ran, to standard error")
	f.Uint64Var(&p.options.MaxSteps, "steps", 0, "stop after `N` instructions (default: never)")
	f.StringVar(&p.memory, "memory", "1G", "bound the memory of the program (`SIZE`: 64M, 2G)")
	f.IntVar(&p.options.MaxDepth, "depth", 0, "bound the depth of calls (default 50000)")
	f.BoolVar(&p.options.Strict, "strict", false, "also stop at an access without the alignment that the IR promises")
	return c
}

func (a *app) runProgram(ctx context.Context, p *program, args []string) error {
	memory, err := parseSize(p.memory)
	if err != nil {
		return usage("--memory %v", err)
	}
	if p.options.MaxDepth < 0 {
		return usage("--depth %d: must be above 0", p.options.MaxDepth)
	}
	p.options.MaxMemory = memory
	if p.options.MaxSteps == 0 {
		p.options.MaxSteps = math.MaxInt64
	}
	m, err := ir.ParseFile(args[0])
	if err != nil {
		return err
	}
	a.modules = []*ir.Module{m}
	stop, err := p.block(m)
	if err != nil {
		return err
	}
	p.options.Stdin, p.options.Stdout, p.options.Stderr = os.Stdin, a.stdout, a.stderr
	if p.trace {
		p.options.Trace = (&tracer{to: a.stderr}).line
	}
	in, err := interp.New(m, p.options)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	x, err := p.start(in, m, args)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	// Unlike other verbs, an interpreted program may run long and need much memory.
	collecting(100)
	runtime.GOMAXPROCS(runtime.NumCPU())
	if stop != nil {
		if err := x.StopAt(stop, true); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	result, err := x.Run(ctx)
	if p.profile {
		a.printProfile(in.Profile())
	}
	switch {
	case err != nil:
		return a.ended(ctx, x, m, args[0], err)
	case result == nil:
		return a.printStop(x, stop)
	}
	return a.finished(p, result)
}

// block finds the block of --until: FUNC:BLOCK, or FUNC for its first block.
func (p *program) block(m *ir.Module) (*ir.Block, error) {
	if p.until == "" {
		return nil, nil
	}
	f, label, err := defined(m, "--until", p.until)
	if err != nil {
		return nil, err
	}
	blocks, err := f.Body()
	if err != nil {
		return nil, err
	}
	if label == "" {
		return blocks[0], nil
	}
	label = strings.TrimPrefix(label, "%")
	if b := f.Block(label); b != nil {
		return b, nil
	}
	var names []string
	for _, b := range blocks[:min(len(blocks), 8)] {
		names = append(names, b.Name)
	}
	return nil, usage("--until %s: @%s has no block %%%s; its first are %s", p.until, f.Name, label, strings.Join(names, ", "))
}

// start prepares the execution of main, or of the function of --function, up to its first instruction.
func (p *program) start(in *interp.Interp, m *ir.Module, args []string) (*interp.Execution, error) {
	if p.function == "" {
		return in.StartMain(args)
	}
	f, _, err := defined(m, "--function", p.function)
	if err != nil {
		return nil, err
	}
	given := args[1:]
	if len(given) != len(f.Params) {
		return nil, usage("expected %s for @%s, got %d", text.Count(len(f.Params), "argument"), f.Name, len(given))
	}
	var values []interp.Value
	for k, param := range f.Params {
		v, err := deopt.ParseValue(param.Typ, given[k])
		if err != nil {
			return nil, usage("argument %s of @%s: %v", param.Ref(), f.Name, err)
		}
		values = append(values, v)
	}
	return in.StartCall(f, values)
}

// finished returns the exit status. It prints the result of a function that is not main.
func (a *app) finished(p *program, r *interp.Result) error {
	code := 0
	switch {
	case r.ExitCode != nil:
		code = *r.ExitCode & 0xff
	case p.function != "":
		if !r.Value.IsNone() {
			fmt.Fprintf(a.stdout, "%s %s\n", r.Type, text.Printable(r.Value.Format()))
		}
	case !r.Value.IsNone():
		v, known := r.Value.Uint()
		if !known {
			return fmt.Errorf("@main returns %s, which is not an exit status", r.Value.Format())
		}
		code = int(v & 0xff)
	}
	if code != 0 {
		return &status{code, ""}
	}
	return nil
}

// shownCalls bounds the number of calls in the call stack of a failed run.
const shownCalls = 16

// ended returns the error of a run that could not continue, with the call stack.
func (a *app) ended(ctx context.Context, x *interp.Execution, m *ir.Module, file string, err error) error {
	var out strings.Builder
	var r *interp.RunError
	placed := errors.As(err, &r) && r.Func != ""
	var by interruption
	interrupted := errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &by)
	switch {
	case interrupted && placed:
		fmt.Fprintf(&out, "%s: @%s, block %%%s, line %d: %v", file, text.Printable(r.Func), text.Printable(r.Block), r.Line, by)
	case interrupted:
		fmt.Fprintf(&out, "%s: %v", file, by)
	default:
		fmt.Fprintf(&out, "%s: %s%s", file, text.Printable(err.Error()), raising(r))
	}
	if at := x.At(0); at != nil {
		m = at.Block.Func.Module // code of libstdc++ has no file
	}
	if placed && r.Line > 0 {
		fmt.Fprintf(&out, "\n  %d | %s%s", r.Line, m.LineText(r.Line), sourceOf(x.At(0)))
	}
	var exit *interp.DeoptimizeError
	if errors.As(err, &exit) {
		for k, v := range exit.Live {
			fmt.Fprintf(&out, "\n  deopt %d  %v %s", k, v.Type(), v.Format())
		}
	}
	for k := 1; k < x.Depth(); k++ {
		if k == shownCalls {
			fmt.Fprintf(&out, "\n  and %s more", text.Count(x.Depth()-k, "call"))
			break
		}
		fmt.Fprintf(&out, "\n  %s", calledBy(x.At(k)))
	}
	code := exitFailed
	switch {
	case interrupted:
		code = by.status()
	case r != nil && r.Kind == interp.KindAbort:
		code = exitAborted
	}
	return &status{code, out.String()}
}

// raising names the flag that raises the limit at which the run ended.
func raising(r *interp.RunError) string {
	if r == nil {
		return ""
	}
	switch r.Kind {
	case interp.KindSteps:
		return " (--steps)"
	case interp.KindMemory:
		return " (--memory)"
	case interp.KindDepth:
		return " (--depth)"
	}
	return ""
}

// calledBy returns the position of a call that has not returned.
func calledBy(i *ir.Instr) string {
	return fmt.Sprintf("called by @%s, block %%%s, line %d%s", text.Printable(i.Block.Func.Name), text.Printable(i.Block.Name), i.Line, sourceOf(i))
}

// sourceOf returns the source position of an instruction as the end of a line, or "" if the position is unknown.
func sourceOf(i *ir.Instr) string {
	if i == nil {
		return ""
	}
	s, ok := i.Source()
	if !ok || s.File == "" {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", s.File, s.Line)
}

// printStop prints where a run has stopped, and the values that are live there.
func (a *app) printStop(x *interp.Execution, b *ir.Block) error {
	var out strings.Builder
	fmt.Fprintf(&out, "stopped before block %%%s of @%s, line %d%s, after %s\n",
		text.Printable(b.Name), text.Printable(b.Func.Name), b.Line, sourceOf(x.At(0)), text.Count(x.Steps(), "instruction"))
	live, err := ir.LiveAt(b, x.At(0).Index)
	if err != nil {
		return err
	}
	for _, i := range b.Instrs {
		if i.Op == ir.OpPhi {
			live = append(live, i)
		}
	}
	seen := map[ir.Value]bool{}
	for _, v := range live {
		if value, ok := x.Value(0, v); ok && !seen[v] {
			seen[v] = true
			fmt.Fprintf(&out, "  %s %s = %s\n", text.Printable(v.Type().String()), text.Printable(v.Ref()), text.Printable(value.Format()))
		}
	}
	for k := 1; k < min(x.Depth(), shownCalls); k++ {
		fmt.Fprintf(&out, "  %s\n", calledBy(x.At(k)))
	}
	_, err = a.stderr.WriteString(out.String())
	return err
}

// parseSize parses a size in bytes, KiB, MiB or GiB, such as 64M.
func parseSize(text string) (uint64, error) {
	number, shift := text, 0
	if n := len(text); n > 0 {
		if k := strings.IndexByte("KMG", text[n-1]&^0x20); k >= 0 {
			number, shift = text[:n-1], 10*(k+1)
		}
	}
	v, err := strconv.ParseUint(number, 10, 64)
	if err != nil || v == 0 || v > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%s: expected a size such as 64M or 2G", text)
	}
	return v << shift, nil
}

// defined returns the function that the value of a flag names, in any form of a name, and the block after a single colon, if any. C++ names contain
// double colons.
func defined(m *ir.Module, flag, value string) (f *ir.Func, block string, err error) {
	name := value
	if at := strings.LastIndexByte(value, ':'); flag == "--until" && at >= 0 && (at == 0 || value[at-1] != ':') {
		name, block = value[:at], value[at+1:]
		if name == "" || block == "" {
			return nil, "", usage("%s %s: expected FUNCTION or FUNCTION:BLOCK", flag, value)
		}
	}
	name = strings.TrimPrefix(name, "@")
	if f := m.Func(name); f != nil && !f.Declared() {
		return f, block, nil
	}
	pattern, err := names.Exact(name)
	if err != nil {
		return nil, "", usage("%s %s: %v", flag, value, err)
	}
	nearest := names.NewNearest(name)
	var fit []*ir.Func
	for _, f := range m.Funcs {
		switch {
		case f.Declared():
		case pattern.Match(f.Name):
			fit = append(fit, f)
		default:
			nearest.Add(f.Name)
		}
	}
	switch len(fit) {
	case 0:
		return nil, "", usage("%s %s: the module does not define @%s%s", flag, value, name, nearest)
	case 1:
		return fit[0], block, nil
	}
	var symbols []string
	for _, f := range fit[:min(len(fit), 8)] {
		symbols = append(symbols, "@"+f.Name)
	}
	return nil, "", usage("%s %s: matches %s; the first are %s", flag, value, text.Count(len(fit), "function"), strings.Join(symbols, ", "))
}

// tracer prints each instruction when it runs.
type tracer struct{ to io.Writer }

// attached matches the metadata and the attributes at the end of an instruction.
var attached = regexp.MustCompile(`( #\d+)?(, ![\w.]+ !\d+)*$`)

// shownDepth bounds the call depth up to which lines are indented.
const shownDepth = 20

// line prints the position of an instruction, its text and its result.
func (t *tracer) line(i interp.Traced) {
	line := attached.ReplaceAllString(i.Instr.Block.Func.Module.LineText(i.Instr.Line), "")
	where := fmt.Sprintf("%s:%s", i.Instr.Block.Func.Name, i.Instr.Block.Name)
	indent := strings.Repeat("  ", min(i.Depth, shownDepth))
	value := ""
	if !i.Value.IsNone() {
		value = "  ; " + text.Printable(i.Value.Format())
	}
	fmt.Fprintf(t.to, "%5d %-20s %s%s%s\n", i.Instr.Line, text.Printable(where), indent, text.Printable(line), value)
}

// shownBlocks bounds the number of lines in a profile.
const shownBlocks = 40

// printProfile prints the blocks in which the most instructions were executed.
func (a *app) printProfile(blocks []interp.Profiled) {
	var total uint64
	for _, p := range blocks {
		total += p.Instrs
	}
	slices.SortStableFunc(blocks, func(p, q interp.Profiled) int { return cmp.Compare(q.Instrs, p.Instrs) })
	out := bufio.NewWriter(a.stderr)
	defer out.Flush()
	fmt.Fprintf(out, "%14s %6s %12s  block\n", "instructions", "share", "runs")
	for k, p := range blocks {
		if k == shownBlocks {
			fmt.Fprintf(out, "and %s more\n", text.Count(len(blocks)-k, "block"))
			break
		}
		fmt.Fprintf(out, "%14d %5.1f%% %12d  @%s:%%%s, line %d%s\n", p.Instrs, 100*float64(p.Instrs)/float64(max(total, 1)), p.Runs,
			text.Printable(p.Block.Func.Name), text.Printable(p.Block.Name), p.Block.Line, sourceOf(p.Block.Instrs[len(p.Block.Instrs)-1]))
	}
}
