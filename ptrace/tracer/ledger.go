//go:build linux

package tracer

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// ledger lists the code under the breakpoints in memory, in a memfd of the tracer. If the tracer is killed, the watchdog reads the ledger and
// restores the code. An entry is written before its breakpoint.
type ledger struct {
	fd    int // -1 if it could not be created; there is then no watchdog either
	slots map[uint64]int
	free  []int
	size  int // number of slots in the file
	table table
}

// The file has a head and slots. The head holds the file descriptor of the target's memory, and the address of the table in the target's SIGTRAP
// handler. A slot holds an address, the code under the breakpoint there, and whether the slot is in use.
const (
	ledgerName = "rf-breakpoints"
	ledgerBase = 8 // offset in the head
)

func newLedger() *ledger {
	fd, err := unix.MemfdCreate(ledgerName, unix.MFD_CLOEXEC)
	if err != nil {
		fd = -1
	}
	return &ledger{fd: fd, slots: map[uint64]int{}}
}

// memory records the file descriptor of the target's memory.
func (l *ledger) memory(fd int) {
	if l == nil || l.fd < 0 {
		return
	}
	var head [slotSize]byte
	binary.LittleEndian.PutUint32(head[:], uint32(fd))
	_, _ = unix.Pwrite(l.fd, head[:ledgerBase], 0) // if this fails, the watchdog restores nothing
}

// table is the table that the SIGTRAP handler in the target reads. It has a copy of the slots.
type table struct {
	memory memory
	at     uint64 // 0 if there is no table
	size   int    // number of slots that the table announces
}

// mirror copies the slots into the table of the handler at base, now and at each later change. If base is 0, copying ends.
func (l *ledger) mirror(m memory, base uint64) {
	l.table = table{memory: m}
	if base != 0 {
		l.table.at = base + trapTable
		l.table.announce(0)
		for _, slot := range l.slots {
			var b [slotSize]byte
			if _, err := unix.Pread(l.fd, b[:], int64(slot)*slotSize); err == nil {
				l.table.set(slot, b[:])
			}
		}
	}
	_, _ = unix.Pwrite(l.fd, binary.LittleEndian.AppendUint64(nil, l.table.at), ledgerBase)
}

// announced is the step by which the announced number of slots grows.
const announced = 64

// announce writes the number of slots into the table.
func (t *table) announce(slots int) {
	if t.size = min(slots, trapSlots); t.at != 0 {
		_, _ = t.memory.write(binary.LittleEndian.AppendUint32(nil, uint32(t.size)), t.at) // if this fails, the handler does not see the new slots
	}
}

// set writes a slot.
func (t *table) set(slot int, b []byte) {
	if t.at == 0 || slot > trapSlots {
		return
	}
	_, _ = t.memory.write(b, t.at+uint64(slot)*slotSize)
	if slot > t.size {
		t.announce((slot + announced - 1) / announced * announced)
	}
}

// set records the code under a breakpoint.
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
	b[slotUsed] = planted
	_, _ = unix.Pwrite(l.fd, b[:], int64(slot)*slotSize)
	l.table.set(slot, b[:])
}

// drop records that a breakpoint has been removed.
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
	l.table.set(slot, none[:])
}

// clear records that the target's memory no longer exists.
func (l *ledger) clear() {
	if l == nil || l.fd < 0 {
		return
	}
	_ = unix.Ftruncate(l.fd, 0)
	l.slots, l.free, l.size, l.table = map[uint64]int{}, nil, 0, table{}
}

// restoreBy restores the code that a ledger lists. file is the file descriptor of the target's memory.
func restoreBy(ledger, file int) {
	var slots [256 * slotSize]byte
	at8 := make([]byte, 8)
	_, _ = unix.Pread(ledger, at8, ledgerBase) // in the head
	there, target := binary.LittleEndian.Uint64(at8), memory{file: file}
	for at := int64(slotSize); ; at += int64(len(slots)) {
		n, err := unix.Pread(ledger, slots[:], at)
		if err != nil || n < slotSize {
			return
		}
		for i := 0; i+slotSize <= n; i += slotSize {
			b := slots[i : i+slotSize]
			var code Code
			copy(code[:], b[slotCode:])
			if b[slotUsed] != planted {
				continue
			}
			if exchange(target, binary.LittleEndian.Uint64(b), Trap, code) && there != 0 {
				_, _ = target.write([]byte{restored}, there+uint64(at)+uint64(i)+slotUsed)
			}
		}
	}
}

// memoryIn returns the target's memory file descriptor from the head of a ledger.
func memoryIn(ledger int) (fd int, ok bool) {
	var head [slotSize]byte
	n, err := unix.Pread(ledger, head[:], 0)
	return int(int32(binary.LittleEndian.Uint32(head[:]))), err == nil && n == len(head)
}
