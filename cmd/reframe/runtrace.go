package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"reframe/deopt/interp"
)

// tracer prints the instructions of a run as they happen.
type tracer struct{ to io.Writer }

// attached is the metadata and the attributes at the end of an instruction.
var attached = regexp.MustCompile(`( #\d+)?(, ![\w.]+ !\d+)*$`)

// shownDepth bounds by how many calls a line is moved to the right.
const shownDepth = 20

// line prints where an instruction stands, its text, and the value it has made.
func (t *tracer) line(i interp.Traced) {
	text := attached.ReplaceAllString(i.Instr.Block.Func.Module.LineText(i.Instr.Line), "")
	where := fmt.Sprintf("%s:%s", i.Instr.Block.Func.Name, i.Instr.Block.Name)
	indent := strings.Repeat("  ", min(i.Depth, shownDepth))
	value := ""
	if !i.Value.IsNone() {
		value = "  ; " + printable(i.Value.Format())
	}
	fmt.Fprintf(t.to, "%5d %-20s %s%s%s\n", i.Instr.Line, printable(where), indent, printable(text), value)
}

// shownBlocks bounds the lines of a profile.
const shownBlocks = 40

// printProfile prints the blocks that most instructions were run in.
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
			fmt.Fprintf(out, "and %s more\n", count(len(blocks)-k, "block"))
			break
		}
		fmt.Fprintf(out, "%14d %5.1f%% %12d  @%s:%%%s, line %d%s\n", p.Instrs, 100*float64(p.Instrs)/float64(max(total, 1)), p.Runs,
			printable(p.Block.Func.Name), printable(p.Block.Name), p.Block.Line, sourceOf(p.Block.Instrs[len(p.Block.Instrs)-1]))
	}
}
