package ptrace

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/regset"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/xsave"
)

// coreAbout holds the data about the process in the notes of a core.
type coreAbout struct {
	pid, parent, group, session int
	uid, gid                    uint32
	state                       byte // a letter of proc_pid_stat(5)
	nice                        int
	flags                       uint64
	name, command               string
	auxv                        []byte
	environment                 addrRange // block with the initial environment variables; empty if unknown
	arguments                   addrRange // block with the arguments; empty if unknown
}

// readAbout reads the data from proc(5).
func readAbout(pid int) (*coreAbout, error) {
	a := &coreAbout{pid: pid, name: system.ThreadName(pid, pid), command: system.CommandLine(pid)}
	fields, err := system.StatFields(pid)
	if err != nil {
		return nil, err
	}
	if len(fields) < 17 {
		return nil, errors.New("its /proc/PID/stat has too few fields")
	}
	number := func(field int) int {
		n, _ := strconv.ParseInt(fields[field], 10, 64) // the kernel writes valid numbers
		return int(n)
	}
	a.state, a.parent, a.group, a.session, a.flags, a.nice = fields[0][0], number(1), number(2), number(3), uint64(number(6)), number(16)
	if len(fields) > 48 { // arg_start, arg_end, env_start and env_end of proc_pid_stat(5), which are 0 without permission
		a.environment = addrRange{machine.Addr(number(47)), machine.Addr(number(48))}
		a.arguments = addrRange{machine.Addr(number(45)), machine.Addr(number(46))}
	}
	for field, to := range map[string]*uint32{"Uid": &a.uid, "Gid": &a.gid} {
		if _, err := fmt.Sscan(system.StatusField(pid, field), to); err != nil {
			return nil, ErrProcessExited
		}
	}
	var from, to machine.Addr
	if len(fields) > 45 { // startstack and arg_start
		from, to = machine.Addr(number(25)), machine.Addr(number(45))
	}
	a.auxv, err = auxiliaryVector(pid, from, to)
	return a, err
}

// notes returns the notes in the kernel's order: the first thread's general registers, the notes of the process, the other registers of the first
// thread, and the registers of the other threads.
func (m *coreMoment) notes() []byte {
	if m.from != nil {
		n := elfcore.NoteList{Order: m.from.order, Bytes: m.from.notes}
		m.addMemoryNotes(&n)
		return n.Bytes
	}
	n := elfcore.NoteList{Order: binary.LittleEndian}
	vectors, layout := m.standardVectors()
	for i := range m.threads {
		t := &m.threads[i]
		n.Add(elfcore.OwnerCore, elf.NT_PRSTATUS, m.status(t))
		if i == 0 {
			n.Add(elfcore.OwnerCore, elf.NT_PRPSINFO, m.about.info(n.Order))
			n.Add(elfcore.OwnerCore, ntAUXV, m.about.auxv)
			n.Add(elfcore.OwnerCore, ntFile, m.fileNote())
		}
		if b := t.raw.set(regset.X86XState); len(b) >= xsave.Legacy {
			n.Add(elfcore.OwnerCore, elf.NT_FPREGSET, b[:xsave.Legacy]) // an XSAVE area begins with the FXSAVE area
		}
		for j, set := range regset.Sets[m.arch] {
			b := t.raw.sets[j]
			if set.Kind == regset.X86XState {
				b = vectors[i]
			}
			if j > 0 && len(b) > 0 {
				n.Add(set.Owner, set.Kind, b)
			}
		}
	}
	if b := layout.Note(); len(b) > 0 {
		n.Add(elfcore.OwnerLinux, regset.X86Layout, b)
	}
	n.Add(ownOwner, ntNames, m.namesNote())
	m.addMemoryNotes(&n)
	return n.Bytes
}

// addMemoryNotes adds the notes about the memory of the core.
func (m *coreMoment) addMemoryNotes(n *elfcore.NoteList) {
	n.Add(ownOwner, ntMemory, m.memoryNote())
	if len(m.redacted) > 0 {
		n.Add(ownOwner, ntRedacted, m.redactedNote())
	}
}

// standardVectors returns the XSAVE areas of all threads in the layout that debuggers read, and the offsets of registers in them.
func (m *coreMoment) standardVectors() ([][]byte, xsave.Layout) {
	areas := make([][]byte, len(m.threads))
	for i := range m.threads {
		areas[i] = m.threads[i].raw.set(regset.X86XState)
	}
	return m.vectors.Standard(areas)
}

// Types of reframe's own notes, for data that no other note contains. Other tools do not use these numbers, because not all readers check the owner.
const (
	ownOwner = "REFRAME"
	// ntNames holds, for each thread, its number and the length of its name as two 32-bit words, and the name.
	ntNames = 0x52460001
	// ntMemory holds 64-bit words. The first is a number of recordedModes, which gives the extent of the core's memory. It is followed by the start
	// and the end of each range in a file's mapping that differs from the file but is not in the core.
	ntMemory = 0x52460002
	// ntRedacted holds 64-bit words: the start and the end of each range that was omitted at the user's request, in order of address. The note is
	// absent if no range was omitted.
	ntRedacted = 0x52460003
)

// recordedModes holds the numbers for the extent of memory in ntMemory.
var recordedModes = map[CoreMemory]uint64{Minimal: 1, Writable: 2, All: 3}

func (m *coreMoment) namesNote() (b []byte) {
	for _, t := range m.names {
		b, _ = binary.Append(b, m.order(), [2]uint32{uint32(t.tid), uint32(len(t.name))}) // fails only for types without a fixed size
		b = append(b, t.name...)
	}
	return b
}

func (m *coreMoment) memoryNote() []byte {
	list := []uint64{recordedModes[m.mode]}
	if m.mode == Minimal {
		for _, p := range m.ownLeftOut() {
			list = append(list, uint64(p.start), uint64(p.end))
		}
	}
	b, _ := binary.Append(nil, m.order(), list) // fails only for types without a fixed size
	return b
}

// redactedNote returns the content of ntRedacted.
func (m *coreMoment) redactedNote() (b []byte) {
	for _, r := range m.redacted {
		b, _ = binary.Append(b, m.order(), []uint64{uint64(r.start), uint64(r.end)}) // fails only for types without a fixed size
	}
	return b
}

// status returns a struct elf_prstatus of linux/elfcore.h. Its signal is 0, because no signal has stopped the thread.
func (m *coreMoment) status(t *coreThread) []byte {
	general := t.raw.sets[0]
	b := make([]byte, statusRegisters+len(general)+8)
	for i, v := range []int{t.tid, m.about.parent, m.about.group, m.about.session} {
		binary.LittleEndian.PutUint32(b[statusPID+4*i:], uint32(v))
	}
	copy(b[statusRegisters:], general)
	if len(t.raw.sets[1]) > 0 {
		b[len(b)-8] = 1 // pr_fpvalid
	}
	return b
}

// info returns a struct elf_prpsinfo of linux/elfcore.h.
func (a *coreAbout) info(order binary.ByteOrder) []byte {
	const states = "RSDTZW" // pr_state is an index into this string
	b := make([]byte, infoSize)
	b[0], b[1], b[2], b[3] = byte(max(strings.IndexByte(states, a.state), 0)), a.state, byte(btoi(a.state == 'Z')), byte(a.nice)
	order.PutUint64(b[8:], a.flags)
	for i, v := range []uint32{a.uid, a.gid, uint32(a.pid), uint32(a.parent), uint32(a.group), uint32(a.session)} {
		order.PutUint32(b[16+4*i:], v)
	}
	copy(b[infoCommand-16:infoCommand-1], a.name)
	copy(b[infoCommand:infoSize-1], a.command)
	return b
}

// fileNote returns NT_FILE: the mapped files and their addresses.
func (m *coreMoment) fileNote() []byte {
	var rows []machine.Mapping
	for _, r := range m.maps {
		if r.Inode != 0 && r.Path != "" {
			rows = append(rows, r)
		}
	}
	words := []uint64{uint64(len(rows)), elfcore.Page} // the unit of offsets
	for _, r := range rows {
		words = append(words, uint64(r.Start), uint64(r.End), r.Offset/elfcore.Page)
	}
	b, _ := binary.Append(nil, m.order(), words) // fails only for types without a fixed size
	for _, r := range rows {
		b = append(append(b, r.Path...), 0)
	}
	return b
}
