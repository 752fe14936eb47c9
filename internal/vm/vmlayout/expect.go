package vmlayout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// These are the keys of info that are compared with frames: the number of operands on the stack, and the number of held locks.
const (
	infoStack = "stack" // the number before the instruction; "stack after", "stack in-call" and "stack rethrow" give it after the instruction, during its call, and after it has thrown
	infoLocks = "locks"
)

// unknownCount is used as the number of values on an operand stack if the length of a row is unavailable.
const unknownCount = -1

// infoDifference is a difference between a frame and info for its position.
type infoDifference struct {
	has, says int    // the numbers of the frame and of info
	what, key string // what is counted, and its key in info
}

func (d infoDifference) String() string {
	return fmt.Sprintf("%d %s, but in info %q is %d", d.has, d.what, d.key, d.says)
}

// unexpected lists the differences between a frame and info for its position.
func unexpected(resume string, stack, locks int, info map[string]string) (list []infoDifference) {
	key := infoStack
	if resume != frame.Reexecute {
		key += " " + resume
	}
	for _, x := range []struct {
		key, what string
		has       int
	}{{key, "on the operand stack", stack}, {infoLocks, "locks", locks}} {
		if says, err := strconv.Atoi(info[x.key]); err == nil && says != x.has && x.has != unknownCount {
			list = append(list, infoDifference{x.has, says, x.what, x.key})
		}
	}
	return list
}

// expected compares the frames of a shape with the layout's info for their positions, if the record has constant positions and info reads no memory
// of the target.
func (s *Shape) expected(site *Site) (list []Misfit) {
	if s.Layout == nil {
		return nil
	}
	from := &Source{Memory: nowhere{}, Static: nowhere{}, Order: binary.LittleEndian}
	list = s.unnamed(from, site)
	if !s.Layout.has("info") {
		return list
	}
	for n := range s.Frames {
		f := &s.Frames[n]
		method, named := site.constant(f.Method)
		position, placed := site.constant(f.Position)
		if !named || !placed || f.Position == nil || f.rows() {
			continue
		}
		info, err := s.Layout.infoOf(from, method, int64(position))
		if err != nil {
			if !needsTarget(err) {
				list = append(list, Misfit{InfoFails, PositionOf(err), fmt.Sprintf("frame %d: info of position %d: %v", n, int64(position), err)})
			}
			continue
		}
		for _, why := range unexpected(f.Resume, len(f.Stack), len(f.Monitors), info) {
			list = append(list, Misfit{InfoDiffers, why.key, fmt.Sprintf("frame %d, at position %d: %v", n, int64(position), why)})
		}
	}
	return list
}

// unnamed lists the methods and classes that are constants in the record, and that the layout cannot name although it reads no memory.
func (s *Shape) unnamed(from *Source, site *Site) (list []Misfit) {
	check := func(where, what string, v *Value) {
		bits, known := site.constant(v)
		if v == nil || !known || bits == 0 || v.Kind == ConstValue && v.Const.Type == "symbol" || !s.Layout.has(what) {
			return
		}
		if _, err := s.Layout.nameOf(what, from, bits); err != nil && !needsTarget(err) {
			list = append(list, Misfit{NamelessConstant, what + " " + PositionOf(err), fmt.Sprintf("%s: the name of its %s: %v", where, what, err)})
		}
	}
	for n := range s.Frames {
		check(fmt.Sprintf("frame %d", n), "method", s.Frames[n].Method)
	}
	for n := range s.Objects {
		check(fmt.Sprintf("object %d", s.Objects[n].ID), "class", s.Objects[n].Class)
	}
	return list
}

// needsTarget reports whether a function of a layout failed because it reads memory.
func needsTarget(err error) bool {
	var wrong *Error
	return errors.As(err, &wrong) && wrong.NeedsTarget
}

// constant returns the number of a token that is constant in the record. A missing token counts as 0, as at an exit.
func (s *Site) constant(v *Value) (bits uint64, is bool) {
	switch {
	case v == nil:
		return 0, true
	case v.Kind == ConstValue:
		return v.Const.Bits, true
	case v.Kind == OperandValue && v.Codec == nil && v.Operand < len(s.Operands) && s.Operands[v.Operand].Constant != nil:
		return uint64(s.Operands[v.Operand].Constant.Int64()), true
	}
	return 0, false
}

// rows reports whether the number of stack values is read from memory.
func (f *Frame) rows() bool {
	for k := range f.Stack {
		if f.Stack[k].Run != nil {
			return true
		}
	}
	return false
}

// nowhere is the memory of a target that does not run yet.
type nowhere struct{}

func (nowhere) ReadMemory([]byte, machine.Addr) error { return errNoTarget }
