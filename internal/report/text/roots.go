package text

import (
	"fmt"
	"io"
	"math"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/roots"
	"example.com/reframe/internal/machine/names"
)

// PrintRoots prints a report of roots.
func PrintRoots(w io.Writer, s Style, v *deopt.View, r *roots.Report) error {
	var out strings.Builder
	fmt.Fprintln(&out, titleOf(s, v.Target()))
	for _, note := range v.Notes() {
		fmt.Fprintln(&out, s.Yellow(Printable(note)))
	}
	for k := range r.Threads {
		t := &r.Threads[k]
		if len(t.Frames) == 0 && t.End == "" {
			continue
		}
		fmt.Fprintf(&out, "\n%s\n", s.Bold(titleOfThread(&v.Threads[k])))
		for n := 0; n < len(t.Frames); n++ {
			if hasMap(&t.Frames[n]) {
				printRootsOf(&out, s, &t.Frames[n])
				continue
			}
			first := n
			for n+1 < len(t.Frames) && !hasMap(&t.Frames[n+1]) {
				n++
			}
			printWithoutMap(&out, s, t.Frames[first:n+1])
		}
		if t.End != "" {
			fmt.Fprintf(&out, "  %s\n", s.Yellow(Printable(t.End)+": roots of the other frames are not listed"))
		}
	}
	if r.Failure != nil {
		fmt.Fprintf(&out, "\n%s\n", s.Yellow(objectFailure(r.Failure)))
	}
	fmt.Fprintf(&out, "\n%s\n", rootsSummary(s, &r.Summary))
	_, err := io.WriteString(w, out.String())
	return err
}

// hasMap reports whether the code of a frame has a map. The map may be unreadable.
func hasMap(f *roots.Frame) bool { return f.Record != nil || f.Unknown != "" }

// rootsSummary returns the last line of a report.
func rootsSummary(s Style, sum *roots.Summary) string {
	parts := []string{fmt.Sprintf("%s in %s", Count(sum.Roots, "root"), Count(sum.Frames, "frame"))}
	if sum.Derived > 0 {
		parts = append(parts, fmt.Sprintf("%d derived", sum.Derived))
	}
	if sum.WithoutMaps > 0 {
		parts = append(parts, Count(sum.WithoutMaps, "frame")+" without a map between them")
	}
	if sum.Unavailable > 0 {
		parts = append(parts, s.Yellow(fmt.Sprintf("%d unavailable", sum.Unavailable)))
	}
	if sum.Unchecked > 0 {
		parts = append(parts, fmt.Sprintf("%d not checked", sum.Unchecked))
	}
	if sum.Incomplete > 0 {
		parts = append(parts, s.Yellow("stacks or objects are incomplete"))
	}
	if sum.Unknown > 0 {
		parts = append(parts, s.Yellow(Count(sum.Unknown, "frame")+" at an unknown kind of site (--ir)"))
	}
	if sum.Wrong > 0 {
		parts = append(parts, s.Yellow(fmt.Sprintf("%d wrong", sum.Wrong)))
	}
	return strings.Join(parts, " · ")
}

// printRootsOf prints a frame with a map and its roots.
func printRootsOf(w io.Writer, s Style, f *roots.Frame) {
	where := Place(f.Is())
	line := fmt.Sprintf("  %-4s %s", fmt.Sprintf("#%d", f.Index), pad(where, s.Bold(where), functionWidth))
	if f.Record != nil {
		line += fmt.Sprintf("  record %d, %s", f.Record.ID, Site(f.Record))
	}
	fmt.Fprintln(w, line)
	if f.Guess != "" {
		fmt.Fprintf(w, "        %s\n", s.Yellow("guess: "+Printable(f.Guess)))
	}
	for k := range f.Roots {
		printRoot(w, s, &f.Roots[k])
	}
	switch {
	case f.Unknown != "":
		fmt.Fprintf(w, "        %s\n", s.Yellow("its roots are not known: "+Printable(f.Unknown)))
	case f.Record.Site == deopt.UnknownSite:
		fmt.Fprintf(w, "        %s\n", s.Yellow("if this is a statepoint, it may list roots: --ir"))
	case len(f.Roots) == 0:
		fmt.Fprintf(w, "        %s\n", s.Dim("no roots"))
	}
}

// printRoot prints one root in the format of slots, and the kind of memory to which it points.
func printRoot(w io.Writer, s Style, r *roots.Root) {
	var line strings.Builder
	printSlot(&line, s, &r.Slot, nameWidth)
	text := strings.TrimRight(line.String(), "\n")
	switch {
	case r.BaseOnly:
		text += "  " + s.Dim("only a base")
	case r.Alloca:
		text += "  " + s.Dim("stack object")
	case r.Found.Wrong():
		text += "  " + s.Yellow(foundOf(r))
	case r.Found != "":
		text += "  " + s.Dim(foundOf(r))
	}
	fmt.Fprintln(w, text)
}

// foundText holds the text for each kind of memory to which a root may point.
var foundText = map[roots.Found]string{
	roots.IsObject: "an object", roots.InObject: "into an object", roots.InFreed: "freed", roots.NoObject: "no object", roots.NoReference: "no reference",
	roots.InHeap: "in the heap", roots.InFromSpace: "in from-space: stale", roots.IsNull: "null", roots.Outside: "outside of the heap", roots.Unchecked: "not checked",
}

// foundOf describes the memory to which a root points, with the object there.
func foundOf(r *roots.Root) string {
	text := foundText[r.Found]
	if o := r.Object; o != nil {
		text += ": " + describeObject(o)
	}
	return text
}

// describeObject returns the class, the size and the start of an object.
func describeObject(o *roots.Object) string {
	text := Count(int(min(o.Size, math.MaxInt)), "byte") + " at " + string(o.Start)
	if o.Class != "" {
		text = Printable(o.Class) + ", " + text
	}
	return text
}

// objectFailure returns the line about a failed function object(addr).
func objectFailure(f *roots.Failure) string {
	text := fmt.Sprintf("object(addr) failed: %s", Printable(f.First))
	if f.Count > 1 {
		text += fmt.Sprintf(" (and %d more)", f.Count-1)
	}
	if f.Ended {
		text += "; it is no longer called"
	}
	return text
}

// printWithoutMap prints consecutive frames between frames with a map.
func printWithoutMap(w io.Writer, s Style, list []roots.Frame) {
	const most = 4
	var names []string
	for k := range list[:min(len(list), most)] {
		names = append(names, Place(list[k].Is()))
	}
	text := fmt.Sprintf("#%d", list[0].Index)
	if len(list) > 1 {
		text += fmt.Sprintf(" to #%d", list[len(list)-1].Index)
	}
	text += ", without a map: " + strings.Join(names, ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	fmt.Fprintf(w, "  %s\n", s.Dim(text))
}

// PrintRootCounts prints the number of frames and roots of each function, sorted by the number of roots, most first.
func PrintRootCounts(w io.Writer, s Style, v *deopt.View, r *roots.Report) error {
	var out strings.Builder
	fmt.Fprintln(&out, titleOf(s, v.Target()))
	for _, c := range r.Counts() {
		fmt.Fprintf(&out, "  %7d in %-12s %s\n", c.Roots, Count(c.Frames, "frame"), s.Bold(Printable(names.Short(c.Function))))
	}
	fmt.Fprintf(&out, "\n%s\n", rootsSummary(s, &r.Summary))
	_, err := io.WriteString(w, out.String())
	return err
}

// PrintReached prints the objects that the roots of a report reach, by class, and the references to no object in use.
func PrintReached(w io.Writer, s Style, v *deopt.View, r *roots.Report) error {
	var out strings.Builder
	k := r.Reached
	fmt.Fprintln(&out, titleOf(s, v.Target()))
	for _, c := range k.Classes {
		name := c.Class
		if name == "" {
			name = "objects without a class"
		}
		fmt.Fprintf(&out, "  %10d %12d bytes  %s\n", c.Objects, c.Bytes, s.Bold(Printable(name)))
	}
	for n := range k.First {
		f := &k.First[n]
		fmt.Fprintf(&out, "  %s\n", s.Yellow(fmt.Sprintf("%s + %d: %s: %s", describeObject(&f.From), f.Offset, f.Value, foundText[f.Found])))
	}
	if more := k.Dangling - uint64(len(k.First)); more > 0 {
		fmt.Fprintf(&out, "  %s\n", s.Yellow(fmt.Sprintf("and %d more references to no object in use", more)))
	}
	if r.Failure != nil {
		fmt.Fprintf(&out, "%s\n", s.Yellow(objectFailure(r.Failure)))
	}
	fmt.Fprintf(&out, "\n%s\n%s\n", reachedSummary(s, k), rootsSummary(s, &r.Summary))
	_, err := io.WriteString(w, out.String())
	return err
}

// reachedSummary returns the line about the objects that roots reach.
func reachedSummary(s Style, k *roots.Walk) string {
	parts := []string{fmt.Sprintf("%d objects, %d bytes, %d references, from %s", k.Objects, k.Bytes, k.References, Count(k.Roots, "root"))}
	if k.Skipped > 0 {
		parts = append(parts, Count(k.Skipped, "root")+" not followed")
	}
	if k.Interior > 0 {
		parts = append(parts, fmt.Sprintf("%d references into objects", k.Interior))
	}
	if k.Dangling > 0 {
		parts = append(parts, s.Yellow(fmt.Sprintf("%d references to no object in use", k.Dangling)))
	}
	if k.Unread > 0 {
		parts = append(parts, s.Yellow(fmt.Sprintf("%d objects could not be read", k.Unread)))
	}
	if k.Ended != "" {
		parts = append(parts, s.Yellow("the walk ended early: "+k.Ended))
	}
	return strings.Join(parts, " · ")
}

// PrintPath prints the path from a root to the object that was asked about.
func PrintPath(w io.Writer, s Style, v *deopt.View, r *roots.Report) error {
	var out strings.Builder
	p := r.Path
	fmt.Fprintln(&out, titleOf(s, v.Target()))
	line := fmt.Sprintf("%s: %s", p.Address, foundText[p.Found])
	if p.Object != nil {
		line += ": " + describeObject(p.Object)
	}
	fmt.Fprintln(&out, line)
	switch {
	case p.Root != nil:
		t, f, root := r.At(p)
		fmt.Fprintf(&out, "\nthread %d  #%d %s\n", t.TID, f.Index, s.Bold(Place(f.Is())))
		printRoot(&out, s, root)
		for k := range p.Steps {
			if p.Omitted > 0 && k == len(p.Steps)/2 {
				fmt.Fprintf(&out, "        %s\n", s.Dim(Count(p.Omitted, "more object")))
			}
			fmt.Fprintf(&out, "        %s  at offset %d:\n", describeObject(&p.Steps[k].Object), p.Steps[k].Offset)
		}
		fmt.Fprintf(&out, "        %s\n", s.Bold(describeObject(p.Object)))
	case p.Object != nil && p.Ended != "":
		fmt.Fprintln(&out, s.Yellow("no path was found: the search ended early: "+p.Ended))
	case p.Object != nil:
		fmt.Fprintln(&out, s.Yellow("no root that was followed reaches it"))
	}
	if r.Failure != nil {
		fmt.Fprintf(&out, "\n%s\n", s.Yellow(objectFailure(r.Failure)))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
