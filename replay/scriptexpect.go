package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
)

// expect implements the expect command.
func (c *call) expect() error {
	if len(c.args) < 2 {
		return c.wrong("")
	}
	_, f, err := c.current()
	if err != nil {
		return err
	}
	switch what := c.args[0]; what {
	case "record", "site", "moment", "function", "resume":
		return c.expectFrame(f, what, c.args[1:])
	case "method", "position", "info":
		return c.expectVM(f, what, c.args[1:])
	}
	s, err := slotOf(f, c.args[0])
	if err != nil {
		return err
	}
	return c.expectSlot(f, s, c.args[1], c.args[2:])
}

// otherwise returns the error for an expectation that is not met.
func otherwise(format string, args ...any) error { return unmet{fmt.Errorf(format, args...)} }

// expectFrame compares a property of the frame.
func (c *call) expectFrame(f *deopt.Frame, what string, want []string) error {
	if len(want) > 1 && what != "resume" || len(want) > 2 {
		return c.wrong("")
	}
	if what == "function" {
		if f.Function != want[0] {
			return otherwise("%s is not in %s", f.Title(), want[0])
		}
		return nil
	}
	if f.Record == nil {
		return otherwise("%s has no record", f.Title())
	}
	switch what {
	case "record":
		id, err := strconv.ParseUint(want[0], 0, 64)
		if err != nil {
			return c.wrong("%s: expected the number of a record", want[0])
		}
		if id != f.Record.ID {
			return otherwise("record %d, not %d, in %s", f.Record.ID, id, f.Title())
		}
	case "site":
		return c.expectWord(f, "site", f.Record.Site, want[0])
	case "moment":
		return c.expectWord(f, "moment", string(f.Record.Moment), want[0])
	case "resume":
		if f.Resume == nil {
			return otherwise("the place where %s resumes is unknown%s", titled(f), frame.Noted(f.Notes))
		}
		got := []string{f.Resume.Function, f.Resume.Block}
		want[0] = strings.TrimPrefix(want[0], "@")
		if len(want) > 1 {
			want[1] = strings.TrimPrefix(want[1], "%")
		}
		if got := strings.Join(got[:len(want)], " "); got != strings.Join(want, " ") {
			return otherwise("it resumes in %s, not %s, in %s", got, strings.Join(want, " "), titled(f))
		}
	}
	return nil
}

func (c *call) expectWord(f *deopt.Frame, what, got, want string) error {
	if got != want {
		return otherwise("%s %s, not %s, in %s", what, got, want, titled(f))
	}
	return nil
}

// slotOf finds a slot by its name or, without a name, by its number: "#0".
func slotOf(f *deopt.Frame, name string) (*frame.Slot, error) {
	if f.Record == nil {
		return nil, fmt.Errorf("%s has no record%s", f.Title(), frame.Noted(f.Notes))
	}
	all := slices.Concat(f.Values(), f.VM.LockSlots())
	var names []string
	for i := range all {
		s := &all[i]
		if spelled(s) == name {
			return s, nil
		}
		names = append(names, spelled(s))
	}
	return nil, fmt.Errorf("slot %s not found in %s; the slots are %s", name, titled(f), strings.Join(names, " "))
}

// spelled returns the name of a slot as frames prints it.
func spelled(s *frame.Slot) string {
	if s.Name == "" {
		return fmt.Sprintf("#%d", s.Index)
	}
	return s.Name
}

// expectSlot compares one slot.
func (c *call) expectSlot(f *deopt.Frame, s *frame.Slot, verb string, want []string) error {
	least, most := 1, 1
	switch verb {
	case "=", "hex", "type", "at":
	case "unavailable":
		least = 0
	case "undef", "guess", "dead":
		least, most = 0, 0
	case "object":
	default:
		return c.wrong("")
	}
	if len(want) < least || len(want) > most {
		return c.wrong("")
	}
	switch verb {
	case "unavailable":
		return expectUnavailable(f, s, want)
	case "object", "dead":
		if is := vmOnly(f, s); is != strings.Join(append([]string{verb}, want...), " ") {
			return otherwise("%s is %s, not %s, in %s", spelled(s), cmp.Or(is, shown(s)), strings.Join(append([]string{verb}, want...), " "), titled(f))
		}
		return nil
	case "undef":
		if s.Status != frame.Undefined {
			return otherwise("%s is %s, not undef, in %s", spelled(s), shown(s), titled(f))
		}
		return nil
	case "guess":
		if s.Status != frame.Guessed {
			return otherwise("%s is %s, not a guess, in %s", spelled(s), shown(s), titled(f))
		}
		return nil
	case "type":
		if s.Type.Source != want[0] {
			return otherwise("%s is of type %s, not %s, in %s", spelled(s), s.Type.Source, want[0], titled(f))
		}
		return nil
	case "at":
		return expectAt(f, s, want[0])
	}
	if s.Status != frame.OK { // it is unknown whether the slot has the expected value
		return fmt.Errorf("%s is %s, and cannot be compared with %s, in %s", spelled(s), shown(s), want[0], titled(f))
	}
	same := false
	var err error
	if verb == "hex" {
		same, err = sameBits(s, want[0])
	} else {
		same, err = sameValue(f, s, want[0])
	}
	if err != nil {
		return ofSlot(f, s, err)
	}
	if !same {
		return otherwise("%s is %s, not %s, in %s", spelled(s), shown(s), want[0], titled(f))
	}
	return nil
}

// vmOnly returns the text of a value that only a frame of a virtual machine can have, such as object 4 or dead.
func vmOnly(f *deopt.Frame, s *frame.Slot) string {
	for _, v := range slices.Concat(f.VM.All(), f.VM.Locks()) {
		switch {
		case v.Name != s.Name:
		case v.Value.Object != nil:
			return fmt.Sprintf("object %d", *v.Value.Object)
		case v.Value.Status == frame.Dead:
			return "dead"
		}
	}
	return ""
}

// expectVM compares the innermost frame of the virtual machine.
func (c *call) expectVM(f *deopt.Frame, what string, want []string) error {
	if len(want) != 1 && what != "info" || len(want) != 2 && what == "info" {
		return c.wrong("")
	}
	if f.VM == nil || len(f.VM.Frames) == 0 {
		why := "no layout of a virtual machine reads it"
		if f.VM != nil {
			why = f.VM.Error
		}
		return fmt.Errorf("%s has no frames of a virtual machine: %s", f.Title(), why)
	}
	is := &f.VM.Frames[0]
	if is.Reason != "" {
		return fmt.Errorf("%s of %s: %s", what, titled(f), is.Reason)
	}
	got := is.Method
	if what == "info" {
		return c.expectWord(f, "info "+want[0], is.Info[want[0]], want[1])
	}
	if what == "position" {
		got = "none"
		if is.Position != nil {
			got = fmt.Sprint(*is.Position)
		}
	}
	return c.expectWord(f, what, got, want[0])
}

// ofSlot adds the name of a slot to an error.
func ofSlot(f *deopt.Frame, s *frame.Slot, err error) error {
	return fmt.Errorf("%s of %s: %w", spelled(s), titled(f), err)
}

// shown returns the value of a slot as text for a message.
func shown(s *frame.Slot) string {
	switch {
	case s.Status == frame.Undefined:
		return "undef"
	case s.Status == frame.Guessed:
		return fmt.Sprintf("a guess (%s)", s.Reason)
	case s.Status != frame.OK:
		return fmt.Sprintf("unavailable (%s)", s.Reason)
	case s.Value == "" || s.Value == string(s.Hex):
		return string(s.Hex)
	}
	return fmt.Sprintf("%s (%s)", s.Value, s.Hex)
}

// sameValue reports whether a text denotes the slot's value: it has the same spelling, or gives the same value when it is parsed with the slot's
// type.
func sameValue(f *deopt.Frame, s *frame.Slot, text string) (bool, error) {
	if text == s.Value && s.Value != "" {
		return true, nil
	}
	raw, err := f.ParseSlot(s, text)
	if err != nil {
		return false, err
	}
	return bytes.Equal(raw, f.Masked(s)), nil
}

// sameBits compares the raw bits of a slot.
func sameBits(s *frame.Slot, text string) (bool, error) {
	digits, hex := strings.CutPrefix(strings.ToLower(text), "0x")
	if !hex || strings.Trim(digits, "0123456789abcdef") != "" || digits == "" {
		return false, fmt.Errorf("%q: expected 0x and hexadecimal digits", text)
	}
	digits = strings.TrimLeft(digits, "0")
	return strings.TrimLeft(strings.TrimPrefix(string(s.Hex), "0x"), "0") == digits, nil
}

func expectUnavailable(f *deopt.Frame, s *frame.Slot, want []string) error {
	if s.Status != frame.Missing {
		return otherwise("%s is %s, not unavailable, in %s", spelled(s), shown(s), titled(f))
	}
	if len(want) == 0 {
		return nil
	}
	re, err := regexp.Compile(want[0])
	if err != nil {
		return err
	}
	if !re.MatchString(s.Reason) {
		return otherwise("%s is %s: no match for %s, in %s", spelled(s), shown(s), want[0], titled(f))
	}
	return nil
}

// expectAt compares the location of the slot's value.
func expectAt(f *deopt.Frame, s *frame.Slot, want string) error {
	if s.Location == nil {
		return otherwise("%s has no location, not %s, in %s", spelled(s), want, titled(f))
	}
	where := s.Location.String()
	if want == where || want == s.Location.Kind || want == s.Location.Kind+" "+where {
		return nil
	}
	return otherwise("%s is in %s %s, not in %s, in %s", spelled(s), s.Location.Kind, where, want, titled(f))
}
