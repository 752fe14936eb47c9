package lint

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/vmlayout"
)

// readByVM runs layouts of virtual machines for a site, and reports whether one of them returned frames.
func (l *linter) readByVM(s *ir.Site) bool {
	if len(l.vms) == 0 || len(s.Live) == 0 {
		return false
	}
	site := vmlayout.OfModule(s)
	r := vmlayout.First(l.vms, site)
	l.offered++
	if r.Layout == nil {
		return false
	}
	l.accepted++
	var wrong *vmlayout.Error
	if errors.As(r.Err, &wrong) && wrong.NeedsTarget {
		l.unread(r.Layout)
		return true
	}
	if r.Err != nil {
		key := r.Err.Error()
		if wrong != nil {
			key = wrong.At + ": " + wrong.Err.Error() // without the record
		}
		l.vm(s, nil, key, fmt.Sprintf("%s does not read its operands: %v", r.Layout.Name, r.Err))
		return true
	}
	seen := map[string]int{}
	for _, what := range r.Shape.Misfits(site) {
		l.vm(s, seen, what, fmt.Sprintf("%s: %s", r.Layout.Name, what))
	}
	return true
}

// different matches the parts of a mistake that differ from site to site: numbers, and names of values.
var different = regexp.MustCompile(`\([^)]*\)|%[\w.$"-]+|\d+`)

// vm adds a finding about a layout of a virtual machine. key is the mistake without its record; seen counts the equal mistakes of one site.
func (l *linter) vm(s *ir.Site, seen map[string]int, key, what string) {
	if at, text, placed := strings.Cut(key, ": "); placed && strings.Count(at, ":") == 1 {
		key = at + ": " + different.ReplaceAllString(text, "#")
	} else {
		key = different.ReplaceAllString(key, "#")
	}
	if seen != nil {
		seen[key]++
		key = fmt.Sprint(seen[key], " ", key)
	}
	l.site(s, Finding{Rule: VMLayout, Severity: CannotResume, What: what, Do: "correct the layout, or the operands that the compiler writes", key: key})
}

// group merges equal findings of several sites about a mistake in a layout. It reports the layouts if they return frames for no site at all.
func (l *linter) group() {
	first, kept := map[string]int{}, l.out.Findings[:0]
	for _, f := range l.out.Findings {
		if at, again := first[f.key]; again && f.key != "" {
			kept[at].More++
			continue
		}
		first[f.key] = len(kept)
		kept = append(kept, f)
	}
	l.out.Findings = kept
	if l.accepted > 0 || l.offered == 0 {
		return
	}
	for _, by := range l.vms {
		f := Finding{Rule: VMLayout, Severity: CannotResume, File: by.Name, More: l.offered - 1, What: "frames(site) returned None for each site of the modules",
			Do: "return the frames, or lint the modules that the layout is for"}
		_, _ = fmt.Sscanf(by.Defined(), "%d:", &f.Line) // Line stays 0 for a layout without a position
		l.out.Findings = append(l.out.Findings, f)
	}
}

// unread reports, once for each layout, that the layout makes frames from memory, which only a process has.
func (l *linter) unread(by *vmlayout.Layout) {
	is := Finding{Rule: VMLayout, Severity: LintWarning, File: by.Name, What: "it reads memory to make frames, so lint cannot check the sites that it is for",
		Do: "check a process: reframe maps --check --layout " + by.Name + " PID"}
	if !slices.ContainsFunc(l.out.Findings, func(f Finding) bool { return f.File == is.File && f.What == is.What }) {
		l.out.Findings = append(l.out.Findings, is)
	}
}
