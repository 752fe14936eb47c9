package vmlayout

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"example.com/reframe/internal/machine"
)

// Target is the process or core whose immutable memory a layout reads while it makes frames: side tables and compressed streams.
type Target struct {
	Memory machine.Memory
	Symbol func(name string) (machine.Addr, bool)
	Order  binary.ByteOrder

	find func(name string) (machine.Addr, bool, error) // used instead of Symbol if the search may fail; otherwise nil
}

// source returns the source that the functions of a layout read from; nil without a target.
func (t *Target) source() *Source {
	if t == nil {
		return nil
	}
	find := t.find
	if find == nil {
		find = func(name string) (at machine.Addr, ok bool, err error) {
			at, ok = t.Symbol(name)
			return at, ok, nil
		}
	}
	return &Source{Memory: t.Memory, Static: t.Memory, Order: t.Order, symbol: find}
}

// These bound the memory that a layout reads to make the frames of a record.
const (
	maxString = 1 << 10  // bytes of a text
	maxPart   = 64 << 10 // bytes of one read
	maxSeen   = 1 << 20  // bytes of all reads
	maxParts  = 1 << 14  // number of reads
)

// footprint is the memory that a layout read, and the symbols that it did not find.
type footprint struct {
	memory machine.Memory
	parts  []Part
	absent []string
	bytes  int
}

// Part is memory that a layout read.
type Part struct {
	At   machine.Addr
	Data []byte
	Lost error // why the memory could not be read; Data has its size
}

func (p *Part) end() machine.Addr { return p.At + machine.Addr(len(p.Data)) }

// watched returns the target with a memory that records all reads.
func (t *Target) watched() (*Target, *footprint) {
	f := &footprint{memory: t.Memory}
	return &Target{Memory: f, Order: t.Order, Symbol: func(name string) (machine.Addr, bool) {
		at, ok := t.Symbol(name)
		if !ok && len(f.absent) < maxParts {
			f.absent = append(f.absent, name)
		}
		return at, ok
	}}, f
}

// ReadMemory implements [machine.Memory].
func (f *footprint) ReadMemory(p []byte, addr machine.Addr) error {
	if f.bytes += len(p); f.bytes > maxSeen || len(f.parts) >= maxParts {
		return fmt.Errorf("a function of the layout reads over %d KiB, or over %d times", maxSeen>>10, maxParts)
	}
	err := f.memory.ReadMemory(p, addr)
	f.parts = append(f.parts, Part{addr, bytes.Clone(p), err})
	return err
}

// end merges overlapping and adjacent parts, so that [footprint.holds] makes fewer reads.
func (f *footprint) end() {
	if f == nil {
		return
	}
	slices.SortStableFunc(f.parts, func(a, b Part) int { return cmp.Compare(a.At, b.At) })
	merged := f.parts[:0]
	for _, p := range f.parts {
		if n := len(merged); n > 0 && p.Lost == nil && merged[n-1].Lost == nil && p.At <= merged[n-1].end() {
			if last := &merged[n-1]; p.end() > last.end() {
				last.Data = append(last.Data, p.Data[last.end()-p.At:]...)
			}
			continue
		}
		merged = append(merged, p)
	}
	f.parts = merged
}

func (f *footprint) empty() bool { return f == nil || len(f.parts) == 0 && len(f.absent) == 0 }

func (f *footprint) holds(t *Target) bool {
	if f.empty() {
		return true
	}
	for _, name := range f.absent {
		if _, ok := t.Symbol(name); ok {
			return false
		}
	}
	var buf []byte
	for _, p := range f.parts {
		buf = slices.Grow(buf[:0], len(p.Data))[:len(p.Data)]
		if lost := t.Memory.ReadMemory(buf, p.At) != nil; lost != (p.Lost != nil) || !lost && !bytes.Equal(buf, p.Data) {
			return false
		}
	}
	return true
}

var (
	errNoMemory = errors.New("memory can be read only in frames, interpreter_frames, object, method_name, class_name and info")
	errNoTarget = errors.New("no target is running, so there is no memory to read")
)

// memoryOf returns the source that a function of a layout reads from.
func memoryOf(t *starlark.Thread) (*Source, error) {
	r := runOf(t)
	switch {
	case r == nil || r.source == nil && r.site == nil:
		return nil, errNoMemory
	case r.source == nil:
		return nil, errNoTarget
	}
	return r.source, nil
}

// bytesAt reads memory of a bounded size.
func (from *Source) bytesAt(at uint64, size int) ([]byte, error) {
	if size < 0 || size > maxPart {
		return nil, fmt.Errorf("%d bytes; the limit is %d", size, maxPart)
	}
	buf := make([]byte, size)
	if size == 0 {
		return buf, nil
	}
	return buf, from.Static.ReadMemory(buf, machine.Addr(at))
}

// numberOf converts the bits of a type to a number, which is signed for i8 to i64.
func numberOf(kind string, bits uint64) starlark.Value {
	if kind[0] == 'i' {
		return starlark.MakeInt64(Typed{Type: kind, Bits: bits}.signed())
	}
	return starlark.MakeUint64(bits)
}

// addReads adds the functions that read memory.
func addReads(add adder) {
	add("read", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var at uint64
		kind := "u64"
		if err := starlark.UnpackArgs("read", args, kwargs, "address", &at, "type?", &kind); err != nil {
			return nil, err
		}
		if err := known(kind); err != nil {
			return nil, err
		}
		from, err := memoryOf(t)
		if err != nil {
			return nil, err
		}
		bits, err := from.word(from.Static, at, kind)
		if err != nil {
			return nil, err
		}
		return numberOf(kind, bits), nil
	})
	add("read_string", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var at uint64
		length := -1
		if err := starlark.UnpackArgs("read_string", args, kwargs, "address", &at, "length?", &length); err != nil {
			return nil, err
		}
		from, err := memoryOf(t)
		if err != nil {
			return nil, err
		}
		if length > maxString {
			return nil, fmt.Errorf("a string of %d bytes; the limit is %d", length, maxString)
		}
		if length >= 0 {
			text, err := from.bytesAt(at, length)
			return starlark.String(text), err
		}
		text, err := from.stringAt(at)
		return starlark.String(text), err
	})
	add("address_of", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var name string
		var otherwise starlark.Value
		if err := starlark.UnpackArgs("address_of", args, kwargs, "symbol", &name, "default?", &otherwise); err != nil {
			return nil, err
		}
		r := runOf(t)
		switch {
		case r == nil || r.site == nil && (r.source == nil || r.source.symbol == nil):
			return nil, errors.New("can be called only in frames(site), interpreter_frames(native) and object(addr)")
		case r.source == nil:
			return nil, errNoTarget
		}
		at, ok, err := r.source.symbol(name)
		switch {
		case err != nil:
			return nil, err
		case ok:
			return starlark.MakeUint64(uint64(at)), nil
		}
		if otherwise != nil {
			return otherwise, nil
		}
		return nil, fmt.Errorf("the target has no symbol %s", name)
	})
}

// stringAt reads a text up to its NUL.
func (from *Source) stringAt(at uint64) (string, error) {
	var text []byte
	for len(text) < maxString {
		var part [32]byte
		n := len(part) - int((at+uint64(len(text)))%uint64(len(part))) // read up to a multiple of 32, which does not cross the end of a page
		if err := from.Static.ReadMemory(part[:n], machine.Addr(at)+machine.Addr(len(text))); err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part[:n], 0); end >= 0 {
			return string(append(text, part[:end]...)), nil
		}
		text = append(text, part[:n]...)
	}
	return "", fmt.Errorf("no string ends within %d bytes of %#x", maxString, at)
}
