package text

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/report/explain"
)

// vmTitle returns the line of a VM frame: its method, its position and how it is resumed.
func vmTitle(s Style, f *frame.VMFrame) string {
	name := Printable(f.Method)
	if name == "" {
		name = "?"
	}
	at := "?"
	if f.Position != nil {
		at = fmt.Sprint(*f.Position)
	}
	line := s.Bold(name+" @ "+at) + ", " + strings.ReplaceAll(f.Resume, "-", " ")
	for _, key := range slices.Sorted(maps.Keys(f.Info)) {
		line += fmt.Sprintf(", %s %s", Printable(key), Printable(f.Info[key]))
	}
	return line
}

// inlinedInto is the text before the callers of a VM frame of compiled code.
const inlinedInto = "inlined into"

// printVM prints the VM frames of a physical frame, innermost first, and the objects that exist only as their fields. callers is the text before all
// frames but the innermost.
func printVM(w io.Writer, s Style, vm *frame.VM, callers string) {
	if vm.Error != "" {
		fmt.Fprintf(w, "        %s\n", s.Yellow("no VM frames: "+Printable(vm.Error)))
		return
	}
	for n := range vm.Frames {
		f := &vm.Frames[n]
		lead := "vm "
		if n > 0 {
			lead = "   " + callers + " "
		}
		fmt.Fprintf(w, "      %s%s\n", lead, vmTitle(s, f))
		if f.Reason != "" {
			fmt.Fprintf(w, "           %s\n", s.Yellow(Printable(f.Reason)))
		}
		for _, note := range f.Notes {
			fmt.Fprintf(w, "           %s\n", s.Dim("("+Printable(note)+")"))
		}
		for k := range f.Locals {
			printVMValue(w, s, placeOf("local", &f.Locals[k]), &f.Locals[k])
		}
		for k := range f.Stack {
			printVMValue(w, s, placeOf("stack", &f.Stack[k]), &f.Stack[k])
		}
		for k := range f.Monitors {
			name := "lock"
			if f.Monitors[k].Eliminated {
				name = "lock, eliminated"
			}
			printVMValue(w, s, name, &f.Monitors[k].Owner)
		}
		for _, name := range slices.Sorted(maps.Keys(f.Extra)) {
			v := f.Extra[name]
			printVMValue(w, s, Printable(name), &v)
		}
	}
	for n := range vm.Objects {
		o := &vm.Objects[n]
		class := Printable(o.Class)
		if o.Reason != "" {
			class += "  " + s.Yellow(Printable(o.Reason))
		}
		fmt.Fprintf(w, "         object %d, not allocated: %s\n", o.ID, class)
		for k := range o.Fields {
			name := fmt.Sprintf("+%d", o.Fields[k].At)
			if o.Fields[k].Element {
				name = fmt.Sprintf("[%d]", o.Fields[k].At)
			}
			if o.Fields[k].Name != "" {
				name += " " + Printable(o.Fields[k].Name)
			}
			printVMValue(w, s, name, &o.Fields[k].VMValue)
		}
	}
}

// placeOf names a local or a stack slot, such as local[2], followed by its own name if it has one.
func placeOf(what string, v *frame.VMValue) string {
	if v.Index != nil {
		what += "[" + strconv.FormatInt(*v.Index, 10) + "]"
	}
	if v.Name != "" {
		what += " " + Printable(v.Name)
	}
	return what
}

// vmText formats a value, plain and with the colours of a terminal.
func vmText(s Style, v *frame.VMValue) (plain, painted string) {
	plain = Printable(cmp.Or(v.Value, string(v.Hex)))
	if v.Text != "" {
		plain += " " + Printable(v.Text)
	}
	if v.TextReason != "" {
		plain += " (no text: " + Printable(v.TextReason) + ")"
	}
	switch {
	case v.Object != nil:
		plain = fmt.Sprintf("object %d", *v.Object)
	case v.Status == frame.Dead:
		return "dead", s.Dim("dead")
	case v.Status == frame.Missing, v.Status == frame.Undefined:
		plain = string(v.Status) + ": " + Printable(v.Reason)
		return plain, s.Yellow(plain)
	case v.Status == frame.Guessed:
		plain = "guess: " + plain
		return plain, s.Yellow(plain)
	}
	return plain, plain
}

func printVMValue(w io.Writer, s Style, name string, v *frame.VMValue) {
	plain, value := vmText(s, v)
	where := ""
	if v.Slot != nil {
		where = joined(fmt.Sprintf("slot %d", *v.Slot), v.GC)
	}
	line := fmt.Sprintf("           %-*s %-*s %s  %s", 2*nameWidth, name, typeWidth, Printable(v.Type), pad(plain, value, valueWidth), s.Dim(where))
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// vm prints, for each value of the VM frames, the value of the record from which it was read, and the conversion of its bits.
func (p *explainer) vm(at *explain.Place) {
	p.title("the frames of the virtual machine in it, by the layout " + Printable(at.VM.Layout))
	if at.VM.Error != "" {
		p.line("  %s", p.Yellow("none: "+Printable(at.VM.Error)))
		return
	}
	for n := range at.VM.Frames {
		p.line("  frame %d: %s", n, vmTitle(p.Style, &at.VM.Frames[n]))
		if why := at.VM.Frames[n].Reason; why != "" {
			p.line("    %s", p.Yellow(Printable(why)))
		}
		for _, note := range at.VM.Frames[n].Notes {
			p.line("    %s", p.Dim("("+Printable(note)+")"))
		}
	}
	for _, o := range at.VM.Objects {
		p.line("  object %d: %s, which was not allocated", o.ID, Printable(o.Class))
	}
	for _, v := range at.VM.All() {
		is := v.Value
		_, text := vmText(p.Style, is)
		if is.Object != nil || is.Status == frame.Dead {
			text += ", by a constant of the record"
		}
		p.line("  %-20s %-6s %s", Printable(v.Name), Printable(is.Type), text)
		if is.Slot == nil {
			continue
		}
		from := fmt.Sprintf("value %d", *is.Slot)
		for k := range at.Values {
			if at.Values[k].Index == *is.Slot && at.Values[k].Name != "" {
				from += " above, " + Printable(at.Values[k].Name)
			}
		}
		switch {
		case is.Hex == "":
			p.line("    %s", from)
		case is.Value != "" && is.Value != string(is.Hex):
			p.line("    %s: %s is %s", from, is.Hex, Printable(is.Value))
		default:
			p.line("    %s: %s", from, is.Hex)
		}
		p.collected(is.GC)
	}
}

// left returns a note for a frame that has called its run time to be deoptimized. The run time may have left the frame, and may now run these VM
// frames in its interpreter.
func left(f *frame.Frame) string {
	if f.Record != nil && f.Record.Site == string(ir.DeoptimizeSite) && f.Record.Moment == frame.InCall {
		return ", being deoptimized"
	}
	return ""
}

// PrintVMStacks prints only the VM frames of each thread, innermost first, as a user of that VM would read the stack.
func PrintVMStacks(w io.Writer, s Style, v *deopt.View) error {
	var out strings.Builder
	fmt.Fprintln(&out, titleOf(s, v.Target()))
	for i := range v.Threads {
		thread := &v.Threads[i]
		fmt.Fprintf(&out, "\n%s\n", s.Bold(titleOfThread(thread)))
		number := 0
		for _, f := range thread.Frames {
			if f.VM == nil || len(f.VM.Frames) == 0 {
				if f.VM != nil {
					fmt.Fprintf(&out, "  %s\n", s.Yellow(fmt.Sprintf("frame #%d: %s", f.Index, Printable(f.VM.Error))))
				}
				continue
			}
			for k := range f.VM.Frames {
				fmt.Fprintf(&out, "  %-4s %s  %s\n", fmt.Sprintf("%d", number), vmTitle(s, &f.VM.Frames[k]), s.Dim(fmt.Sprintf("(frame #%d%s)", f.Index, left(&f.Frame))))
				number++
			}
		}
		if number == 0 {
			fmt.Fprintf(&out, "  %s\n", s.Dim(fmt.Sprintf("(none of %s holds frames of a virtual machine; --layout says how they are read)", Count(len(thread.Frames), "frame"))))
		}
		if !thread.End.Complete {
			fmt.Fprintf(&out, "  %s\n", s.Yellow(Printable(thread.End.Reason)))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
