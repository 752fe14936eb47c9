package handover

import (
	"cmp"
	"encoding/binary"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/internal/vm/vmlayout"
)

// VM returns the frames in which an interpreter has stopped, innermost first, in the form of frames that a layout reads. order is the byte order of
// the target.
func VM(s *protocol.Stopped, order binary.ByteOrder) *frame.VM {
	vm := &frame.VM{}
	for n := range s.Frames {
		f := &s.Frames[n]
		is := frame.VMFrame{Method: cmp.Or(f.Method, string(f.Bits)), Position: f.Position, Resume: f.Resume, Locals: back(f.Locals, order), Stack: back(f.Stack, order)}
		is.MethodBits, _ = f.Bits.Uint() // 0 if the interpreter reports no bits
		for k := range f.Monitors {
			is.Monitors = append(is.Monitors, frame.VMMonitor{Owner: valueBack(&f.Monitors[k].Owner, order), Eliminated: f.Monitors[k].Eliminated})
		}
		for name, v := range f.Extra {
			if is.Extra == nil {
				is.Extra = map[string]frame.VMValue{}
			}
			is.Extra[name] = valueBack(&v, order)
		}
		vm.Frames = append(vm.Frames, is)
	}
	for n := range s.Objects {
		o := &s.Objects[n]
		is := frame.VMObject{ID: o.ID, Class: cmp.Or(o.Class, string(o.Bits))}
		is.ClassBits, _ = o.Bits.Uint()
		for k := range o.Fields {
			is.Fields = append(is.Fields, frame.VMField{At: o.Fields[k].At, VMValue: valueBack(&o.Fields[k].Value, order)})
		}
		vm.Objects = append(vm.Objects, is)
	}
	return vm
}

func back(list []protocol.Value, order binary.ByteOrder) (out []frame.VMValue) {
	for k := range list {
		out = append(out, valueBack(&list[k], order))
	}
	return out
}

// valueBack converts a value in the form of [Stack.Request] back to a frame's value. The value has no bytes if only a module gives the size of its
// type.
func valueBack(v *protocol.Value, order binary.ByteOrder) frame.VMValue {
	is := frame.VMValue{Index: v.Index, Name: v.Name, Object: v.Object}
	switch {
	case v.Object != nil:
		return is
	case v.Dead:
		is.Status = frame.Dead
		return is
	}
	for _, w := range v.Words {
		is.Words = append(is.Words, frame.Hex(w))
	}
	is.Type, is.Value, is.Hex, is.Status = v.Type, v.Text, frame.Hex(v.Bits), frame.OK
	bits, err := v.Bits.Uint()
	typed := vmlayout.Typed{Type: v.Type, Bits: bits}
	kind, ok := typed.Kind()
	if !ok || err != nil {
		return is
	}
	is.Kind, is.Value = kind, cmp.Or(v.Text, typed.String())
	var raw [8]byte
	if n := kind.Size(); order == binary.ByteOrder(binary.BigEndian) {
		binary.BigEndian.PutUint64(raw[:], bits)
		is.Bytes = raw[8-n:]
	} else {
		binary.LittleEndian.PutUint64(raw[:], bits)
		is.Bytes = raw[:n]
	}
	return is
}
