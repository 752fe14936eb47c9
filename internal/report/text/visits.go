package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/roots"
	"example.com/reframe/internal/check/trace"
)

// PrintCollection prints a collection and the findings about its visits.
func PrintCollection(b *bytes.Buffer, s Style, c *roots.Collection) {
	fmt.Fprintf(b, "%s  %d", c.Time, c.TID)
	if c.Thread != "" {
		fmt.Fprintf(b, " %s", Printable(c.Thread))
	}
	fmt.Fprintf(b, "  collection %d: %s, %s in %s", c.Number, Count(c.Visits, "visit"), Count(c.Slots, "slot"), Count(c.Frames, "frame"))
	if c.Unavailable > 0 {
		fmt.Fprintf(b, " · %s", s.Yellow(fmt.Sprintf("%d unavailable", c.Unavailable)))
	}
	if c.Cut {
		fmt.Fprintf(b, " · %s", s.Yellow("the process ended before it was seen to return"))
	}
	b.WriteString("\n")
	last := -1
	for k := range c.Findings {
		f := &c.Findings[k]
		if f.Index != last {
			last = f.Index
			where := Place(f.Is())
			fmt.Fprintf(b, "  %-4s %s", fmt.Sprintf("#%d", f.Index), pad(where, s.Bold(where), functionWidth))
			if f.Record != nil {
				fmt.Fprintf(b, "  record %d, %s", f.Record.ID, Site(f.Record))
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "        %s\n", findingText(s, f))
	}
	if c.More > 0 {
		fmt.Fprintf(b, "  and %s more\n", Count(c.More, "finding"))
	}
	if c.End != "" {
		fmt.Fprintf(b, "  %s\n", s.Yellow(Printable(c.End)+": slots of the other frames are not compared"))
	}
}

// findingText returns the line of a finding.
func findingText(s Style, f *roots.Finding) string {
	switch f.Kind {
	case roots.SkippedFrame:
		if f.Slots == 1 {
			return s.Yellow("skipped frame:") + " its slot was not visited"
		}
		return s.Yellow("skipped frame:") + " none of its " + Count(f.Slots, "slot") + " was visited"
	case roots.ExtraSlot:
		if f.Register != "" {
			return fmt.Sprintf("%s %s, where %s of this frame is saved, is no slot of the map", s.Yellow("extra:"), f.Address, Printable(f.Register))
		}
		return fmt.Sprintf("%s %s is no slot of the map", s.Yellow("extra:"), f.Address)
	case roots.TwiceVisited:
		return fmt.Sprintf("%s %s, visited %d times", s.Yellow("twice:"), slotText(f), f.Visits)
	case roots.WrongBase:
		return fmt.Sprintf("%s %s: its base was read at %s; in the map it is at %s", s.Yellow("wrong base:"), slotText(f), f.Base, f.MapsBase)
	}
	return s.Yellow("missing:") + " " + slotText(f)
}

// slotText returns the name, type, value and place of a finding's slot.
func slotText(f *roots.Finding) string {
	name := nameOf(f.Slot)
	if f.Slot.Type.Source != "" {
		name += " " + Printable(f.Slot.Type.Source)
	}
	value := Printable(f.Slot.Value)
	if value == "" {
		value = string(f.Slot.Hex)
	}
	if f.Slot.Status == frame.Missing {
		value = "unavailable"
	}
	where := f.Slot.Location.String() + " at " + string(f.Address)
	if f.Word > 0 {
		where += fmt.Sprintf(", word %d", f.Word)
	}
	return fmt.Sprintf("%s = %s, %s", name, value, joined(where, f.Slot.GC))
}

// PrintVisited prints the result of a trace of a visitor.
func PrintVisited(w io.Writer, v *trace.Visited, l Limits) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s in %s, in %.3f s; %s\n", Count(int(v.Collections), "collection"), Count(int(v.Visits), "visit"), Count(int(v.Slots), "slot"), Count(int(v.Frames), "frame"), v.Seconds, Ending(v.End, l))
	var found []string
	for _, k := range roots.FindingKinds {
		switch n := v.Findings[k]; {
		case n == 0:
		case k == roots.SkippedFrame:
			found = append(found, Count(int(n), "skipped frame"))
		default:
			found = append(found, fmt.Sprintf("%d %s", n, findingWords[k]))
		}
	}
	switch {
	case len(found) > 0:
		fmt.Fprintf(&b, "findings: %s\n", strings.Join(found, ", "))
	case v.Collections > 0:
		b.WriteString("no findings\n")
	}
	for _, x := range []struct {
		n    uint64
		what string
	}{
		{v.Elsewhere, "visits were of addresses outside of frames with maps, and were not compared"},
		{v.Null, "slots held null and were not visited"},
		{v.NoFrames, "visits were by threads without a frame at a known statepoint, and were not compared (--ir shows the kinds of sites)"},
		{v.NoneVisited, "collections visited no slot of the stack, and were not compared"},
		{v.Incomplete, "collections were not seen as a whole, and were not compared"},
		{v.BeginUnseen, "collections may have begun before the trace or in a gap, and were not compared"},
		{v.Unavailable, "roots, frames or stacks were unavailable"},
	} {
		if x.n > 0 {
			fmt.Fprintf(&b, "%d %s\n", x.n, x.what)
		}
	}
	b.WriteString(strings.ReplaceAll(overwritten(v.Overwritten)+unwatched(v.Unwatched), "exits", "visits"))
	_, err := io.WriteString(w, b.String())
	return err
}

// findingWords holds the words for the kinds of findings at slots.
var findingWords = map[roots.FindingKind]string{
	roots.MissingSlot: "missing", roots.ExtraSlot: "extra", roots.TwiceVisited: "visited twice", roots.WrongBase: "with a wrong base",
}
