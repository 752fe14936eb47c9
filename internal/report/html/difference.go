package html

import (
	"fmt"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/explain"
)

// Difference is a difference that a verification found: the results of the interpreter and of native code, side by side.
type Difference struct {
	Title  string
	Report string // the text that a terminal shows
	Tables []Table
	// Interpreter and Native are the last instructions of both sides, oldest first, and the total numbers of instructions.
	Interpreter, Native verify.VerifiedRun
	More                int // number of tables that are not shown
}

// Table compares two sides.
type Table struct {
	Title, Left, Right string
	Rows               []Compared
	More               int
}

// Compared is one row of a table: a name, and the values of both sides.
type Compared struct {
	What        string
	Left, Right []Mark
	Note        string
	Same        bool
}

// Mark is a part of a text, and whether it is the same on both sides.
type Mark struct {
	Text    string
	Differs bool
}

// maxRows bounds a table of two sides.
const maxRows = 64

// OfDifference makes the page of a difference: the picture of the exit before execution continued, and the results of both sides. It must be called
// while v is valid. report is the text that a terminal shows for the difference.
func OfDifference(v *verify.Verified, report string) (*Page, error) {
	e, view, err := before(v)
	if err != nil {
		return nil, err
	}
	p := Of(view, e, v.Before)
	d := &Difference{Title: titleOf(v), Report: report, Interpreter: v.Interpreter, Native: v.Native}
	d.results("result of the function", "interpreter", "native code", v.Result)
	d.call(v.Call)
	if v.Again != nil {
		d.slots(fmt.Sprintf("values at hit %d of the record", v.Again.Hit), "interpreter", "native code", v.Again.Slots, true)
		d.memory("memory at that hit", v.Again.Memory)
	}
	for n := range v.Memory {
		d.memory("memory", &v.Memory[n])
	}
	if b := v.Baseline; b != nil {
		if b.State != nil {
			d.slots("state at the exit and in the baseline @"+b.Function, "exit", "baseline", b.State.Slots, false)
			d.memory("memory at the exit (native) and in the baseline", b.State.Memory)
		}
		if v.Entry == "" {
			d.results("result of the baseline @"+b.Function+"", "baseline", "native code", b.Result)
		}
	}
	d.shorten(maxReport, maxTail)
	p.Title, p.Difference = d.Title, d
	return p, nil
}

// These limit the bytes of a report on a page, and the instructions of each side.
const (
	maxReport = 64 << 10
	maxTail   = 256
)

// shorten truncates the report and the lists of instructions, whose sizes depend on flags of the user.
func (d *Difference) shorten(report, tail int) {
	if len(d.Report) > report {
		d.Report = strings.ToValidUTF8(d.Report[:report], "") + fmt.Sprintf("…\nand %s more", count(len(d.Report)-report, "byte"))
	}
	d.Interpreter.Tail = d.Interpreter.Tail[max(0, len(d.Interpreter.Tail)-tail):]
	d.Native.Tail = d.Native.Tail[max(0, len(d.Native.Tail)-tail):]
}

// halve removes half of each part, for a page that is too large.
func (d *Difference) halve() {
	half := func(n int) int { return (n + 1) / 2 }
	d.shorten(half(len(d.Report)), half(max(len(d.Interpreter.Tail), len(d.Native.Tail))))
	d.More += len(d.Tables) - half(len(d.Tables))
	d.Tables = d.Tables[:half(len(d.Tables))]
	for n := range d.Tables {
		t := &d.Tables[n]
		t.More += len(t.Rows) - half(len(t.Rows))
		t.Rows = t.Rows[:half(len(t.Rows))]
	}
}

// titleOf returns the title of a difference.
func titleOf(v *verify.Verified) string {
	if v.Entry != "" {
		return fmt.Sprintf("entry %d, of %s", v.Number, names.Short(v.Entry))
	}
	return fmt.Sprintf("exit %d, hit %d of record %d", v.Number, v.Hit, v.Exit.Frame.Record.ID)
}

// before explains the frame of the exit, or of the entry, as it was before the interpreter and native code ran.
func before(v *verify.Verified) (*explain.Explanation, *deopt.View, error) {
	x := v.Exit
	own := x.Frame
	if own == nil || v.Entry != "" {
		own = x.Frames[0]
	}
	view := own.View()
	if v.Before != nil {
		view = view.Reading(v.Before, v.Before)
	} else {
		view = view.Reading(view.Target(), view.Target())
	}
	thread := deopt.Thread{ID: x.Thread.ID, Name: x.Thread.Name, End: x.End}
	for _, f := range x.Frames {
		is := f.Frame
		is.Slots, is.VM, is.Resume, is.Notes = nil, nil, nil, nil
		g := view.Describe(is, *f.Physical(), f.Code(), f.Match())
		if f.Match() != nil {
			if err := g.Fill(); err != nil {
				return nil, nil, err
			}
		}
		thread.Frames = append(thread.Frames, g)
	}
	view.Threads = []deopt.Thread{thread}
	e, err := explain.Explain(view, explain.Question{Frame: own.Index})
	if e != nil {
		e.Target.PauseUS = nil // the process stays stopped until the exit is verified
	}
	return e, view, err
}

// results adds a table of returned scalars.
func (d *Difference) results(title, left, right string, parts []verify.ResultPart) {
	t := Table{Title: title, Left: left, Right: right, More: max(0, len(parts)-maxRows)}
	for _, p := range parts[:min(len(parts), maxRows)] {
		t.row(fmt.Sprintf("result%s, %s in %s", p.Path, p.Type, p.Register), p.Interpreter, p.Native)
	}
	d.add(t)
}

// call adds a table of the first call that differs.
func (d *Difference) call(c *verify.CallDifference) {
	if c == nil {
		return
	}
	t := Table{Title: "a call of native code", Left: "interpreter", Right: "native code"}
	switch c.Only {
	case "":
		t.row(fmt.Sprintf("argument %d of %s%s, %s in %s", c.Argument, c.Callee, c.At, c.Type, c.Register), c.Interpreter, c.Native)
	case "native":
		t.row("call of "+c.Callee, "none", "made")
	default:
		t.row("call of "+c.Callee, "made", "none")
	}
	d.add(t)
}

// slots adds a table of slots that differ.
func (d *Difference) slots(title, left, right string, list []verify.SlotDifference, swap bool) {
	t := Table{Title: title, Left: left, Right: right, More: max(0, len(list)-maxRows)}
	for _, s := range list[:min(len(list), maxRows)] {
		one, other := s.Exit, s.Baseline
		if swap {
			one, other = other, one
		}
		t.row(s.Slot, one, other)
		if s.In != "" {
			t.Rows[len(t.Rows)-1].Note = "which is in " + s.In
		}
	}
	d.add(t)
}

// memory adds a table of a range of memory: a row for each word of eight bytes.
func (d *Difference) memory(title string, m *verify.MemoryDifference) {
	if m == nil {
		return
	}
	near := ""
	if m.Near != "" {
		near = ", " + m.Near
	}
	t := Table{Title: fmt.Sprintf("%s: %s at %s%s", title, count(m.Size, "byte"), m.Address, near), Left: "interpreter", Right: "native code"}
	was, ours, theirs := strings.Fields(m.Before), strings.Fields(m.Interpreter), strings.Fields(m.Native)
	var at uint64
	_, _ = fmt.Sscanf(string(m.Address), "0x%x", &at)
	for n := range min(len(ours), len(theirs), maxRows) {
		t.row(string(frame.HexOf(machine.Addr(at)+machine.Addr(8*n))), ours[n], theirs[n])
		if n < len(was) {
			t.Rows[n].Note = "before: " + was[n]
		}
	}
	if words := int(m.Size+7) / 8; words > len(t.Rows) {
		t.More = words - len(t.Rows)
	}
	d.add(t)
}

func (d *Difference) add(t Table) {
	switch {
	case len(t.Rows) == 0:
	case len(d.Tables) == maxRows:
		d.More++
	default:
		d.Tables = append(d.Tables, t)
	}
}

// row adds a row. In two texts of equal length it marks the bytes that differ; a byte is two characters.
func (t *Table) row(what, left, right string) {
	r := Compared{What: what, Same: left == right}
	r.Left, r.Right = marks(left, right), marks(right, left)
	t.Rows = append(t.Rows, r)
}

func marks(text, other string) (list []Mark) {
	text, other = short(text, maxText), short(other, maxText)
	if len(text) != len(other) || len(text)%2 != 0 {
		return []Mark{{text, text != other}}
	}
	for i := 0; i < len(text); i += 2 {
		differs := text[i:i+2] != other[i:i+2]
		if n := len(list) - 1; n >= 0 && list[n].Differs == differs {
			list[n].Text += text[i : i+2]
			continue
		}
		list = append(list, Mark{text[i : i+2], differs})
	}
	return list
}
