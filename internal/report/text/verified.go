package text

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/machine/names"
)

// verifiedPrinter prints the result of an exit.
type verifiedPrinter struct {
	style Style
	line  *bytes.Buffer
}

// PrintVerified prints the result of an exit: one line, or a difference in full with the command that reproduces it, unless that is "".
func PrintVerified(b *bytes.Buffer, s Style, v *verify.Verified, reproduce string) {
	w := &verifiedPrinter{s, b}
	if v.Status == verify.Different {
		w.difference(v, reproduce)
	} else {
		w.outcome(v)
	}
}

// outcome writes one line about an exit.
func (w *verifiedPrinter) outcome(v *verify.Verified) {
	x := v.Exit
	where := ""
	if v.Entry != "" {
		where = "entry of " + Printable(names.Demangled(v.Entry))
	} else if f := x.Frame; f != nil {
		where = Printable(Place(&f.Frame))
		if f.Record != nil {
			where += fmt.Sprintf("  record %d %s", f.Record.ID, f.Record.Site)
		}
	}
	what := w.style.Green(v.Status) + results(v.Result)
	if v.Again != nil {
		what += fmt.Sprintf(" up to hit %d", v.Again.Hit)
	}
	if v.Status == verify.NotComparable {
		what = w.style.Yellow(v.Status) + ": " + Printable(v.Why)
	}
	fmt.Fprintf(w.line, "%d  %s  %s  %s\n", v.Number, thread(v), where, what)
}

func thread(v *verify.Verified) string {
	return strings.TrimRight(fmt.Sprintf("%d %s", v.Exit.Thread.ID, Printable(v.Exit.Thread.Name)), " ") // a thread that has ended has no name
}

// results formats a result on which both sides agree.
func results(parts []verify.ResultPart) string {
	if len(parts) == 0 {
		return ""
	}
	var list []string
	for _, p := range parts {
		list = append(list, p.Type+" "+p.Native)
	}
	return ", returns " + strings.Join(list, ", ")
}

// shownParts bounds the parts of a result that are shown.
const shownParts = 8

// difference writes the full description of a difference.
func (w *verifiedPrinter) difference(v *verify.Verified, reproduce string) {
	b := w.line
	s := w.style
	f := v.Exit.Frame
	if v.Entry != "" {
		fmt.Fprintf(b, "%s\n", s.Bold(fmt.Sprintf("entry %d, of %s, thread %s", v.Number, Printable(names.Demangled(v.Entry)), thread(v))))
	} else {
		fmt.Fprintf(b, "%s\n", s.Bold(fmt.Sprintf("exit %d, hit %d of record %d, thread %s", v.Number, v.Hit, f.Record.ID, thread(v))))
		PrintFrame(b, s, &f.Frame)
	}
	if v.Baseline != nil {
		w.baseline(v)
	}
	if v.VMState != nil {
		w.vmState(v.VMState)
	}
	if why := v.Native.Failed; why != "" {
		fmt.Fprintf(b, "  %s: native code does not return, and the interpreter %s\n", s.Yellow("different"), map[bool]string{true: "does", false: "fails in another way"}[v.Interpreter.Failed == ""])
		rows := [][2]string{{"native code", Printable(why)}}
		if v.Interpreter.Failed != "" {
			rows = append([][2]string{{"interpreter", Printable(v.Interpreter.Failed)}}, rows...)
		}
		w.rows(rows)
	} else if why := v.Interpreter.Failed; why != "" && v.With {
		fmt.Fprintf(b, "  %s: native code continues, and %s\n", s.Yellow("different"), Printable(why))
	} else if why != "" {
		fmt.Fprintf(b, "  %s: native code returns, and the interpreter does not\n        %s\n", s.Yellow("different"), Printable(why))
	}
	shown, more := 0, 0
	for _, p := range v.Result {
		switch {
		case p.Same:
		case shown == shownParts:
			more++
		default:
			shown++
			fmt.Fprintf(b, "  %s result%s, %s in %s\n", s.Yellow("different"), p.Path, p.Type, p.Register)
			w.rows([][2]string{{"interpreter", p.Interpreter}, {"native code", p.Native}})
		}
	}
	if more > 0 {
		fmt.Fprintf(b, "  and %s more of the result\n", Count(more, "part"))
	}
	if v.Call != nil {
		w.call(v.Call)
	}
	if v.Again != nil {
		w.again(v)
	}
	for _, d := range v.Memory[:min(1, len(v.Memory))] {
		w.memory(&d, v.Words)
	}
	if len(v.Outside) > 0 && v.Interpreter.Failed == "" && v.Call == nil && !v.With {
		fmt.Fprintf(b, "  writes by native code alone are ignored: no IR given for %s\n", Printable(strings.Join(v.Outside, ", ")))
	}
	w.tail("interpreter", &v.Interpreter)
	w.tail("native code", &v.Native)
	if v.Core != "" {
		fmt.Fprintf(b, "  core: %s\n", Printable(v.Core))
	}
	if v.Script != "" {
		fmt.Fprintf(b, "  script: %s\n", Printable(v.Script))
	}
	if reproduce != "" {
		fmt.Fprintf(b, "  reproduce: %s\n", reproduce)
	}
	b.WriteByte('\n')
}

// baseline shows the comparison of an exit with a run from the entry.
func (w *verifiedPrinter) baseline(v *verify.Verified) {
	b, s := v.Baseline, w.style
	fn := Printable("@" + b.Function)
	if b.Wrong != "" {
		fmt.Fprintf(w.line, "  %s: %s\n", s.Yellow("wrong"), Printable(b.Wrong))
	}
	if st := b.State; st != nil {
		switch {
		case st.Why != "":
			fmt.Fprintf(w.line, "  the state at the exit is not compared with %s: %s\n", fn, Printable(st.Why))
		case st.Arrival > 0:
			fmt.Fprintf(w.line, "  the state at the exit equals that of %s at its arrival %d of %d here\n", fn, st.Arrival, st.Arrivals)
		case st.Arrivals == 0:
			fmt.Fprintf(w.line, "  %s state at the exit: the baseline %s never reaches this point\n", s.Yellow("different"), fn)
		default:
			fmt.Fprintf(w.line, "  %s state at the exit: the baseline %s reached this point %s\n", s.Yellow("different"), fn, arrivals(st))
			for _, d := range st.Slots {
				where := ""
				if d.In != "" {
					where = ", which is in " + Printable(d.In)
				}
				fmt.Fprintf(w.line, "        %s is %s, and in the baseline %s%s\n", Printable(d.Slot), d.Exit, d.Baseline, where)
			}
			if st.Memory != nil {
				w.memory(st.Memory, st.Words)
			}
		}
	}
	for _, p := range b.Result {
		if v.Entry == "" && !p.Same {
			fmt.Fprintf(w.line, "  %s result%s of %s, %s in %s\n", s.Yellow("different"), p.Path, fn, p.Type, p.Register)
			w.rows([][2]string{{"baseline", p.Interpreter}, {"native code", p.Native}})
		}
	}
	if b.Reason != "" {
		fmt.Fprintf(w.line, "  the result of %s is not comparable: %s\n", fn, Printable(b.Reason))
	}
}

// vmState shows the comparison of an exit with a run of the VM's interpreter from the start of the activation.
func (w *verifiedPrinter) vmState(st *verify.VMState) {
	from := fmt.Sprintf("the run from %s (record %d)", Printable(st.Start), st.Record)
	switch {
	case st.Why != "":
		fmt.Fprintf(w.line, "  the frames are not compared with %s: %s\n", from, Printable(st.Why))
	case len(st.Differences) == 0:
		fmt.Fprintf(w.line, "  the frames equal those of %s after %s\n", from, Count(int(st.Steps), "instruction"))
	case st.At == "":
		fmt.Fprintf(w.line, "  %s from %s:\n", w.style.Yellow("different"), from)
		w.differences(st)
	default:
		others := ""
		if st.Others > 0 {
			others = fmt.Sprintf(", the first of %d that differ least", st.Others+1)
		}
		if st.NotCompared > 0 {
			others += fmt.Sprintf("; the memory of %d others was not compared", st.NotCompared)
		}
		fmt.Fprintf(w.line, "  %s frames: %s had no such state; the nearest is after %s, at %s%s\n", w.style.Yellow("different"), from, Count(int(st.Steps), "instruction"), Printable(st.At), others)
		w.differences(st)
	}
}

func (w *verifiedPrinter) differences(st *verify.VMState) {
	for n := range st.Differences {
		fmt.Fprintf(w.line, "        %s\n", w.style.Bold(Printable(st.Differences[n].String())))
	}
}

// arrivals describes how often the baseline reached the place at which an exit resumes, and the differences of its state at that place.
func arrivals(st *verify.State) string {
	how := "only before the previous exit"
	switch {
	case len(st.Slots) > 0:
		how = "with other values"
	case st.Memory != nil:
		how = "with other memory"
	}
	if st.Arrivals == 1 {
		return "once, " + how
	}
	return fmt.Sprintf("%d times, %s; time %d is the nearest match", st.Arrivals, how, st.Nearest)
}

// again shows the comparison of an exit with the next hit of its record.
func (w *verifiedPrinter) again(v *verify.Verified) {
	fmt.Fprintf(w.line, "  %s at hit %d of the record, which native code reached instead of returning\n", w.style.Yellow("different"), v.Again.Hit)
	for _, d := range v.Again.Slots {
		fmt.Fprintf(w.line, "  %s %s\n", w.style.Yellow("different"), Printable(d.Slot))
		w.rows([][2]string{{"interpreter", d.Baseline}, {"native code", d.Exit}})
	}
	if v.Again.Memory != nil {
		w.memory(v.Again.Memory, v.Again.Words)
	}
}

// call shows the first call of native code in which the two sides differ.
func (w *verifiedPrinter) call(d *verify.CallDifference) {
	line := ""
	if d.Line > 0 {
		line = fmt.Sprintf(", called in line %d", d.Line)
	}
	what := " "
	if d.Only != "" {
		what = ": "
	}
	fmt.Fprintf(w.line, "  %s%s%s%s\n", w.style.Yellow("different"), what, Printable(d.String()), line)
	if d.Only == "" {
		w.rows([][2]string{{"interpreter", d.Interpreter}, {"native code", d.Native}})
	}
}

// memory shows the first difference in memory.
func (w *verifiedPrinter) memory(d *verify.MemoryDifference, words uint64) {
	b := w.line
	near := ""
	if d.Near != "" {
		near = ", " + Printable(d.Near)
	}
	fmt.Fprintf(b, "  %s memory, %s at %s%s\n", w.style.Yellow("different"), Count(int(d.Size), "byte"), d.Address, near)
	for _, row := range [][2]string{{"before", d.Before}, {"interpreter", d.Interpreter}, {"native code", d.Native}} {
		for n, words := range wordsInRows(row[1], dumpedWords) {
			w.rows([][2]string{{row[0][:len(row[0])*max(0, 1-n)], words}})
		}
	}
	if more := words - d.Size/8; words > d.Size/8 {
		fmt.Fprintf(b, "        and %s more\n", Count(int(8*more), "byte"))
	}
}

// dumpedWords is the number of 8-byte words on one line.
const dumpedWords = 3

func (w *verifiedPrinter) rows(list [][2]string) {
	for _, row := range list {
		fmt.Fprintf(w.line, "        %-11s  %s\n", row[0], row[1])
	}
}

// tail shows the last instructions of a run.
func (w *verifiedPrinter) tail(who string, r *verify.VerifiedRun) {
	if len(r.Tail) == 0 {
		return
	}
	fmt.Fprintf(w.line, "  %s, the last of %s:\n", who, Count(int(r.Steps), "instruction"))
	for _, line := range r.Tail {
		fmt.Fprintf(w.line, "        %s\n", w.style.Dim(PrintableLines(line)))
	}
}

// shownReasons bounds the lines of a summary.
const shownReasons = 20

// VerifySummary describes the result of a verification. entries is true if activations were verified from their entries, instead of exits.
func VerifySummary(s *verify.Summary, l Limits, entries bool) string {
	var b bytes.Buffer
	all := s.Same + s.Different + s.NotComparable
	what := Count(int(all-s.Entries), "exit")
	switch {
	case entries && all == 1:
		what = "1 entry"
	case entries:
		what = fmt.Sprintf("%d entries", all)
	case s.Entries > 0:
		what += fmt.Sprintf(" and %d of their functions' entries", s.Entries)
	}
	fmt.Fprintf(&b, "%s verified in %.3f s: %d same, %d different, %d not comparable; ", what, s.Seconds, s.Same, s.Different, s.NotComparable)
	if s.Skipped > 0 {
		fmt.Fprintf(&b, "%d skipped; ", s.Skipped)
	}
	fmt.Fprintf(&b, "%s\n", Ending(s.End, l))
	b.WriteString(groupLines(s.Groups))
	b.WriteString(overwritten(s.Overwritten))
	b.WriteString(unwatched(s.Unwatched))
	b.WriteString(reasonLines(s.Reasons, ""))
	b.WriteString(reasonLines(s.ExitOnly, "compared only after the exit, so a wrong bundle goes unseen: "))
	b.WriteString(reasonLines(s.SkippedPending(), "skipped: "))
	for _, r := range s.NeverVerified[:min(len(s.NeverVerified), shownReasons)] {
		fmt.Fprintf(&b, "  no exit of record %d of %s was verified: all %d were skipped; --record %d verifies them\n", r.ID, Printable(cmp.Or(names.Demangled(r.Function), "a function without a name")), r.Exits, r.ID)
	}
	if more := len(s.NeverVerified) - shownReasons; more > 0 {
		fmt.Fprintf(&b, "  and of %s more\n", Count(more, "record"))
	}
	return b.String()
}

// groupLines lists differences that several exits share.
func groupLines(groups []verify.Group) string {
	var b strings.Builder
	for _, g := range groups {
		if g.Count > 1 {
			fmt.Fprintf(&b, "  %d differ equally, or after that: %s (exit %d)\n", g.Count, Printable(g.Text), g.First)
		}
	}
	return b.String()
}

// reasonLines lists the reasons for which exits were left out. A line is the number of exits, the prefix of, and the reason.
func reasonLines(r trace.Reasons, of string) string {
	var b strings.Builder
	reasons := r.Sorted()
	for _, why := range reasons[:min(len(reasons), shownReasons)] {
		fmt.Fprintf(&b, "  %d  %s%s\n", r[why], of, Printable(why))
	}
	if more := len(reasons) - shownReasons; more > 0 {
		fmt.Fprintf(&b, "  and %s more\n", Count(more, "reason"))
	}
	return b.String()
}
