package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
)

// PrintResumed prints a finished run of the reference interpreter as text.
func PrintResumed(w io.Writer, s Style, r *frame.Resumed, frames []*deopt.Frame) error {
	var text strings.Builder
	printRan(&text, s, r, frames)
	outer, what := r.Frames[len(r.Frames)-1], "returned nothing"
	switch {
	case r.ExitCode != nil:
		what = fmt.Sprintf("called exit(%d)", *r.ExitCode)
	case r.Result != nil:
		what = valueReturned(s, r.Result)
	}
	discarded := fmt.Sprintf("; %s discarded", Count(r.Writes, "write"))
	if r.Committed != nil {
		discarded = ""
	}
	fmt.Fprintf(&text, "%s %s after %s%s\n", Printable(outer.Resume.Function), what, Count(r.Steps, "instruction"), discarded)
	if r.Committed != nil {
		printCommitted(&text, s, r.Committed)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// printRan prints the frames that an interpreter ran, the given result of the call for which the first one waited, and the output of the program.
func printRan(text *strings.Builder, s Style, r *frame.Resumed, frames []*deopt.Frame) {
	for _, f := range frames {
		PrintFrame(text, s, &f.Frame)
	}
	if r.End != "" {
		fmt.Fprintf(text, "the stack ends here: %s\n", Printable(r.End))
	}
	fmt.Fprintln(text)
	if given := r.Frames[0].Given; given != nil {
		fmt.Fprintf(text, "the call for which frame #%d waits returns %s %s, as --result says\n", r.Frame, Printable(given.Type), Printable(given.Value))
	}
	if e := r.Floats; e != nil && e.Known {
		fmt.Fprintf(text, "floating-point environment of the thread: %s\n", e.Text)
	} else if e != nil {
		fmt.Fprintf(text, "floating-point environment: assumed to be the default one: %s\n", Printable(e.Reason))
	}
	if r.Output != "" {
		fmt.Fprintln(text, "it would have printed:")
		for line := range strings.Lines(r.Output) {
			fmt.Fprintf(text, "  | %s\n", PrintableLines(strings.TrimSuffix(line, "\n")))
		}
	}
}

// valueReturned describes the result of a run that returned a value.
func valueReturned(s Style, r *frame.Result) string {
	return fmt.Sprintf("returned %s %s", Printable(r.Type), s.Bold(Printable(r.Value)))
}

// changeRow is the number of bytes of memory on one line.
const changeRow = 8

// printChange prints changed bytes of memory, in rows if there are many.
func printChange(text *strings.Builder, m frame.CommittedMemory) {
	at, err := strconv.ParseUint(strings.TrimPrefix(string(m.Address), "0x"), 16, 64)
	for n := 0; err == nil && 2*changeRow < len(m.Old[n:]); n += 2 * changeRow {
		end := n + 2*changeRow
		fmt.Fprintf(text, "  %s  %s -> %s\n", frame.HexOf(at+uint64(n/2)), m.Old[n:end], m.New[n:end])
	}
	n := max(0, len(m.Old)-1) / (2 * changeRow) * (2 * changeRow)
	fmt.Fprintf(text, "  %s  %s -> %s\n", frame.HexOf(at+uint64(n/2)), m.Old[n:], m.New[n:])
}

// printCommitted prints the bytes and registers that were written, or that would be written without --dry-run.
func printCommitted(text *strings.Builder, s Style, c *frame.Committed) {
	verb := "written"
	if !c.Written {
		verb = "it would write"
	}
	fmt.Fprintf(text, "%s: %s in %s, %s\n", verb, Count(c.Bytes, "byte"), Count(len(c.Memory), "place"), Count(len(c.Registers), "register"))
	if !c.Written {
		for _, m := range c.Memory {
			printChange(text, m)
		}
		for _, r := range c.Registers {
			if r.Old == r.New {
				fmt.Fprintf(text, "  %-5s %s unchanged\n", r.Name, r.Old)
				continue
			}
			fmt.Fprintf(text, "  %-5s %s -> %s\n", r.Name, r.Old, r.New)
		}
	}
	for _, r := range c.Result {
		fmt.Fprintf(text, "result%s %s %s in %s\n", r.Path, Printable(r.Type), s.Bold(Printable(r.Value)), r.Register)
	}
	left := fmt.Sprintf("frame #%d is", c.Left[0])
	if n := len(c.Left); n > 1 {
		left = fmt.Sprintf("frames #%d to #%d are", c.Left[0], c.Left[n-1])
	}
	to := c.Continues
	where := string(to.PC)
	if to.Function != "" && to.Offset != nil {
		where = fmt.Sprintf("%s+%#x", Printable(to.Function), *to.Offset)
	}
	fmt.Fprintf(text, "%s discarded, and the thread continues at %s, frame #%d\n", left, where, to.Frame)
}

// PrintResumedWith prints a finished run of the VM's own interpreter as text.
func PrintResumedWith(w io.Writer, s Style, r *frame.Resumed, frames []*deopt.Frame) error {
	var text strings.Builder
	printRan(&text, s, r, frames)
	by := "its interpreter"
	if r.With.Interpreter != "" {
		by = Printable(r.With.Interpreter)
	}
	what := "returned nothing"
	switch {
	case r.With.Unsupported != "" || r.With.Malformed != "":
		_, err := io.WriteString(w, text.String())
		return err
	case r.With.Threw != nil:
		what = "ended with an exception: " + Printable(*r.With.Threw)
	case r.Result != nil:
		what = valueReturned(s, r.Result)
	}
	discarded := fmt.Sprintf("; %s and %s discarded", Count(r.Writes, "write"), Count(int(r.With.Allocated), "new byte"))
	if r.Committed != nil {
		discarded = ""
	}
	fmt.Fprintf(&text, "%s %s, says %s after %s%s\n", Printable(r.With.Method), what, by, Count(r.Steps, "instruction"), discarded)
	if r.Committed != nil {
		printCommitted(&text, s, r.Committed)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
