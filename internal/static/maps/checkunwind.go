package maps

import (
	"errors"
	"fmt"
	"sync"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// SizesAgree compares a map with the other sources of a frame's size.
var SizesAgree = stackmap.Rule{Name: "stack sizes agree",
	Fact: "the size of a function's frame is the distance from the stack pointer at its sites to that of its caller, without the return address that a call pushed: " +
		"compact unwind, CFI, the instructions and .stack_sizes agree on it (seen: llc 14 to 22)"}

// frameSizes holds the sources for frame sizes of an image other than its maps.
type frameSizes struct {
	image   *object.Image
	arch    *machine.Arch
	table   *cfi.Table      // call frame information; nil if there is none
	compact *cfi.Compact    // Mach-O's compact unwind information; nil if there is none
	sizes   *cfi.StackSizes // the section .stack_sizes; nil if there is none
	code    machine.Memory
}

// checkUnwind compares the frame sizes with unwind information.
func (i *Image) checkUnwind() stackmap.Result {
	result := stackmap.Result{Rule: SizesAgree}
	if i.image == nil || i.Arch == nil {
		result.Skip("there is no image with unwind information")
		return result
	}
	sources, err := readFrameSizes(i.image, i.Arch)
	if err != nil {
		result.Skip(err.Error())
		return result
	}
	for n, m := range i.placed().Maps {
		for k := range m.Functions {
			f := &m.Functions[k]
			if f.StackSize == stackmap.DynamicStack || i.Unlinked && !i.code().Placed(m.FunctionPos(f)) {
				continue
			}
			result.Checked++
			what, err := sources.disagree(m, f)
			switch {
			case err != nil:
				result.AddUnknown(err.Error())
			case what != "":
				result.Add(stackmap.Violation{Map: n, Function: f.Addr, Index: -1, Pos: m.FunctionPos(f), What: what})
			}
		}
	}
	return result
}

func readFrameSizes(img *object.Image, arch *machine.Arch) (*frameSizes, error) {
	out := &frameSizes{image: img, arch: arch, code: codeOf(img, arch)}
	var err error
	if out.table, err = cfi.TableOf(img); err != nil {
		return nil, err
	}
	if out.compact, err = readCompact(img, arch); err != nil {
		return nil, err
	}
	var data [][]byte
	for _, s := range img.Sections(".stack_sizes") {
		b, _, err := s.Relocated()
		if err != nil {
			return nil, err
		}
		data = append(data, b)
	}
	if data != nil {
		out.sizes, err = cfi.ReadStackSizes(arch, img.Bias, data...)
	}
	return out, err
}

// readCompact reads the compact unwind information of a Mach-O image; nil if it has none.
func readCompact(img *object.Image, arch *machine.Arch) (*cfi.Compact, error) {
	if arch != machine.AMD64 && arch != machine.ARM64 || img.Narrow() {
		return nil, nil
	}
	if s := img.Section("__LD,__compact_unwind"); s != nil && img.Relocatable() {
		data, _, err := s.Relocated()
		if err != nil {
			return nil, err
		}
		return cfi.ReadCompactUnwind(arch, data)
	}
	s := img.Section("__TEXT,__unwind_info")
	header, ok := img.FileAddr(0)
	if s == nil || !ok {
		return nil, nil
	}
	return cfi.OpenUnwindInfo(arch, cfi.Section{Addr: s.Loaded(), Data: s, Size: int64(s.Size)}, header+img.Bias)
}

var (
	errOtherBase = errors.New("the CFA is not based on the stack pointer, so the size of the frame is unknown")
	errNothing   = errors.New("neither unwind information nor code describes the function")
	errPushed    = errors.New("arguments may have been pushed")
)

// disagree returns the difference if another source gives another frame size for a function than its map, or "". It returns an error if no source
// gives a size.
func (s *frameSizes) disagree(m *stackmap.Map, f *stackmap.Function) (string, error) {
	told := false
	if s.sizes != nil {
		if size, ok := s.sizes.Find(f.Addr); ok {
			if told = true; size != f.StackSize {
				return fmt.Sprintf("its frame has %d bytes here, but %d in .stack_sizes", f.StackSize, size), nil
			}
		}
	}
	size, from, err := s.atSites(m, f)
	switch {
	case err != nil && told:
		return "", nil
	case err != nil:
		return "", err
	case size > f.StackSize && told:
		return "", nil
	case size > f.StackSize && s.arch == machine.AMD64:
		return "", errPushed // the call may push arguments; on other architectures the frame has reserved space for them
	case size != f.StackSize:
		return fmt.Sprintf("its frame has %d bytes here, but %d by %s", f.StackSize, size, from), nil
	}
	return "", nil
}

// atSites returns the smallest frame size at a site of a function, and its source: the frame is larger at a call that pushes arguments.
func (s *frameSizes) atSites(m *stackmap.Map, f *stackmap.Function) (size uint64, from string, err error) {
	known := false
	sources := s.sources(f.Addr)
	for r := range m.Records(f) {
		for _, source := range sources {
			row, problem := source.at(f.Addr + machine.Addr(r.Offset))
			if problem != nil {
				problem = errNothing // the error has no address, so that many functions give one message
			} else if row.CFA.Kind != cfi.CFARegister || row.CFA.Register != s.arch.SP {
				problem = errOtherBase
			}
			if problem != nil {
				err = problem
				continue
			}
			n := uint64(row.CFA.Offset + s.arch.CallerSP)
			if s.arch.Link == s.arch.PC {
				n -= uint64(s.arch.Pointer)
			}
			if !known || n < size {
				size, from, known = n, source.name, true
			}
			break
		}
	}
	switch {
	case known:
		return size, from, nil
	case err == nil:
		err = errNothing
	}
	return 0, "", err
}

// rows holds the unwind rules of one function, and their source.
type rows struct {
	name string
	at   func(pc machine.Addr) (*cfi.Row, error)
}

// sources returns the unwind rules for the function at start, the most trusted first.
func (s *frameSizes) sources(start machine.Addr) []rows {
	var list []rows
	if s.compact != nil {
		if e, err := s.compact.Find(start); err == nil {
			list = append(list, rows{"compact unwind", func(machine.Addr) (*cfi.Row, error) { return e.AtCalls(s.code) }})
		}
	}
	if s.table != nil {
		if fde, err := s.table.Find(start); err == nil {
			list = append(list, rows{"CFI", func(pc machine.Addr) (*cfi.Row, error) {
				if pc >= fde.End { // a call may be the function's last instruction
					pc--
				}
				return fde.Rules(pc)
			}})
		}
	}
	if s.arch == machine.AMD64 && !s.image.Narrow() {
		read := sync.OnceValues(func() (*unwind.Instructions, error) {
			end, _, _ := imageCode{Image: s.image}.Function(start)
			return unwind.ReadInstructions(s.code, start, end)
		})
		list = append(list, rows{"its instructions", func(pc machine.Addr) (*cfi.Row, error) {
			i, err := read()
			if err != nil {
				return nil, err
			}
			return i.At(pc)
		}})
	}
	return list
}
