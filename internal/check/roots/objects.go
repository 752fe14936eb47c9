package roots

import (
	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/vmlayout"
)

// Objects finds the objects of a target's heap by a layout's function object(addr).
type Objects struct {
	layout *vmlayout.Layout
	source *vmlayout.Source
	memory *pages
	failed int
	first  error // the first failure
	names  map[vmlayout.Class]string
}

// maxFailures bounds the failures of object(addr) after which it is no longer called: each of them may take all its steps.
const maxFailures = 100

// NewObjects returns the objects of a view's target; nil if no layout of the view defines object(addr).
func NewObjects(v *deopt.View) *Objects {
	l := vmlayout.DescribesObjects(v.VMs())
	if l == nil {
		return nil
	}
	m := &pages{from: v.Target()}
	return &Objects{layout: l, source: vmlayout.ObjectSource(vmlayout.OfTarget(v.Target(), nil), m), memory: m, names: map[vmlayout.Class]string{}}
}

// Object is an object of the heap.
type Object struct {
	Start frame.Hex `json:"start"`
	Size  uint64    `json:"size"`
	Class string    `json:"class,omitempty"`
}

// describe returns the start, the size and the name of the class of an object.
func (o *Objects) describe(is *vmlayout.HeapObject) *Object {
	return &Object{frame.HexOf(is.Start), is.Size, o.className(is.Class)}
}

func (o *Objects) className(c vmlayout.Class) string {
	name, known := o.names[c]
	if !known {
		name = o.layout.ClassName(o.source, c)
		if len(o.names) < maxClasses {
			o.names[c] = name
		}
	}
	return name
}

// maxClasses bounds the number of class names that are cached.
const maxClasses = 1 << 16

// at returns the object that contains an address, and the kind of memory there. If object(addr) fails because memory is unreadable, there is no
// object.
func (o *Objects) at(addr uint64) (*vmlayout.HeapObject, Found) {
	if o.failed >= maxFailures {
		return nil, Unchecked
	}
	o.memory.unread = false
	is, err := o.layout.Object(o.source, addr)
	switch {
	case err != nil && o.memory.unread:
		return nil, NoObject
	case err != nil:
		if o.failed++; o.first == nil {
			o.first = err
		}
		return nil, Unchecked
	case is == nil:
		return nil, NoObject
	case is.State == vmlayout.FreedObject:
		return is, InFreed
	case is.State == vmlayout.LeftObject:
		return is, InFromSpace
	case is.Start != addr:
		return is, InObject
	}
	return is, IsObject
}

// Failure counts the failures of object(addr).
type Failure struct {
	Count int    `json:"count"`
	First string `json:"first"`           // the first failure
	Ended bool   `json:"ended,omitempty"` // object(addr) is no longer called after maxFailures
}

// failure returns the count of the failures, or nil if there are none.
func (o *Objects) failure() *Failure {
	if o == nil || o.failed == 0 {
		return nil
	}
	return &Failure{o.failed, o.first.Error(), o.failed >= maxFailures}
}

// pages is memory with a cache of the pages that were read last. The memory must not change while the cache is used.
type pages struct {
	from   machine.Memory
	slots  [cachedPages]*page
	unread bool // a read has failed since the field was reset
}

type page struct {
	at   machine.Addr
	data [pageSize]byte
}

// The target rereads its mappings when a whole page of 4 KiB is read, so these are smaller.
const (
	pageSize    = 2 << 10
	cachedPages = 16 << 10 // 32 MiB
)

// ReadMemory implements [machine.Memory].
func (m *pages) ReadMemory(p []byte, addr machine.Addr) error {
	for len(p) > 0 {
		within := int(addr % pageSize)
		part := p[:min(len(p), pageSize-within)]
		if is := m.page(addr - machine.Addr(within)); is != nil {
			copy(part, is.data[within:])
		} else if err := m.from.ReadMemory(part, addr); err != nil {
			m.unread = true
			return err
		}
		p, addr = p[len(part):], addr+machine.Addr(len(part))
	}
	return nil
}

// page returns a page; nil if it cannot be read as a whole.
func (m *pages) page(at machine.Addr) *page {
	slot := &m.slots[at/pageSize%cachedPages]
	if *slot == nil {
		*slot = &page{at: ^machine.Addr(0)}
	}
	is := *slot
	if is.at == at {
		return is
	}
	is.at = ^machine.Addr(0)
	if m.from.ReadMemory(is.data[:], at) != nil {
		return nil
	}
	is.at = at
	return is
}
