package vmlayout

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"example.com/reframe/deopt/frame"
)

// These bound the texts that a layout adds to values at one exit.
const (
	maxTexts    = 256 // number of values to which the layout may add a text
	maxTextSize = 256 // bytes of one text
)

// subject identifies what a layout describes: a local of a method, a field of a class, or a value.
type subject struct {
	Bits  uint64 // the bits of the method or the class
	Name  string // the name of the method or the class
	Named bool   // the layout identifies it by its name, and not by bits
	At    int64  // number of the local, offset of the field
	Value *Typed // the value that text(value) describes
}

// describe calls local_name(method, index), field_name(class, offset) or text(value). The result is "" for None.
func (l *Layout) describe(what string, from *Source, of subject) (string, error) {
	if l.child != nil {
		r, err := l.child.told(from, &request{Of: what, Subject: &of})
		if err != nil {
			return "", err
		}
		return r.Text[:min(len(r.Text), maxString)], nil
	}
	by := l.optional(what)
	if by == nil {
		return "", fmt.Errorf("the layout has no function for a %s", what)
	}
	var args []starlark.Value
	switch {
	case of.Value != nil:
		args = append(args, typedValue{*of.Value})
	case of.Named:
		args = append(args, starlark.String(of.Name), starlark.MakeInt64(of.At))
	default:
		args = append(args, starlark.MakeUint64(of.Bits), starlark.MakeInt64(of.At))
	}
	is, err := l.call(by, from, args...)
	if err != nil || is == starlark.None {
		return "", err
	}
	text, ok := starlark.AsString(is)
	if !ok {
		return "", l.returned(by, is, "a text or None")
	}
	return text, nil
}

// nameAll names the locals of a method or the fields of a class that the record does not name. It returns the first error. of is nil for a method or
// a class that could not be read.
func (s *Shape) nameAll(from *Source, what string, of *subject, list []frame.VMValue) (notes []string) {
	if of == nil || !s.Layout.has(what) {
		return nil
	}
	for k := range list {
		if v := &list[k]; v.Name == "" && v.Index != nil {
			of.At = *v.Index
			named, err := from.ask(nameKey{s.Layout, what + " " + of.Name, of.Bits, of.At}, func(from *Source) (out answered, err error) {
				out.text, err = s.Layout.describe(what, from, *of)
				return out, err
			})
			if err != nil {
				return []string{fmt.Sprintf("the name of %s %d of %s: %v", what, of.At, of.Name, err)}
			}
			v.Name = named.text
		}
	}
	return nil
}

// shortened cuts a text to maxTextSize bytes, at the end of a character, and marks the cut.
func shortened(text string) string {
	if len(text) <= maxTextSize {
		return text
	}
	const mark = "…"
	end := maxTextSize - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// describeAll adds the texts of the layout to references: strings, numbers of any size, containers.
func (s *Shape) describeAll(from *Source, vm *frame.VM) {
	if !s.Layout.has("text") {
		return
	}
	left := maxTexts
	each := func(v *frame.VMValue) {
		kind, of, _ := strings.Cut(v.Type, " ")
		if kind != "ref" || v.Status != frame.OK && v.Status != frame.Guessed || v.Bytes == nil || left == 0 {
			return
		}
		is := Typed{Type: kind, Text: of, Bits: wordOf(v.Bytes, from.Order)}
		if is.Bits == 0 {
			return
		}
		left--
		from.Names.compute(false)
		text, err := from.ask(nameKey{s.Layout, "text " + of, is.Bits, 0}, func(from *Source) (out answered, err error) {
			out.text, err = s.Layout.describe("text", from, subject{Value: &is})
			return out, err
		})
		if v.Text = shortened(text.text); err != nil {
			v.Text, v.TextCode, v.TextReason = "", frame.LayoutUnread, shortened(err.Error())
		}
	}
	for n := range vm.Frames {
		f := &vm.Frames[n]
		for k := range f.Locals {
			each(&f.Locals[k])
		}
		for k := range f.Stack {
			each(&f.Stack[k])
		}
		for k := range f.Monitors {
			each(&f.Monitors[k].Owner)
		}
		for name, v := range f.Extra {
			each(&v)
			f.Extra[name] = v
		}
	}
	for n := range vm.Objects {
		for k := range vm.Objects[n].Fields {
			each(&vm.Objects[n].Fields[k].VMValue)
		}
	}
}
