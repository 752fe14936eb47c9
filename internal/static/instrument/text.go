package instrument

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// stackMap adds a line with a stackmap before an instruction.
func (w *writer) stackMap(i *ir.Instr, id uint64, operands string) {
	// A shadow of one byte makes LLVM give the stackmaps of two blocks different addresses. Other architectures have longer instructions, so the
	// shadow has four bytes there.
	shadow := 1
	if !sites.X86Triple(w.m.Triple) {
		shadow = 4
	}
	if operands != "" {
		operands = ", " + operands
	}
	w.before(i, fmt.Sprintf("call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 %d%s)", id, shadow, operands))
}

// before adds a line with an instruction before another instruction.
func (w *writer) before(i *ir.Instr, instruction string) {
	text := w.m.Text()
	line := text[strings.LastIndexByte(text[:i.Pos], '\n')+1 : i.Pos]
	if strings.Trim(line, " \t") != "" {
		line = "  "
	}
	w.size += len(instruction)
	w.edits = append(w.edits, edit{i.Pos, instruction + w.end + line})
}

// bundle adds a bundle after the arguments and attributes of a call.
func (w *writer) bundle(i *ir.Instr, text string) {
	// The following text may be on the next line, after comments.
	all, at := w.m.Text(), i.Call.BundlesAt
	end := len(strings.TrimRight(all[:at], " \t\r\n"))
	if line := all[strings.LastIndexByte(all[:end], '\n')+1 : end]; strings.Contains(line, ";") {
		w.edits = append(w.edits, edit{at, text + w.end + "  "})
		return
	}
	w.edits = append(w.edits, edit{end, " " + text})
}

// write applies all edits. Edits at one place keep their order.
func (w *writer) write() {
	slices.SortStableFunc(w.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	text, at := w.m.Text(), 0
	var out strings.Builder
	out.Grow(len(text) + w.size)
	for _, e := range w.edits {
		out.WriteString(text[at:e.at])
		out.WriteString(e.text)
		at = e.at
	}
	out.WriteString(text[at:])
	if w.m.Func("llvm.experimental.stackmap") == nil && slices.ContainsFunc(w.out.Sites, func(s Site) bool { return !s.Bundle }) {
		if !strings.HasSuffix(text, "\n") {
			out.WriteString(w.end)
		}
		out.WriteString(w.end + "declare void @llvm.experimental.stackmap(i64, i32, ...)" + w.end)
	}
	w.out.Text = out.String()
}
