package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
)

func (a *app) framesCommand() *cobra.Command {
	k := inputs{goroutines: &goroutines{}}
	var depth string
	choice, hold, source, vm, registers := deopt.Choice{Frame: -1}, false, false, false, false
	c := &cobra.Command{
		Use:   "frames {PID | CORE} [--ir FILE.ll]",
		Short: "Show the abstract frames of every thread of a process or a core",
		Long: `frames stops the process for a moment, copies the registers and stacks of its threads,
resumes it, and rebuilds the frames from the copy. Nothing is written into the process. With --hold
the process stays stopped until all frames are rebuilt. That takes longer, but any memory can be read,
such as the end of a very deep stack, or a stack in several pieces.

` + positionalHelp + ` ` + coreHelp + `

` + debuggerHelp + `

A frame at a recorded site shows the values of its record. With --ir they have names and types.
With --layout the frame is shown as a frame of the function that resumes. A layout of a virtual machine
(doc/user/layouts.md) adds the machine's frames and objects below the frame that contains them; --vm shows
only these.

With debug information, a frame shows its source line and the functions that were inlined there. The
information comes from the DWARF of programs, libraries and registered objects, or else from the !dbg
metadata of the module of --ir. Files that take more than some milliseconds to read are skipped
unless --source is given.

Of a stack with more than 512 frames only the innermost and the outermost 256 are rebuilt, and a line
counts the others. --depth changes the number, and -f selects any frame. Repeated frames
without a record are folded; JSON has each.

For a Go program with DWARF, each thread names the goroutine that it runs. --goroutines also shows those
that no thread runs, with the C and JIT frames between them and the thread that they are locked to.
Their stacks are copied while the process is stopped, up to 65536 goroutines and 64 MiB. The pause grows
by about 2 ms for 1000 goroutines. The text shows equal stacks once.

Exit status: 0 OK, even if no frame has a record; 1 a recorded value or a frame is unavailable;
2 the process is unreadable, the frame does not exist, or another error.`,
		Example: `  reframe frames 41822
  reframe frames -p 41822 --ir loop.ll
  reframe frames -p 41822 --ir loop.ll --layout loop.layout.json --json
  reframe frames -p $(pidof lli) -t 41823 --function sum_opt
  reframe frames exit.core --ir loop.ll --layout loop.layout.json
  reframe frames --core exit.core --sysroot customer/ --exe build/host
  reframe frames --remote localhost:2345 --ir loop.ll`,
		Args:              onlyTarget,
		ValidArgsFunction: completeTarget,
		RunE: func(c *cobra.Command, _ []string) error {
			if k.still() && hold {
				return usage("--hold requires a process that runs: -p PID")
			}
			if k.goroutines.parked && k.thread != 0 {
				return usage("--goroutines cannot be combined with -t, which selects one thread")
			}
			if registers && !a.json {
				return usage("--registers requires --json; explain shows the registers of one frame")
			}
			k.shows = true
			var err error
			if k.depth, err = depthOf(depth, &choice); err != nil {
				return err
			}
			t, view, err := k.look(a, c, hold)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := k.goroutines.describe(a, t, view); err != nil {
				return err
			}
			t.Release()
			frames, records, numbers := view.Frames(), view.Records(), view.HowMany()
			nearest := view.NearFunction(choice.Function)
			view.Keep(choice)
			costly := view.Sources(sourceBudget(source))
			if registers {
				view.ListRegisters()
			}
			if a.json {
				err = writeJSON(a.stdout, view.Report())
			} else if vm {
				err = printVMStacks(foldTo(a.stdout), a.style(), view, t)
			} else if err = printView(foldTo(a.stdout), a.style(), view, t); err == nil {
				a.hint(c.Flags(), view)
				a.hintSource(costly)
			}
			if err != nil {
				return err
			}
			if frames > 0 && view.Frames() == 0 {
				return &status{exitFailed, noSuchFrame(choice, numbers, nearest)}
			}
			if err := a.outcome(view, frames, records); err != nil || len(k.mistakes) == 0 {
				return err
			}
			return &status{exitPartial, ""}
		},
	}
	k.addFlags(c)
	k.waitFlag(c)
	k.selfFlag(c)
	flags.Choice(c.Flags(), &choice, flags.Usage{"frame": "show only the frame with this `number`" + frameNumbers, "function": "show only frames of the function with this `NAME`, or /RE/"})
	unnumbered(c)
	c.Flags().BoolVar(&hold, "hold", false, "keep the process stopped until all frames are rebuilt")
	c.Flags().StringVar(&depth, "depth", "", "rebuild `N` frames of a deep stack, half of them from each end, or all (default 512)")
	_ = c.RegisterFlagCompletionFunc("depth", cobra.FixedCompletions([]string{"all"}, cobra.ShellCompDirectiveNoFileComp))
	sourceFlag(c, &source)
	c.Flags().BoolVar(&k.goroutines.parked, "goroutines", false, "also show the goroutines of a Go program that no thread runs")
	c.Flags().BoolVar(&vm, "vm", false, "show only the frames of the virtual machine, as a stack trace")
	c.Flags().BoolVar(&a.json, "json", false, "print one JSON object (schema "+frame.Schema+")")
	c.Flags().BoolVar(&registers, "registers", false, "with --json: list the general registers of every frame")
	return c
}

// outcome returns the exit status of a view that was printed, and prints why the view shows no record. frames and records count the frames before
// the user's choice was applied, and those with a record.
func (a *app) outcome(v *deopt.View, frames, records int) error {
	switch {
	case frames == 0:
		return &status{exitFailed, v.WhyNone()}
	case v.Records() == 0 && records > 0:
		a.note(fmt.Sprintf("no selected frame is at a recorded site; %d of all frames are", records))
	case v.Records() == 0:
		a.note(v.WhyNone())
	}
	if v.Partial() {
		return &status{exitPartial, ""}
	}
	return nil
}

// noSuchFrame returns the message for a choice that matches no frame.
func noSuchFrame(c deopt.Choice, numbers, nearest string) string {
	switch {
	case c.Function == nil:
		return fmt.Sprintf("there is no frame %d; %s", c.Number(), numbers)
	case !c.Numbered():
		return fmt.Sprintf("no frame of %s found%s; without --function all frames are shown", c.Function.Text, nearest)
	}
	return fmt.Sprintf("frame %d is not of %s, or does not exist; %s", c.Number(), c.Function.Text, numbers)
}

// note prints a note on standard error: something that is not a failure but that a user may want to know.
func (a *app) note(text string) {
	fmt.Fprintln(foldTo(a.stderr), "reframe: note: "+printableLines(text))
}

// afterwards returns the state of a process after reframe has released it.
func afterwards(stopped bool) string {
	if stopped {
		return "stopped by a signal as before"
	}
	return "running again"
}

// stoodStill reports for how long a process was stopped, and its state now.
func stoodStill(who string, pause time.Duration, stopped bool) string {
	return fmt.Sprintf("%s was stopped for %s and is %s", who, milliseconds(pause), afterwards(stopped))
}

// titleOf returns the first line of the output about a target.
func titleOf(s style, t *ptrace.Target) string {
	switch {
	case t.Provider == ptrace.FromCore:
		return fmt.Sprintf("%s  pid %d  %s   %s", s.Bold("core "+printable(t.Core)), t.PID, printable(t.Command), t.Arch().Title)
	case t.Provider != ptrace.FromProcess:
		title := s.Bold(string(t.Provider) + " " + printable(t.Debugger))
		if t.PID > 0 { // an emulator of a whole machine has no processes
			title += fmt.Sprintf("  pid %d", t.PID)
		}
		if t.Command != "" {
			title += "  " + printable(t.Command)
		}
		return title + "   " + t.Arch().Title
	}
	stood := "stopped" // a script resumes it later
	if t.Pause > 0 {
		stood = fmt.Sprintf("paused %s, %s", milliseconds(t.Pause), afterwards(t.Stopped))
	}
	return fmt.Sprintf("%s  %s   %s   %s", s.Bold(fmt.Sprintf("pid %d", t.PID)), printable(t.Command), t.Arch().Title, stood)
}

// titleOfThread names a thread. Most cores hold only the name of the first thread.
func titleOfThread(t *deopt.Thread) string {
	if t.Parked() {
		return titleOfGoroutine(t.Goroutine)
	}
	title := fmt.Sprintf("thread %d", t.ID)
	if t.Name != "" {
		title += fmt.Sprintf(" %q", printable(t.Name))
	}
	if t.Goroutine != nil {
		title += "   " + titleOfGoroutine(t.Goroutine)
	}
	return title
}

// printView prints a whole view as text.
func printView(w io.Writer, s style, v *deopt.View, t *ptrace.Target) error {
	var out strings.Builder
	fmt.Fprintln(&out, titleOf(s, t))
	for _, note := range v.Notes() {
		fmt.Fprintln(&out, s.Yellow(printable(note)))
	}
	fmt.Fprintln(&out, summary(v.Summary()))
	for _, line := range sureLines(compiledFrom(v)) {
		fmt.Fprintln(&out, line)
	}
	also, shown := sameStacks(v.Threads)
	for i := range v.Threads {
		if shown[i] {
			continue
		}
		thread := &v.Threads[i]
		fmt.Fprintf(&out, "\n%s\n", s.Bold(titleOfThread(thread)))
		if len(also[i]) > 0 {
			fmt.Fprintf(&out, "  %s\n", s.Dim(alsoThere(also[i])))
		}
		guesses := map[string]int{} // the first frame with each kind of guess
		omitted := v.OmittedFrames(thread)
		for at := 0; at < len(thread.Frames); at++ {
			f := thread.Frames[at]
			for len(omitted) > 0 && omitted[0].From < f.Index {
				printOmitted(&out, s, &omitted[0])
				omitted = omitted[1:]
			}
			if period, count := repeated(thread.Frames[at:]); count > 0 {
				for _, f := range thread.Frames[at:][:period] {
					printFrame(&out, s, &f.Frame)
				}
				printRepeated(&out, s, thread.Frames[at:][:period], count-period)
				at += count - 1
				continue
			}
			kind := f.GuessKind()
			first, said := guesses[kind]
			if kind == "" || !said {
				guesses[kind] = f.Index
				printFrame(&out, s, &f.Frame)
				continue
			}
			again := f.Frame
			again.Rule = fmt.Sprintf("%s, a guess like #%d", f.Rule, first)
			again.Notes = slices.DeleteFunc(slices.Clone(f.Notes), func(n string) bool { return n == f.Guess() })
			printFrame(&out, s, &again)
		}
		if !thread.End.Complete {
			fmt.Fprintf(&out, "  %s\n", s.Yellow(printable(thread.End.Reason)))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Nanoseconds())/1e6)
}

func summary(s deopt.Summary) string {
	parts := []string{count(s.Objects, "JIT object")}
	if s.Read < s.Objects {
		parts[0] += fmt.Sprintf(", %d on a stack", s.Read)
	}
	parts = append(parts, count(s.Functions, "function"), count(s.Records, "record"))
	if len(s.Versions) > 0 {
		parts[2] += fmt.Sprintf(" (v%s)", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Versions)), ", v"), "[]"))
	}
	line := strings.Join(parts, " · ")
	switch {
	case s.Scanned && s.Unopened:
		line += " · memory was searched"
	case s.Scanned:
		line += " · nothing registered, memory was searched"
	}
	return line
}

// Widths of the columns of a frame's line.
const (
	functionWidth = 30
	nameWidth     = 8
	variableWidth = 24 // bounds the name column of a frame whose slots are source variables
	typeWidth     = 6
	valueWidth    = 21
)

// printFrame prints one frame and its slots.
func printFrame(w io.Writer, s style, f *frame.Frame) {
	where := place(f)
	kind := fmt.Sprintf("%-6s", f.Kind)
	if f.Kind == frame.JIT {
		kind = s.Green(kind)
	}
	line := fmt.Sprintf("  %-4s %s  %s", fmt.Sprintf("#%d", f.Index), kind, pad(where, s.Bold(where), functionWidth))
	sources := sourceLines(f.Source)
	if len(sources) == 1 && f.Record == nil && f.Resume == nil && len("  #000 native  ")+max(runes(where), functionWidth)+2+runes(sources[0]) <= lineWidth {
		line, sources = line+"  "+sources[0], nil
	}
	if f.Rule != string(unwind.FromRegisters) && f.Rule != string(unwind.FromCFI) {
		line += "  " + s.Dim("by "+f.Rule) // only for unusual unwind rules
	}
	if f.NamedBy != "" {
		line += "  " + s.Dim("named by "+spelled(f.NamedBy))
	}
	if f.Record != nil {
		line += fmt.Sprintf("  record %d, %s", f.Record.ID, site(f.Record))
	}
	if f.Resume != nil {
		line += "   → " + target(f.Resume)
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
	for _, text := range sources {
		fmt.Fprintf(w, "        %s\n", text)
	}
	width := nameWidth
	for i := range f.Slots {
		if f.Slots[i].Variable != "" || f.Slots[i].Operand != "" {
			width = max(width, min(runes(nameOf(&f.Slots[i])), variableWidth))
		}
	}
	for i := range f.Slots {
		if !f.VM.Shows(&f.Slots[i]) {
			printSlot(w, s, &f.Slots[i], width)
		}
	}
	for i := range f.Also {
		also := &f.Also[i]
		fmt.Fprintf(w, "        %s\n", s.Dim(fmt.Sprintf("record %d, %s, at the same address:", also.Record.ID, site(&also.Record))))
		for k := range also.Slots {
			printSlot(w, s, &also.Slots[k], width)
		}
		for _, n := range also.Notes {
			fmt.Fprintf(w, "        %s\n", s.Dim("("+printable(n)+")"))
		}
	}
	printDirect(w, s, f.Direct)
	for _, n := range f.Notes {
		fmt.Fprintf(w, "        %s\n", s.Dim("("+printable(n)+")"))
	}
	if f.VM != nil {
		printVM(w, s, f.VM)
	}
}

// site names the kind of site that a record describes and how far execution has got in it.
func site(r *frame.Record) string {
	if r.Moment == frame.Unknown {
		return "kind of site unknown"
	}
	return fmt.Sprintf("%s, %s", r.Site, strings.ReplaceAll(string(r.Moment), "-", " "))
}

// spelled returns a word of the JSON as people write it: perf-map becomes perf map.
func spelled(word string) string { return strings.ReplaceAll(word, "-", " ") }

// place returns the location of a frame as gdb would show it.
func place(f *frame.Frame) string {
	if f.Offset == nil {
		if f.Module != "" {
			return fmt.Sprintf("%s in %s", f.PC, base(f.Module))
		}
		return string(f.PC)
	}
	name := string(f.PC)
	if f.Function != "" {
		name = printable(names.Short(f.Function))
		return fmt.Sprintf("%s+%#x", name, *f.Offset)
	}
	return fmt.Sprintf("%s (+%#x)", name, *f.Offset)
}

func base(path string) string { return printable(path[strings.LastIndexByte(path, '/')+1:]) }

// target returns in words where a frame resumes.
func target(r *frame.Resume) string {
	out := fmt.Sprintf("%s, block %%%s", printable(r.Function), printable(r.Block))
	switch {
	case r.After != "":
		return out + ", after " + printable(r.After)
	case r.At != "":
		return out + ", at " + printable(r.At)
	}
	return out
}

// nameOf returns the name of a slot: its source variable, if known, its name in the module, and the operand of the site if the layout renames it.
func nameOf(slot *frame.Slot) string {
	name := printable(slot.Name)
	if name == "" {
		name = fmt.Sprintf("#%d", slot.Index) // a constant of the source
	}
	if slot.Operand != "" && slot.Operand != slot.Name { // the site's own name
		name += " ← " + printable(slot.Operand)
	}
	if slot.Variable != "" {
		name = printable(slot.Variable) + " = " + name
	}
	return name
}

// joined returns the location of a value, followed by how the record lists it for the collector.
func joined(where string, gc *frame.GC) string {
	if text := gc.String(); text != "" {
		where += "  " + text
	}
	return where
}

func printSlot(w io.Writer, s style, slot *frame.Slot, width int) {
	name := nameOf(slot)
	plain, value := content(s, slot)
	where := ""
	if slot.Location != nil {
		where = joined(slot.Location.String(), slot.GC)
	}
	line := fmt.Sprintf("        %-*s %-*s %s  %s", width, name, typeWidth, printable(slot.Type.Source), pad(plain, value, valueWidth), s.Dim(where))
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// content returns the value of a slot, or the reason why it has none, plain and painted.
func content(s style, slot *frame.Slot) (plain, painted string) {
	painted = slot.Value
	if painted == "" {
		painted = string(slot.Hex)
	}
	plain = painted
	switch slot.Status {
	case frame.Missing:
		plain = "unavailable: " + printable(slot.Reason)
		painted = s.Yellow(plain)
	case frame.Undefined:
		plain = "undef: " + printable(slot.Reason)
		painted = s.Dim(plain)
	case frame.Guessed: // the frame gives the reason
		plain = "guess: " + printable(painted)
		painted = s.Yellow(plain)
	}
	return plain, painted
}
