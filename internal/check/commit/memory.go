package commit

import (
	"bytes"
	"iter"
	"sort"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
)

// memoryChange is a range of bytes that a commit writes.
type memoryChange struct {
	addr     machine.Addr
	old, new []byte
}

func (c *memoryChange) end() machine.Addr { return c.addr + machine.Addr(len(c.new)) }

// changed lists in ascending order the bytes in which the interpreter's stores differ from the current memory of the process. It skips dead ranges,
// whose content is meaningless. Unknown bits may have any value, so they keep their value in the process. It returns an error if a byte with unknown
// bits has known ones that must change, or if the process cannot store to a byte.
func changed(pages iter.Seq[interp.Touched], now machine.Memory, maps []machine.Mapping, dead []machine.Range) ([]memoryChange, error) {
	c := &changeList{dead: dead}
	var old [interp.PageSize]byte
	for p := range pages {
		have := old[:len(p.Data)]
		if err := now.ReadMemory(have, p.Addr); err != nil {
			return nil, frame.Errorf("the page at %v, to which the interpreter stored, cannot be read: %w", p.Addr, err)
		}
		at := sort.Search(len(maps), func(i int) bool { return maps[i].End > p.Addr })
		writable, shared := false, false
		if at < len(maps) && maps[at].Contains(p.Addr) {
			writable, shared = maps[at].Write, maps[at].Share
		}
		if err := c.page(p, have, writable, shared); err != nil {
			return nil, err
		}
	}
	return c.list, nil
}

// changeList collects memory changes.
type changeList struct {
	dead []machine.Range
	list []memoryChange
}

// maxBridged is the number of unchanged bytes that a change may include: writing many changes of one byte takes longer.
const maxBridged = 7

func (c *changeList) page(p interp.Touched, have []byte, writable, shared bool) error {
	if bytes.Equal(p.Data, have) {
		return nil
	}
	for i, want := range p.Data {
		addr := p.Addr + machine.Addr(i)
		if stored := p.Stored[i/8]>>(i%8)&1 != 0; !stored || (want^have[i])&^p.Undefined[i] == 0 || c.isDead(addr) {
			continue
		}
		switch {
		case !writable:
			return frame.Errorf("the interpreter stored to %v, which is not writable", addr)
		case p.Undefined[i] != 0:
			return frame.Errorf("the interpreter would write an undefined byte at %v", addr)
		}
		last := c.extend(have[:i], addr, shared)
		last.old, last.new = append(last.old, have[i]), append(last.new, want)
	}
	return nil
}

// extend returns the change to which a byte at addr belongs: the last one, including the unchanged bytes before addr, or a new one. Changes in shared
// memory include no unchanged bytes, because other processes may store to them.
func (c *changeList) extend(before []byte, addr machine.Addr, shared bool) *memoryChange {
	if n := len(c.list); n > 0 {
		last := &c.list[n-1]
		if gap := addr - last.end(); gap == 0 || !shared && gap <= min(maxBridged, machine.Addr(len(before))) {
			same := before[len(before)-int(gap):]
			last.old, last.new = append(last.old, same...), append(last.new, same...)
			return last
		}
	}
	c.list = append(c.list, memoryChange{addr: addr})
	return &c.list[len(c.list)-1]
}

func (c *changeList) isDead(addr machine.Addr) bool {
	for _, r := range c.dead {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}

// differing returns the first address at which two lists of changes to the same memory differ.
func differing(a, b []memoryChange) (at machine.Addr, differ bool) {
	for i := range min(len(a), len(b)) {
		x, y := &a[i], &b[i]
		if x.addr != y.addr {
			return min(x.addr, y.addr), true
		}
		for k := range min(len(x.new), len(y.new)) {
			if x.new[k] != y.new[k] {
				return x.addr + machine.Addr(k), true
			}
		}
		if len(x.new) != len(y.new) {
			return min(x.end(), y.end()), true
		}
	}
	switch {
	case len(a) > len(b):
		return a[len(b)].addr, true
	case len(b) > len(a):
		return b[len(a)].addr, true
	}
	return 0, false
}
