package ptrace

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
)

// Types of notes that are defined in elf(5) and linux/elf.h, but not in debug/elf.
const (
	ntAUXV = 6
	ntFile = 0x46494c45
)

// Sizes and offsets in the notes of 64-bit Linux: struct elf_prstatus and struct elf_prpsinfo of linux/elfcore.h.
const (
	statusPID       = 32
	statusRegisters = 112
	infoPID         = 24
	infoName        = 40
	infoCommand     = 56
	infoSize        = 136
)

const (
	// Entries of the auxiliary vector (getauxval(3)): the size of a page, the program's entry point, the address of the vdso, and the size of a
	// signal's frame.
	atPagesz      = 6
	atEntry       = 9
	atSysinfoEHDR = 33
	atMinsigstksz = 51

	maxAUXV     = 1 << 16
	maxFileNote = 64 << 20 // the kernel writes at most 4 MiB
	maxThreads  = 1 << 20
)

// fileRow is a row of NT_FILE, which describes a mapping of a file.
type fileRow struct {
	start, end machine.Addr
	off        uint64
	path       string
}

// readNotes reads the identity of the process and the files that it had mapped.
func (c *core) readNotes() {
	whole := true
	budget := elfcore.MaxNotes
	for _, p := range c.notes {
		whole = budget.Each(c.file, c.size, c.target.arch.Order, p, c.readNote) && whole
	}
	if !whole {
		c.target.Notes = append(c.target.Notes, "the notes of the core are incomplete: threads and names of files may be missing")
	}
	c.readVectors()
	t := c.target
	if t.PID == 0 && len(t.threads) > 0 {
		t.PID = t.threads[0].ID
	}
	for i := range t.threads {
		t.threads[i].Name = c.names[t.threads[i].ID]
	}
	slices.SortStableFunc(t.threads, func(a, b machine.Thread) int {
		return cmp.Or(cmp.Compare(btoi(a.ID != t.PID), btoi(b.ID != t.PID)), cmp.Compare(a.ID, b.ID))
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *core) readNote(n elfcore.Note) {
	n, more := c.readDelve(n)
	if !more {
		return
	}
	c.readRegisters(n)
	switch n.Owner {
	case ownOwner:
		switch n.Kind {
		case ntNames:
			c.readNames(n)
		case ntMemory:
			c.readMemoryNote(n)
		case ntRedacted:
			c.readRedacted(n)
		case ntRegisters:
			c.readHeldRegisters(n)
		}
		return
	case elfcore.OwnerCore:
	default:
		return
	}
	switch order := c.target.arch.Order; n.Kind {
	case elf.NT_PRPSINFO:
		if b, ok := n.Read(infoSize, infoSize); ok {
			c.target.PID = int(int32(order.Uint32(b[infoPID:])))
			command, _, _ := bytes.Cut(b[infoCommand:], []byte{0})
			if c.delve { // the arguments are separated by zero bytes
				command = bytes.ReplaceAll(bytes.TrimRight(b[infoCommand:], "\x00"), []byte{0}, []byte{' '})
			}
			c.target.Command = strings.TrimSpace(string(command))
			// A thread's name ends with a zero byte (TASK_COMM_LEN); a file name that gdb truncates does not.
			name, _, _ := bytes.Cut(b[infoName:infoCommand-1], []byte{0})
			if c.names[c.target.PID] == "" {
				c.names[c.target.PID] = string(name)
			}
		}
	case ntAUXV:
		b, _ := n.Read(0, maxAUXV)
		c.readAuxv(b)
	case ntFile:
		if n.Desc.Size() > maxFileNote || c.files != nil {
			return
		}
		if b, ok := n.Read(16, maxFileNote); ok {
			c.readFiles(b)
		}
	}
}

// readAuxv reads the auxiliary vector (getauxval(3)).
func (c *core) readAuxv(b []byte) {
	c.auxv = b
	for order := c.target.arch.Order; len(b) >= 16; b = b[16:] {
		switch value := order.Uint64(b[8:]); order.Uint64(b) {
		case atEntry:
			c.entry = machine.Addr(value)
		case atSysinfoEHDR:
			c.vdso = machine.Addr(value)
		case atMinsigstksz:
			c.frame = value
		case atPagesz:
			if bits.OnesCount64(value) == 1 {
				c.page = value
			}
		}
	}
}

// maxNameNote bounds the size of the note with thread names. A name has at most 15 bytes (PR_SET_NAME of prctl(2)).
const maxNameNote = maxThreads * 24

// readNames reads the names of threads. Cores without this note contain only the name of the first thread (pr_fname); gdb writes the name of the
// program's file there.
func (c *core) readNames(n elfcore.Note) {
	b, _ := n.Read(0, maxNameNote)
	for order := c.target.arch.Order; len(b) >= 8; {
		tid, size := int(int32(order.Uint32(b))), order.Uint32(b[4:])
		if b = b[8:]; uint64(size) > uint64(len(b)) {
			return
		}
		c.names[tid] = string(b[:size])
		b = b[size:]
	}
}

// maxRecordedRanges bounds the number of ranges in the note about the core's memory.
const maxRecordedRanges = 1 << 20

// readMemoryNote reads the extent of memory that `reframe record` kept.
func (c *core) readMemoryNote(n elfcore.Note) {
	corrupt := func() { // it is then unknown whether bytes that the core omits equal those of the file
		c.target.Notes = append(c.target.Notes, "its list of memory that was written over files is corrupt")
		c.kept, c.written = "", []addrRange{{0, math.MaxUint64}}
	}
	b, ok := n.Read(8, 8+16*maxRecordedRanges)
	if !ok || n.Desc.Size() > int64(len(b)) {
		corrupt()
		return
	}
	order := c.target.arch.Order
	for mode, number := range recordedModes {
		if order.Uint64(b) == number {
			c.kept = mode
		}
	}
	for b = b[8:]; len(b) >= 16; b = b[16:] {
		r := addrRange{machine.Addr(order.Uint64(b)), machine.Addr(order.Uint64(b[8:]))}
		if n := len(c.written); r.start >= r.end || n > 0 && r.start < c.written[n-1].end {
			corrupt()
			return
		}
		c.written = append(c.written, r)
	}
}

// readRedacted reads the ranges of memory that `reframe record` omitted at the user's request.
func (c *core) readRedacted(n elfcore.Note) {
	b, ok := n.Read(16, 16*maxRecordedRanges)
	ok = ok && n.Desc.Size() == int64(len(b)) && len(b)%16 == 0
	for order := c.target.arch.Order; ok && len(b) > 0; b = b[16:] {
		r := addrRange{machine.Addr(order.Uint64(b)), machine.Addr(order.Uint64(b[8:]))}
		if last := len(c.redacted) - 1; r.start >= r.end || last >= 0 && r.start < c.redacted[last].end {
			ok = false
			break
		}
		c.redacted = append(c.redacted, r)
	}
	if !ok {
		c.target.Notes = append(c.target.Notes, "its list of redacted memory is corrupt: the reason why memory is not in the core may be wrong")
		return
	}
	size := uint64(0)
	for _, r := range c.redacted {
		size += uint64(r.end - r.start)
	}
	c.target.Notes = append(c.target.Notes, fmt.Sprintf("%d bytes of memory were redacted (record --redact): values in them are unavailable", size))
}

// addrRange is the memory in [start, end).
type addrRange struct{ start, end machine.Addr }

// readFiles reads NT_FILE: a count n, the unit of offsets (a page for the kernel, a byte for gdb), n rows of start, end and offset, and n names.
func (c *core) readFiles(b []byte) {
	order := c.target.arch.Order
	count, unit := order.Uint64(b), order.Uint64(b[8:])
	b = b[16:]
	const row = 24
	if count > uint64(len(b))/row || count > system.MaxMappings {
		c.target.Notes = append(c.target.Notes, "its list of mapped files (NT_FILE) is corrupt: it claims more files than it has room for")
		return
	}
	names := b[count*row:]
	for i := range count {
		name, rest, ended := bytes.Cut(names, []byte{0})
		if !ended {
			c.target.Notes = append(c.target.Notes, "its list of mapped files (NT_FILE) is corrupt: a name does not end")
			break
		}
		names = rest
		r := fileRow{machine.Addr(order.Uint64(b[i*row:])), machine.Addr(order.Uint64(b[i*row+8:])), order.Uint64(b[i*row+16:]), string(name)}
		off := r.off * unit
		if r.start >= r.end || unit == 0 || off/unit != r.off || off+uint64(r.end-r.start) < off {
			continue
		}
		r.off = off
		c.files = append(c.files, r)
	}
	slices.SortStableFunc(c.files, func(a, b fileRow) int { return cmp.Compare(a.start, b.start) })
	// If two rows contain the same address, keep the first, because neither is more credible.
	last := machine.Addr(0)
	c.files = slices.DeleteFunc(c.files, func(r fileRow) bool {
		if r.start < last {
			return true
		}
		last = r.end
		return false
	})
}
