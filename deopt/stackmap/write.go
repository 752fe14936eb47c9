package stackmap

import (
	"encoding/binary"
	"fmt"
	"math"

	"example.com/reframe/internal/machine"
)

// Blob is the decoded form of a [Map].
type Blob struct {
	Version   int // version in the header; each layout permits only some
	Dialect   Dialect
	Functions []BlobFunction
	Constants []uint64
	// Unattributed holds the records without a known function, in a map of layout V1 with several functions. They are written after the records of
	// Functions.
	Unattributed []Record
}

// BlobFunction is a function of a Blob.
type BlobFunction struct {
	Addr      machine.Addr
	StackSize uint64
	Records   []Record
	Prologue  *Prologue // set in layout Yk only
}

// Blob decodes all of m.
func (m *Map) Blob() *Blob {
	b := &Blob{Version: m.Version, Dialect: m.Dialect}
	for i := range m.Functions {
		f := &m.Functions[i]
		out := BlobFunction{Addr: f.Addr, StackSize: f.StackSize, Records: m.plain(f)}
		if p, ok := m.Prologue(i); ok {
			out.Prologue = &p
		}
		b.Functions = append(b.Functions, out)
	}
	for i := range m.constants {
		b.Constants = append(b.Constants, m.ConstantAt(i))
	}
	b.Unattributed = m.plain(nil)
	return b
}

func (m *Map) plain(f *Function) []Record {
	var list []Record
	for r := range m.Records(f) {
		list = append(list, *r.Clone())
	}
	return list
}

// AppendBlob encodes blob in its Dialect and appends it to b, after zeros that align it to 8 bytes. It returns an error, and b unchanged, if a value
// does not fit the layout or if [Parse] would reject the result.
func AppendBlob(b []byte, order binary.AppendByteOrder, blob *Blob) ([]byte, error) {
	l, err := blob.Dialect.find()
	if err != nil {
		return b, err
	}
	if !l.has(blob.Version) {
		return b, fmt.Errorf("layout %s has no version %d", l.dialect, blob.Version)
	}
	records, err := blob.check(l)
	if err != nil {
		return b, err
	}
	w := &writer{order: order, layout: l, b: b}
	w.pad()
	w.start = len(w.b)
	w.b = append(w.b, byte(blob.Version), 0, 0, 0)
	w.u32(uint32(len(blob.Functions)))
	w.u32(uint32(len(blob.Constants)))
	w.u32(uint32(records))
	for _, f := range blob.Functions {
		w.u64(uint64(f.Addr))
		w.u64(f.StackSize)
		if l.counted {
			w.u64(uint64(len(f.Records)))
		}
	}
	for _, c := range blob.Constants {
		w.u64(c)
	}
	for _, f := range blob.Functions {
		w.records(f.Records)
	}
	w.records(blob.Unattributed)
	if l.extended {
		for _, f := range blob.Functions {
			w.prologue(f.Prologue)
		}
	}
	return w.b, nil
}

// check returns the number of records of the blob, or an error if something does not fit layout l.
func (blob *Blob) check(l *layout) (records int, err error) {
	records = len(blob.Unattributed)
	if records > 0 && (l.counted || len(blob.Functions) == 1) {
		return 0, fmt.Errorf("%d unattributed records; a map of layout %s with %d functions cannot have any",
			records, l.dialect, len(blob.Functions))
	}
	for i := range blob.Functions {
		f := &blob.Functions[i]
		records += len(f.Records)
		if l.extended != (f.Prologue != nil) {
			if l.extended {
				return 0, fmt.Errorf("function %d: layout %s requires a prologue", i, l.dialect)
			}
			return 0, fmt.Errorf("function %d: layout %s has no prologues", i, l.dialect)
		}
		if err := checkAll(l, f.Records); err != nil {
			return 0, fmt.Errorf("function %d: %w", i, err)
		}
	}
	for _, n := range []int{len(blob.Functions), len(blob.Constants), records} {
		if uint64(n) > math.MaxUint32 {
			return 0, fmt.Errorf("%d functions, constants or records do not fit into a count of 32 bits", n)
		}
	}
	return records, checkAll(l, blob.Unattributed)
}

func checkAll(l *layout, records []Record) error {
	for i := range records {
		if err := records[i].check(l); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	return nil
}

// check returns an error if r does not fit layout l.
func (r *Record) check(l *layout) error {
	counted, what := len(r.Locations), "locations"
	if l.variables {
		sum := 0
		for _, n := range r.Vars {
			if n < 0 || n > math.MaxUint8 {
				return fmt.Errorf("%d locations of a live variable do not fit into a count of 8 bits", n)
			}
			sum += n
		}
		if sum != len(r.Locations) {
			return fmt.Errorf("the live variables have %d locations, and the record has %d", sum, len(r.Locations))
		}
		counted, what = len(r.Vars), "live variables"
	} else if r.Vars != nil {
		return fmt.Errorf("layout %s has no live variables", l.dialect)
	}
	if counted > math.MaxUint16 {
		return fmt.Errorf("%d %s do not fit into a count of 16 bits", counted, what)
	}
	if len(r.LiveOuts) > math.MaxUint16 {
		return fmt.Errorf("%d live-outs do not fit into a count of 16 bits", len(r.LiveOuts))
	}
	if r.Extra != nil && (!l.extended || len(r.Extra) != len(r.Locations)) {
		return fmt.Errorf("extra locations are given for %d of %d locations in layout %s", len(r.Extra), len(r.Locations), l.dialect)
	}
	for _, extra := range r.Extra {
		if len(extra) > math.MaxUint16 {
			return fmt.Errorf("%d extra locations do not fit into a count of 16 bits", len(extra))
		}
	}
	for i, at := range r.Locations {
		if at.Kind < Register || at.Kind > ConstantIndex {
			return fmt.Errorf("location %d has the unknown %v", i, at.Kind)
		}
		if l.locationSize == 8 && at.Size > math.MaxUint8 {
			return fmt.Errorf("location %d: a size of %d bytes does not fit into 8 bits", i, at.Size)
		}
	}
	return nil
}

// writer encodes a blob that check accepted.
type writer struct {
	order  binary.AppendByteOrder
	layout *layout
	b      []byte
	start  int // start of the blob in b
}

func (w *writer) u16(v uint16) { w.b = w.order.AppendUint16(w.b, v) }
func (w *writer) u32(v uint32) { w.b = w.order.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64) { w.b = w.order.AppendUint64(w.b, v) }

// pad appends zeros up to the alignment.
func (w *writer) pad() {
	w.b = append(w.b, make([]byte, align(len(w.b)-w.start)-(len(w.b)-w.start))...)
}

func (w *writer) records(list []Record) {
	for i := range list {
		r := &list[i]
		w.u64(uint64(r.ID))
		w.u32(r.Offset)
		w.u16(r.Flags)
		if w.layout.variables {
			w.variables(r)
		} else {
			w.u16(uint16(len(r.Locations)))
			for _, at := range r.Locations {
				w.location(at, nil)
			}
		}
		w.pad()
		w.u16(0)
		w.u16(uint16(len(r.LiveOuts)))
		for _, out := range r.LiveOuts {
			w.u16(uint16(out.Reg))
			w.b = append(w.b, 0, out.Size)
		}
		w.pad()
	}
}

func (w *writer) variables(r *Record) {
	w.u16(uint16(len(r.Vars)))
	next := 0
	for _, n := range r.Vars {
		w.b = append(w.b, byte(n))
		for range n {
			var extra []int16
			if r.Extra != nil {
				extra = r.Extra[next]
			}
			w.location(r.Locations[next], extra)
			next++
		}
	}
}

func (w *writer) location(at Location, extra []int16) {
	if w.layout.locationSize == 8 {
		w.b = append(w.b, byte(at.Kind), byte(at.Size))
		w.u16(uint16(at.Reg))
	} else {
		w.b = append(w.b, byte(at.Kind), 0)
		w.u16(at.Size)
		w.u16(uint16(at.Reg))
		w.u16(0)
	}
	if w.layout.extended {
		w.u16(uint16(len(extra)))
		for _, v := range extra {
			w.u16(uint16(v))
		}
	}
	w.u32(uint32(at.Offset))
}

func (w *writer) prologue(p *Prologue) {
	keeps := byte(0)
	if p.HasFramePointer {
		keeps = 1
	}
	w.b = append(w.b, keeps, 0)
	w.u32(uint32(len(p.Saved)))
	for _, s := range p.Saved {
		w.u16(uint16(s.Reg))
		w.u16(0)
		w.u32(uint32(s.Offset))
	}
}
