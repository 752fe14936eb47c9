//go:build linux

package tracer

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// ledger lists what lies under the breakpoints in memory, in a file of the tracer's memory. If the tracer is killed, the watchdog reads it and
// restores the code. An entry is written before its breakpoint is.
type ledger struct {
	fd    int // -1 where there is none: then there is no watchdog either
	slots map[uint64]int
	free  []int
	size  int // slots in the file
}

// The file has a head, the number of the file descriptor that holds the target's memory, and slots: an address, the code that lies there, and
// whether the slot is in use.
const (
	ledgerName = "rf-breakpoints"
	slotSize   = 16
	slotCode   = 8
	slotUsed   = 12
)

func newLedger() *ledger {
	fd, err := unix.MemfdCreate(ledgerName, unix.MFD_CLOEXEC)
	if err != nil {
		fd = -1
	}
	return &ledger{fd: fd, slots: map[uint64]int{}}
}

// memory notes the file descriptor of the target's memory.
func (l *ledger) memory(fd int) {
	if l == nil || l.fd < 0 {
		return
	}
	var head [slotSize]byte
	binary.LittleEndian.PutUint32(head[:], uint32(fd))
	_, _ = unix.Pwrite(l.fd, head[:], 0) // without it nothing is restored
}

// set notes what lies under a breakpoint.
func (l *ledger) set(addr uint64, code Code) {
	if l == nil || l.fd < 0 {
		return
	}
	slot, known := l.slots[addr]
	switch n := len(l.free); {
	case known:
	case n > 0:
		slot, l.free = l.free[n-1], l.free[:n-1]
	default:
		l.size++
		slot = l.size
	}
	l.slots[addr] = slot
	var b [slotSize]byte
	binary.LittleEndian.PutUint64(b[:], addr)
	copy(b[slotCode:], code[:])
	b[slotUsed] = 1
	_, _ = unix.Pwrite(l.fd, b[:], int64(slot)*slotSize)
}

// drop notes that a breakpoint is gone.
func (l *ledger) drop(addr uint64) {
	if l == nil || l.fd < 0 {
		return
	}
	slot, known := l.slots[addr]
	if !known {
		return
	}
	delete(l.slots, addr)
	l.free = append(l.free, slot)
	var none [slotSize]byte
	_, _ = unix.Pwrite(l.fd, none[:], int64(slot)*slotSize)
}

// clear notes that the target's memory is gone.
func (l *ledger) clear() {
	if l == nil || l.fd < 0 {
		return
	}
	_ = unix.Ftruncate(l.fd, 0)
	l.slots, l.free, l.size = map[uint64]int{}, nil, 0
}

// restoreBy puts back what a ledger lists, and file is the target's memory.
func restoreBy(ledger, file int) {
	var slots [256 * slotSize]byte
	for at := int64(slotSize); ; at += int64(len(slots)) {
		n, err := unix.Pread(ledger, slots[:], at)
		if err != nil || n < slotSize {
			return
		}
		for b := slots[:n]; len(b) >= slotSize; b = b[slotSize:] {
			var code Code
			copy(code[:], b[slotCode:])
			if b[slotUsed] == 1 {
				exchange(memory{file: file}, binary.LittleEndian.Uint64(b), Trap, code)
			}
		}
	}
}

// memoryIn returns the file descriptor that the head of a ledger names.
func memoryIn(ledger int) (fd int, ok bool) {
	var head [slotSize]byte
	n, err := unix.Pread(ledger, head[:], 0)
	return int(int32(binary.LittleEndian.Uint32(head[:]))), err == nil && n == len(head)
}
