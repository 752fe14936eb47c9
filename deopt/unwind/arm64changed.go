package unwind

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// Bounds of the search for the registers that a called function changes.
const (
	maxOutlined       = 256 // instructions of one function
	maxOutlinedNested = 4   // maximum depth of nested calls
)

// arm64Saved holds the callee-saved registers (AAPCS64, "General-purpose Registers").
const arm64Saved = arm64Set(1<<(arm64FP+1) - 1<<19)

// An outlining finds the callee-saved registers that a called function changes in violation of the convention. Compilers outline code that
// several functions have in common (LLVM's MachineOutliner), and the outlined function writes the registers of its callers. It has no conditional
// branches, and ends with a return or a jump.
type outlining struct {
	known  map[machine.Addr]arm64Set
	nested int // number of calls that are being examined
	steps  int // number of examined instructions
}

func newOutlining() *outlining { return &outlining{known: map[machine.Addr]arm64Set{}} }

// changed returns the callee-saved registers that the function at an address may change. If its code is unknown, it may change all of them.
func (c *ARM64Course) changed(function machine.Addr) arm64Set {
	o := c.outlined
	set, known := o.known[function]
	if known {
		return set
	}
	if o.nested >= maxOutlinedNested || len(o.known) >= maxCourse || o.steps >= maxCourseSteps {
		return arm64Saved
	}
	o.known[function] = arm64Saved // for recursive calls
	o.nested++
	set = c.searchChanged(function)
	o.nested--
	o.known[function] = set
	return set
}

// searchChanged does the work of changed without the cache. It follows the code up to the first conditional branch, which no outlined function has.
func (c *ARM64Course) searchChanged(at machine.Addr) arm64Set {
	path := &ARM64Course{At: map[machine.Addr]*ARM64Moment{}, Returns: map[machine.Addr]*ARM64Moment{}, unwinder: c.unwinder, outlined: c.outlined}
	m, set := firstMoment(), arm64Set(0)
	for range maxOutlined {
		c.outlined.steps++
		var code [arm64.Size]byte
		if c.unwinder.Memory.ReadMemory(code[:], at) != nil {
			return arm64Saved
		}
		next, _ := path.step(m, at)
		switch to, jumps := arm64.Jump(code[:], at); {
		case jumps && len(next) > 1:
			return set
		case jumps:
			if by, known := m.regs[arm64SP].fromSP(); known && by != 0 { // a jump inside a function with a frame
				return set
			}
			set |= m.differing()
			m, at = firstMoment(), to
			continue
		case len(next) == 0 && path.partial && binary.LittleEndian.Uint32(code[:])&^(31<<5) != 0xd61f0000: // not a br
			return arm64Saved
		case len(next) != 1 || next[0] != at+arm64.Size:
			return set | m.differing()
		}
		at = next[0]
	}
	return arm64Saved
}

// differing returns the callee-saved registers that do not have the values of the start of the course.
func (m *ARM64Moment) differing() (set arm64Set) {
	for n := uint8(19); n <= arm64FP; n++ {
		if m.regs[n] != (arm64Value{arm64Initial, n, 0}) {
			set.add(uint32(n))
		}
	}
	return set
}
