package ptrace

import (
	"bytes"
	"cmp"
	"debug/elf"
	"math/bits"
	"slices"
	"strings"

	"reframe/deopt/machine"
)

// Notes of a core that elf(5) and linux/elf.h name and debug/elf does not.
const (
	ntAUXV = 6
	ntFile = 0x46494c45
)

// Sizes and offsets of what 64-bit Linux writes into notes: struct elf_prstatus and struct
// elf_prpsinfo of linux/elfcore.h.
const (
	statusPID       = 32
	statusRegisters = 112
	infoPID         = 24
	infoCommand     = 56
	infoSize        = 136
)

const (
	// Of the auxiliary vector (getauxval(3)): the size of a page, where the program starts,
	// and where the vdso lies.
	atPagesz      = 6
	atEntry       = 9
	atSysinfoEHDR = 33

	maxAUXV     = 1 << 16
	maxFileNote = 64 << 20 // the kernel writes 4 MiB at most
	maxThreads  = 1 << 20
)

// fileRow is a row of NT_FILE: a mapping of a file.
type fileRow struct {
	start, end machine.Addr
	off        uint64
	path       string
}

// readNotes reads who the process was and which files it had mapped.
func (c *core) readNotes() {
	whole := true
	budget := noteBudget(maxNotes)
	for _, p := range c.notes {
		whole = budget.each(c.file, c.size, c.header.order, p, c.readNote) && whole
	}
	if !whole {
		c.target.Notes = append(c.target.Notes, "the notes of the core are incomplete: threads and names of files may be missing")
	}
	t := c.target
	if t.PID == 0 && len(t.threads) > 0 {
		t.PID = t.threads[0].ID
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

func (c *core) readNote(n note) {
	c.readRegisters(n)
	if n.owner != coreOwner {
		return
	}
	switch order := c.header.order; n.kind {
	case elf.NT_PRPSINFO:
		if b, ok := n.read(infoSize, infoSize); ok {
			c.target.PID = int(int32(order.Uint32(b[infoPID:])))
			command, _, _ := bytes.Cut(b[infoCommand:], []byte{0})
			c.target.Command = strings.TrimSpace(string(command))
		}
	case ntAUXV:
		b, _ := n.read(0, maxAUXV)
		for ; len(b) >= 16; b = b[16:] {
			switch value := order.Uint64(b[8:]); order.Uint64(b) {
			case atEntry:
				c.entry = machine.Addr(value)
			case atSysinfoEHDR:
				c.vdso = machine.Addr(value)
			case atPagesz:
				if bits.OnesCount64(value) == 1 {
					c.page = value
				}
			}
		}
	case ntFile:
		if n.desc.Size() > maxFileNote || c.files != nil {
			return
		}
		if b, ok := n.read(16, maxFileNote); ok {
			c.readFiles(b)
		}
	}
}

// readFiles reads NT_FILE: a count, the unit of offsets (the kernel's is a page, gdb's a byte),
// that many rows of start, end and offset, and as many names.
func (c *core) readFiles(b []byte) {
	order := c.header.order
	count, unit := order.Uint64(b), order.Uint64(b[8:])
	b = b[16:]
	const row = 24
	if count > uint64(len(b))/row || count > maxMappings {
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
	// Of two rows for one address neither can be believed more: the first is.
	last := machine.Addr(0)
	c.files = slices.DeleteFunc(c.files, func(r fileRow) bool {
		if r.start < last {
			return true
		}
		last = r.end
		return false
	})
}
