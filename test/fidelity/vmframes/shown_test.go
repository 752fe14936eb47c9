package vmframes_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/tinyvmtest"
)

// Representation of tinyvm's values in memory (vm.h): ints have the upper 16 bits set, references have none of them set, and doubles are stored with
// an added offset.
const (
	intTag       = 0xffff
	doubleOffset = 1 << 48
	canonicalNaN = 0x7ff8_0000_0000_0000
	fieldsAt     = 16 // offset of the fields in an object
)

// shown converts reframe's output to the form of the log.
type shown struct {
	vm      *frame.VM
	memory  machine.Memory // memory of the stopped process
	numbers map[reached]int
	found   []reached
	locks   map[int64]int // for objects that exist only as fields: the number of times that frames hold the lock
}

// A reached object has an address, or exists only as fields.
type reached struct {
	addr    uint64
	virtual int64
	is      bool // the object is virtual: it exists only as fields
}

// arrival converts the frames to an arrival of the log. callee is the method that the innermost frame is about to call, or "" at an exit. calling
// means that all frames wait for a call.
func arrival(vm *frame.VM, memory machine.Memory, fuel int64, callee string, calling bool) (a tinyvmtest.Arrival, err error) {
	if vm == nil {
		return a, fmt.Errorf("no frames")
	}
	if vm.Error != "" {
		return a, fmt.Errorf("no frames: %s", vm.Error)
	}
	if len(vm.Frames) == 0 {
		return a, fmt.Errorf("a list of no frames")
	}
	s := newShown(vm, memory)
	if a.Frames, err = s.frames(calling); err != nil {
		return a, err
	}
	under, err := depth(&vm.Frames[len(vm.Frames)-1])
	if err != nil {
		return a, err
	}
	if a.Heap, err = s.heap(); err != nil {
		return a, err
	}
	in := a.Frames[0]
	a.Fuel, a.Method, a.Position, a.Depth, a.Call = fuel, in.Method, in.Position, under+len(a.Frames)-1, callee
	return a, nil
}

func newShown(vm *frame.VM, memory machine.Memory) *shown {
	return &shown{vm: vm, memory: memory, numbers: map[reached]int{}, locks: map[int64]int{}}
}

func (s *shown) frames(calling bool) (all []tinyvmtest.Frame, err error) {
	for n := range s.vm.Frames {
		f, err := s.frame(&s.vm.Frames[n])
		if err != nil {
			return nil, fmt.Errorf("frame %d: %w", n, err)
		}
		// All frames wait for a call, except the innermost frame at an exit.
		if waits := calling || n > 0; waits != (s.vm.Frames[n].Resume == frame.Calling) {
			return nil, fmt.Errorf("frame %d: it is resumed %s", n, s.vm.Frames[n].Resume)
		}
		all = append(all, f)
	}
	return all, nil
}

// heap returns the objects that all values refer to.
func (s *shown) heap() (all []tinyvmtest.Object, err error) {
	for n := 0; n < len(s.found); n++ { // grows during the loop
		o, err := s.object(s.found[n])
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", n, err)
		}
		all = append(all, o)
	}
	for n := range all {
		if o := s.found[n]; o.is {
			all[n].Lock = s.locks[o.virtual]
		}
	}
	return all, nil
}

// depth returns the number of frames below f, the outermost virtual frame of a physical one.
func depth(f *frame.VMFrame) (int, error) {
	x, ok := f.Extra["extra 2"]
	if !ok || x.Status != frame.OK {
		return 0, fmt.Errorf("%s @ %v has no depth: %s", f.Method, f.Position, x.Reason)
	}
	return strconv.Atoi(x.Value)
}

func (s *shown) frame(f *frame.VMFrame) (out tinyvmtest.Frame, err error) {
	if f.Reason != "" || f.Position == nil {
		return out, fmt.Errorf("%s: %s", f.Method, f.Reason)
	}
	out.Method, out.Position = f.Method, int(*f.Position)
	if f.Resume == frame.Completed {
		out.Position++
	}
	if out.Locals, err = s.row("local", f.Locals); err != nil {
		return out, err
	}
	if out.Stack, err = s.row("stack", f.Stack); err != nil {
		return out, err
	}
	for n := range f.Monitors {
		m := &f.Monitors[n]
		v, err := s.value(&m.Owner)
		if err != nil {
			return out, fmt.Errorf("lock %d: %w", n, err)
		}
		if m.Eliminated {
			if m.Owner.Object == nil {
				return out, fmt.Errorf("lock %d was left out, of an object that is there", n)
			}
			s.locks[*m.Owner.Object]++
		}
		out.Monitors = append(out.Monitors, v)
	}
	return out, nil
}

// row converts locals or operands, which are numbered from 0 without gaps.
func (s *shown) row(what string, list []frame.VMValue) (out []tinyvmtest.Value, err error) {
	for n := range list {
		if *list[n].Index != int64(n) {
			return nil, fmt.Errorf("%s[%d] is number %d", what, *list[n].Index, n)
		}
		v, err := s.value(&list[n])
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", what, n, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func (s *shown) value(v *frame.VMValue) (out tinyvmtest.Value, err error) {
	switch {
	case v.Object != nil:
		return s.reference(reached{virtual: *v.Object, is: true}), nil
	case v.Status == frame.Dead:
		return tinyvmtest.Value{Dead: true}, nil
	case v.Status != frame.OK:
		return out, fmt.Errorf("%s: %s", v.Status, v.Reason)
	}
	var bits uint64
	if v.Type != "null" {
		if len(v.Bytes) == 0 || len(v.Bytes) > 8 {
			return out, fmt.Errorf("%s %s has %d bytes", v.Type, v.Value, len(v.Bytes))
		}
		var all [8]byte
		copy(all[:], v.Bytes)
		bits = binary.LittleEndian.Uint64(all[:])
	}
	switch v.Type {
	case "i32":
		return number(uint32(bits)), nil
	case "f64", "double":
		return double(bits), nil
	case "null":
		return out, nil
	case "ref":
		if bits == 0 {
			return out, nil
		}
		return s.reference(reached{addr: bits}), nil
	}
	return out, fmt.Errorf("%s %s is of no type that the machine has", v.Type, v.Value)
}

func number(bits uint32) tinyvmtest.Value {
	n := int32(bits)
	return tinyvmtest.Value{Int: &n}
}

// double maps all NaNs to one, as the machine does.
func double(bits uint64) tinyvmtest.Value {
	if math.IsNaN(math.Float64frombits(bits)) {
		bits = canonicalNaN
	}
	text := fmt.Sprintf("%016x", bits)
	return tinyvmtest.Value{Double: &text}
}

// reference returns the number of an object.
func (s *shown) reference(o reached) tinyvmtest.Value {
	n, known := s.numbers[o]
	if !known {
		n = len(s.found)
		s.numbers[o], s.found = n, append(s.found, o)
	}
	return tinyvmtest.Value{Ref: &n}
}

// object reads an object, from memory or from the frames.
func (s *shown) object(o reached) (out tinyvmtest.Object, err error) {
	if !o.is {
		return s.allocated(o.addr)
	}
	for n := range s.vm.Objects {
		is := &s.vm.Objects[n]
		if is.ID != o.virtual {
			continue
		}
		if is.Reason != "" {
			return out, fmt.Errorf("virtual object %d: %s", is.ID, is.Reason)
		}
		out.Class = is.Class
		for k := range is.Fields {
			f := &is.Fields[k]
			if f.At != int64(fieldsAt+8*k) {
				return out, fmt.Errorf("virtual object %d: field %d is at %d", is.ID, k, f.At)
			}
			v, err := s.value(&f.VMValue)
			if err != nil {
				return out, fmt.Errorf("virtual object %d: field %d: %w", is.ID, k, err)
			}
			out.Fields = append(out.Fields, v)
		}
		return out, nil
	}
	return out, fmt.Errorf("there is no virtual object %d", o.virtual)
}

// allocated reads an object in memory, in tinyvm's format.
func (s *shown) allocated(addr uint64) (out tinyvmtest.Object, err error) {
	var head [fieldsAt]byte
	if err := s.memory.ReadMemory(head[:], machine.Addr(addr)); err != nil {
		return out, err
	}
	if out.Class, err = text(s.memory, binary.LittleEndian.Uint64(head[:])); err != nil {
		return out, err
	}
	out.Lock = int(int32(binary.LittleEndian.Uint32(head[8:])))
	count := binary.LittleEndian.Uint32(head[12:])
	if count > 64 {
		return out, fmt.Errorf("%d fields at %#x", count, addr)
	}
	fields := make([]byte, 8*count)
	if err := s.memory.ReadMemory(fields, machine.Addr(addr+fieldsAt)); err != nil {
		return out, err
	}
	for ; len(fields) > 0; fields = fields[8:] {
		out.Fields = append(out.Fields, s.boxed(binary.LittleEndian.Uint64(fields)))
	}
	return out, nil
}

// boxed returns a value as it is represented in memory, which is also how compiled code returns it.
func (s *shown) boxed(bits uint64) tinyvmtest.Value {
	switch {
	case bits == 0:
		return tinyvmtest.Value{}
	case bits>>48 == intTag:
		return number(uint32(bits))
	case bits>>48 == 0:
		return s.reference(reached{addr: bits})
	}
	return double(bits - doubleOffset)
}

// text reads a string that ends with NUL from the target.
func text(m machine.Memory, addr uint64) (string, error) {
	var out []byte
	for len(out) < 100 {
		var word [16]byte
		if err := m.ReadMemory(word[:], machine.Addr(addr)+machine.Addr(len(out))); err != nil {
			return "", err
		}
		for _, b := range word {
			if b == 0 {
				return string(out), nil
			}
			out = append(out, b)
		}
	}
	return "", fmt.Errorf("no name ends at %#x", addr)
}

func word(m machine.Memory, addr machine.Addr) (uint64, error) {
	var b [8]byte
	err := m.ReadMemory(b[:], addr)
	return binary.LittleEndian.Uint64(b[:]), err
}
