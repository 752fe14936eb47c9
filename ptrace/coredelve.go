package ptrace

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"path"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/regset"
)

// Notes of the cores that Delve's command dump writes (pkg/proc/dump.go and pkg/elfwriter of Delve 1.27): a header, and, except for Linux on x86-64,
// one note for each thread. The other notes are the kernel's, without an owner. A list of mapped files is missing.
const (
	delveOwner  = "Delve Header"
	delveHeader = elf.NType(0x444C5645)
	delveThread = elf.NType(0x444C5654)

	delvePID   = "Target Pid: "
	delveEntry = "Entry Point: "

	maxDelveNote = 64 << 10
)

// readDelve reads a note of a core written by Delve. For a note that the caller must still read, it returns the note with the owner that the kernel
// uses, and true.
func (c *core) readDelve(n elfcore.Note) (elfcore.Note, bool) {
	switch {
	case n.Owner == delveOwner && n.Kind == delveHeader:
		c.delve = true
		c.readDelveHeader(n)
		return n, false
	case !c.delve || n.Owner != "":
		return n, true
	case n.Kind == delveThread:
		c.readDelveThread(n)
		return n, false
	case n.Kind == regset.X86XState:
		n.Owner = elfcore.OwnerLinux
	default:
		n.Owner = elfcore.OwnerCore
	}
	return n, true
}

// readDelveHeader reads lines such as "Target Pid: 4711".
func (c *core) readDelveHeader(n elfcore.Note) {
	b, _ := n.Read(0, maxDelveNote)
	for line := range strings.SplitSeq(string(b), "\n") {
		if text, ok := strings.CutPrefix(line, delvePID); ok {
			if pid, err := strconv.ParseInt(text, 10, 32); err == nil {
				c.target.PID = int(pid)
			}
		}
		if text, ok := strings.CutPrefix(line, delveEntry); ok {
			if entry, err := strconv.ParseUint(text, 0, 64); err == nil && c.entry == 0 {
				c.entry = machine.Addr(entry)
			}
		}
	}
}

// readDelveThread reads a thread in Delve's portable format, little-endian: its number, pc, sp, bp and tls (8 bytes each); whether it has the address
// of a goroutine (1 byte), and that address (8 bytes); then the number of registers (4 bytes), and for each the name and the content, each after its
// length (2 bytes). On x86-64, YMM0 and ZMM0 hold the parts of the register above XMM0 and YMM0.
func (c *core) readDelveThread(n elfcore.Note) {
	const head = 8 + 4*8 + 1 + 8
	b, ok := n.Read(head+4, maxDelveNote)
	if !ok || len(c.target.threads) == maxThreads {
		return
	}
	order := binary.LittleEndian
	th := machine.Thread{ID: int(int32(order.Uint64(b)))}
	arch := c.target.arch
	if arch != machine.AMD64 && arch != machine.ARM64 {
		th.Missing = "the registers of this core are not known"
		c.target.threads = append(c.target.threads, th)
		return
	}
	regs := machine.NewRegisters(arch, "not in the core")
	regs.SetUint(arch.PC, order.Uint64(b[8:]))
	regs.SetUint(arch.SP, order.Uint64(b[16:]))
	regs.SetThreadPointer(machine.Addr(order.Uint64(b[32:])))
	named := map[string]machine.DWARFReg{}
	for _, reg := range arch.Registers() {
		named[arch.RegisterName(reg)] = reg
	}
	vectors := map[machine.DWARFReg][]byte{}
	count := order.Uint32(b[head:])
	b = b[head+4:]
	field := func() (content []byte) {
		if len(b) < 2 || int(order.Uint16(b)) > len(b)-2 {
			b = nil
			return nil
		}
		size := int(order.Uint16(b))
		content, b = b[2:2+size], b[2+size:]
		return content
	}
	for ; count > 0 && len(b) > 0; count-- {
		name, content := strings.ToLower(string(field())), field()
		part := 0 // offset of this part in a vector register of x86-64
		if arch == machine.AMD64 {
			for from, prefix := range map[int]string{16: "ymm", 32: "zmm"} {
				if number, ok := strings.CutPrefix(name, prefix); ok {
					part, name = from, "xmm"+number
				}
			}
		}
		reg, known := named[name]
		if !known {
			continue
		}
		info, _ := arch.Register(reg)
		switch {
		case info.Class == machine.Vector && part == len(vectors[reg]) && part+len(content) <= info.Size:
			vectors[reg] = append(vectors[reg], content...)
		case info.Class != machine.Vector && len(content) == info.Size:
			regs.Set(reg, content)
		}
	}
	for reg, content := range vectors {
		if len(content) > 0 {
			regs.Set(reg, content)
		}
	}
	th.Registers = regs
	c.target.threads = append(c.target.threads, th)
}

// delveArea restores the list of components in an XSAVE area. Delve overwrites the first 512 bytes with the output of PTRACE_GETFPREGS, which does
// not list the area's components (pkg/proc/native/dump_linux_amd64.go). The result lists the components that are not in their initial state, and AVX
// if the area has room for it, because AVX is always the first component after the legacy area.
func delveArea(b []byte) []byte {
	const (
		features = 464
		header   = 512
		extended = 576
		avxSize  = 256
	)
	if len(b) <= extended { // the kernel provided no area, so Delve wrote an empty header
		return b[:min(len(b), header)]
	}
	if order := binary.LittleEndian; order.Uint64(b[features:]) == 0 {
		parts := order.Uint64(b[header:]) | 3
		if len(b) >= extended+avxSize {
			parts |= 4
		}
		b = bytes.Clone(b)
		order.PutUint64(b[features:], parts)
	}
	return b
}

// nameLinkedFiles determines the mapped files of a target that does not list them: the program, and the files in the dynamic linker's list. It
// includes a file only if the file's segments are in the target's memory. These files are compared with the memory later, like all others.
func (c *core) nameLinkedFiles() {
	for m := range linkMap(segmentMemory{c}, c.target.arch.Order, c.auxv, func(...machine.Addr) {}) {
		name := pathAt(segmentMemory{c}, m.name)
		if name == "" { // the program's own entry in the list
			name = c.execfn()
		}
		if !path.IsAbs(name) || strings.HasPrefix(name, "/proc/") {
			continue
		}
		c.addFile(name, m.bias)
	}
	slices.SortStableFunc(c.files, func(a, b fileRow) int { return cmp.Compare(a.start, b.start) })
}

// execfn returns the path that was passed to execve(2) (AT_EXECFN of getauxval(3)).
func (c *core) execfn() string {
	for kind, value := range auxEntries(c.auxv, c.target.arch.Order) {
		if kind == atExecfn {
			return pathAt(segmentMemory{c}, value)
		}
	}
	return ""
}

// addFile adds the rows of a file that was loaded at a bias, unless they overlap those of another file.
func (c *core) addFile(name string, bias machine.Addr) {
	f, err := c.openAny(name)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	id, err := readIdentity(f, uint64(info.Size()))
	if err != nil {
		return
	}
	var rows []fileRow
	for _, l := range id.loads(c.page) {
		row := fileRow{machine.Addr(l.addr) + bias, machine.Addr(l.addr+(l.end-l.off+c.page-1)&^(c.page-1)) + bias, l.off, name}
		_, held := c.segmentAt(row.start)
		over := func(other fileRow) bool { return row.start < other.end && other.start < row.end }
		if row.start >= row.end || !held || slices.ContainsFunc(rows, over) || slices.ContainsFunc(c.files, over) {
			return
		}
		rows = append(rows, row)
	}
	c.files = append(c.files, rows...)
}

// segmentAt returns the segment that contains an address.
func (c *core) segmentAt(at machine.Addr) (*segment, bool) {
	n, found := slices.BinarySearchFunc(c.segments, at, func(s segment, at machine.Addr) int {
		switch {
		case s.end <= at:
			return -1
		case s.start > at:
			return 1
		}
		return 0
	})
	if !found {
		return nil, false
	}
	return &c.segments[n], true
}

// segmentMemory is the memory in the segments of a core.
type segmentMemory struct{ *core }

// ReadMemory implements [machine.Memory].
func (m segmentMemory) ReadMemory(p []byte, at machine.Addr) error {
	s, found := m.segmentAt(at)
	if !found || uint64(at-s.start) > s.held || uint64(len(p)) > s.held-uint64(at-s.start) {
		return &machine.MemoryError{Addr: at, Len: len(p), Why: notHeld}
	}
	_, err := m.file.ReadAt(p, int64(s.off)+int64(at-s.start))
	return err
}
