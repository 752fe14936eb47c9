package vmlayout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// The keys of info that frames are compared with: the number of operands on the stack, and the number of locks held.
const (
	infoStack = "stack" // if the instruction at the position has not run; "stack after", "stack in-call" and "stack rethrow" if it has run, is pending, or has thrown
	infoLocks = "locks"
)

// unexpected lists the differences between a frame and info's description of its position.
func unexpected(resume string, stack, locks int, info map[string]string) (list []string) {
	key := infoStack
	if resume != frame.Reexecute {
		key += " " + resume
	}
	for _, x := range []struct {
		key, what string
		has       int
	}{{key, "on the operand stack", stack}, {infoLocks, "locks", locks}} {
		if says, err := strconv.Atoi(info[x.key]); err == nil && says != x.has {
			list = append(list, fmt.Sprintf("%d %s, and info says that %q is %d there", x.has, x.what, x.key, says))
		}
	}
	return list
}

// expected compares the frames of a shape with the layout's info for their positions, if the record gives the positions by constants, and info
// reads nothing in the target's memory.
func (s *Shape) expected(site *Site) (list []string) {
	if s.Layout == nil || !s.Layout.has("info") {
		return nil
	}
	from := &Source{Memory: nowhere{}, Static: nowhere{}, Order: binary.LittleEndian}
	for n := range s.Frames {
		f := &s.Frames[n]
		method, named := site.constant(f.Method)
		position, placed := site.constant(f.Position)
		if !named || !placed || f.Position == nil || f.rows() {
			continue
		}
		info, err := s.Layout.infoOf(from, method, int64(position))
		if err != nil { // it looks into memory
			continue
		}
		for _, why := range unexpected(f.Resume, len(f.Stack), len(f.Monitors), info) {
			list = append(list, fmt.Sprintf("frame %d, at position %d: %s", n, int64(position), why))
		}
	}
	return list
}

// constant is the number that a token is by the record alone; 0 for no token, as at an exit.
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

// rows reports whether the number of values on the stack is read from memory.
func (f *Frame) rows() bool {
	for k := range f.Stack {
		if f.Stack[k].Run != nil {
			return true
		}
	}
	return false
}

// nowhere is the memory of a target that is not there.
type nowhere struct{}

func (nowhere) ReadMemory([]byte, machine.Addr) error { return errors.New("nothing runs yet") }
