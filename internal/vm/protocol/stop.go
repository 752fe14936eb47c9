package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Stop ends a resume before an instruction, once After instructions have run and at most Frames frames remain.
type Stop struct {
	After  uint64 `json:"after"`            // number of instructions; 0: stop at once
	Frames int    `json:"frames,omitempty"` // 0: no limit
}

// Stopped is the state of an interpreter that stopped between two instructions. A resume of these frames over the same memory continues from there.
type Stopped struct {
	Frames  []Frame  `json:"frames"` // innermost first
	Objects []Object `json:"objects"`
}

// kept returns an error if an answer does not match this stop request. The receiver is nil if the resume had no stop.
func (s *Stop) kept(a *Answer) error {
	switch {
	case a.Stopped == nil:
		return nil
	case s == nil:
		return errors.New("it stopped, which was not requested")
	case a.Steps < s.After || s.Frames == 0 && a.Steps > s.After:
		return fmt.Errorf("it stopped after %d instructions, not after %d", a.Steps, s.After)
	case s.Frames > 0 && len(a.Stopped.Frames) > s.Frames:
		return fmt.Errorf("it stopped in %d frames, not in up to %d", len(a.Stopped.Frames), s.Frames)
	}
	return nil
}

// resumes lists the values that resume of a [Frame] may have.
var resumes = []string{"reexecute", "after", "in-call", "rethrow"}

// check returns an error if the frames or objects are malformed. It makes omitted lists empty, because the frames are sent again later.
func (s *Stopped) check() error {
	if len(s.Frames) == 0 {
		return errors.New("stopped has no frames")
	}
	known := map[int64]bool{}
	for k := range s.Objects {
		if known[s.Objects[k].ID] {
			return fmt.Errorf("stopped has object %d twice", s.Objects[k].ID)
		}
		known[s.Objects[k].ID] = true
	}
	for n := range s.Frames {
		if err := s.Frames[n].check(known); err != nil {
			return fmt.Errorf("stopped: frame %d: %w", n, err)
		}
	}
	for k := range s.Objects {
		o := &s.Objects[k]
		o.Fields = append([]Field{}, o.Fields...)
		for i := range o.Fields {
			if err := o.Fields[i].check(known); err != nil {
				return fmt.Errorf("stopped: object %d: the field at %d: %w", o.ID, o.Fields[i].At, err)
			}
		}
	}
	return nil
}

func (f *Frame) check(objects map[int64]bool) error {
	if !slices.Contains(resumes, f.Resume) {
		return fmt.Errorf("resume is %.40q", f.Resume)
	}
	f.Locals, f.Stack = append([]Value{}, f.Locals...), append([]Value{}, f.Stack...)
	for _, list := range []struct {
		name   string
		values []Value
	}{{"local", f.Locals}, {"place on the stack", f.Stack}} {
		for k := range list.values {
			v := &list.values[k]
			if v.Index == nil {
				return fmt.Errorf("a %s without an index", list.name)
			}
			if err := v.check(objects); err != nil {
				return fmt.Errorf("%s %d: %w", list.name, *v.Index, err)
			}
		}
	}
	for k := range f.Monitors {
		if err := f.Monitors[k].Owner.check(objects); err != nil {
			return fmt.Errorf("a monitor: %w", err)
		}
	}
	for name, v := range f.Extra {
		if err := v.check(objects); err != nil {
			return fmt.Errorf("%.40s: %w", name, err)
		}
	}
	return nil
}

func (v *Value) check(objects map[int64]bool) error {
	switch {
	case v.Dead:
		return nil
	case v.Object != nil && !objects[*v.Object]:
		return fmt.Errorf("it is object %d, which is not described", *v.Object)
	case v.Object != nil:
		return nil
	case v.Bits == "":
		return errors.New("it has neither bits nor an object, nor is it dead")
	}
	if len(v.Bits) < 3 || v.Bits[:2] != "0x" || strings.Trim(string(v.Bits[2:]), "0123456789abcdef") != "" {
		return fmt.Errorf("%.40q is not a number of the form \"0x2a\"", string(v.Bits))
	}
	return nil
}
