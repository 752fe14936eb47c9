package unwind

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// The limits of one walk for finding callers by elimination. Reading SearchBytes takes a tenth of a second, and examining defaultSearched
// instructions about three seconds.
const (
	// SearchBytes is the number of bytes of code that are read for branches. A target with more code is not searched completely.
	SearchBytes = 64 << 20
	// defaultSearched is the default for [Unwinder.MaxSearched].
	defaultSearched = 1 << 20
)

// arm64Code holds what a walk has found out about arm64 code alone, without registers and stacks. Walks that look ahead share it.
type arm64Code struct {
	*Unwinder
	courses map[machine.Addr]*ARM64Course  // functions that were read, by their start
	written map[machine.Range]*ARM64Course // code that a runtime has written
	reaches map[machine.Addr]*arm64Reach   // by the callee's address
	left    int                            // number of instructions that the walk may still examine
}

// newARM64Code returns an arm64Code with the whole budget.
func newARM64Code(u *Unwinder) *arm64Code {
	c := &arm64Code{Unwinder: u, left: u.MaxSearched}
	if c.left == 0 {
		c.left = defaultSearched
	}
	return c
}

// spend subtracts examined instructions from the budget, and returns an error if nothing is left.
func (c *arm64Code) spend(instructions int) error {
	if c.left -= min(instructions, c.left); c.left > 0 {
		return nil
	}
	most := c.MaxSearched
	if most == 0 {
		most = defaultSearched
	}
	return frame.Because(frame.SearchBudget, fmt.Sprintf("%d instructions", most))
}

// read returns the result of arm64Function from the cache, or calls arm64Function.
func (c *arm64Code) read(start machine.Addr) *ARM64Course {
	course := c.courses[start]
	if course == nil {
		if c.courses == nil || len(c.courses) >= maxRead {
			c.courses = map[machine.Addr]*ARM64Course{}
		}
		course = c.arm64Function(start)
		c.courses[start] = course
		_ = c.spend(course.examined()) // the loops of the searches check the budget
	}
	return course
}

// readWritten returns the result of CourseARM64 from the cache, or calls CourseARM64.
func (c *arm64Code) readWritten(written, own machine.Range) *ARM64Course {
	course := c.written[written]
	if course == nil {
		if c.written == nil || len(c.written) >= maxRead {
			c.written = map[machine.Range]*ARM64Course{}
		}
		course = c.CourseARM64(written, own)
		c.written[written] = course
		_ = c.spend(course.examined())
	}
	return course
}

// reach returns the arm64Reach of a callee, or nil if the branches of the target are unknown.
func (c *arm64Code) reach(callee machine.Addr) *arm64Reach {
	if r := c.reaches[callee]; r != nil || c.Branches == nil {
		return r
	}
	branches, missing := c.Branches()
	r := &arm64Reach{c, callee, branches, missing, map[machine.Addr]evidence{}}
	if c.reaches == nil || len(c.reaches) >= maxRead {
		c.reaches = map[machine.Addr]*arm64Reach{}
	}
	c.reaches[callee] = r
	return r
}

// reasonCode returns the code of a reason, or "" for an error without one.
func reasonCode(err error) frame.Code {
	var reason *frame.Reason
	if errors.As(err, &reason) {
		return reason.Code
	}
	return ""
}
