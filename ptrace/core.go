package ptrace

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"example.com/reframe/internal/base/filekind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/files"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/xsave"
)

// ErrNotCore is wrapped in the error for a file that is not an ELF core. The error also names the type of the file.
var ErrNotCore = errors.New("not an ELF core")

// CoreError is an error in a core, with advice.
type CoreError struct {
	Path   string
	Offset int64 // offset in the file; -1 if the error concerns the whole file
	Err    error
	Hint   string // what to do next, or ""
}

func (e *CoreError) Error() string {
	s := e.Path
	if e.Offset >= 0 {
		s += fmt.Sprintf("+%#x", e.Offset)
	}
	s += ": " + e.Err.Error()
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

func (e *CoreError) Unwrap() error { return e.Err }

// CoreOptions provide data that a core lacks. The zero value provides nothing.
type CoreOptions struct {
	// Exe is the path of the core's program. It is needed if the program is not at the path in the core, or if the core names no files, as in cores
	// of QEMU's user mode.
	Exe string
	// Sysroot is a directory that contains the files that the core names, at the same paths; "" for the root of this machine.
	Sysroot string
	// DebugDirs lists the directories that are searched for separate debug files. nil means [DebugDir], and the same directory below Sysroot.
	DebugDirs []string
	// Files lends open files to several cores; nil if every core opens its own.
	Files *ModuleFiles
	// Objects bounds the total size of registered objects that are read, which bounds the memory that a core needs; 0 means 4 GiB.
	Objects uint64
	// Given are unregistered objects, as [Options].Objects.
	Given []Object
}

// OpenCore reads an ELF core of the kernel (core(5)) or of gdb's gcore, and finds in it the same data as [Survey] in a process. It reads the core's
// memory from the file on demand.
//
// A core omits memory whose contents were in files. OpenCore opens these files by their paths, and uses them if they are those that were mapped.
// [Module.Why] reports files that differ, and [Module.Unverified] files that may differ.
//
// Threads have the general registers, and the floating-point and vector registers that the core contains. Threads in cores of LoongArch have no
// registers.
//
// The errors are [*CoreError]s. A truncated core is not an error: Notes report it, and missing data is unavailable.
func OpenCore(path string, o CoreOptions) (*Target, error) {
	info, err := os.Stat(path) // check the type first, because opening a pipe would wait for a writer
	if err != nil {
		return nil, &CoreError{path, -1, errors.Unwrap(err), "give the path of a core file"}
	}
	if !info.Mode().IsRegular() {
		return nil, &CoreError{path, -1, fmt.Errorf("%w: %s", ErrNotCore, kindOf(info.Mode())), "give the path of a core file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &CoreError{path, -1, errors.Unwrap(err), ""}
	}
	var r io.ReaderAt = f
	var file io.Closer = f
	size := info.Size()
	if elfcore.IsCompressed(f) {
		r, size, file, err = elfcore.Decompress(f, size)
		f.Close()
		if err != nil {
			return nil, &CoreError{path, -1, err, ""}
		}
	}
	t, err := readCore(path, r, size, o)
	if err != nil {
		file.Close()
		return nil, err
	}
	t.file = file
	return t, nil
}

func kindOf(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeDevice != 0:
		return "a device"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "not a regular file"
}

// exeHint is the advice if the given program is not that of the core.
const exeHint = "give the core's program with --exe; it may be stripped"

// readCore reads a core of size bytes.
func readCore(name string, r io.ReaderAt, size int64, o CoreOptions) (t *Target, err error) {
	target := &Target{Provider: FromCore, Core: name, room: o.Objects, debug: debugDirs(o.DebugDirs)}
	defer func() {
		if p := recover(); p != nil {
			err = &CoreError{name, -1, fmt.Errorf("malformed: %v", p), ""}
		}
		if err != nil {
			t = nil
			target.closeFiles()
		}
	}()
	t = target
	c := &core{target: t, path: name, file: r, size: uint64(size), page: 4 << 10, names: map[int]string{}, lender: o.Files, debug: fmt.Sprintf("%q %q", o.Sysroot, o.DebugDirs), open: files.OpenNamed, absent: notHeld}
	t.core = c
	if err := c.search(o); err != nil {
		return nil, err
	}
	if err := c.readHeader(); err != nil {
		return nil, err
	}
	c.readNotes()
	if o.Exe != "" {
		if err := c.placeExecutable(o.Exe); err != nil {
			return nil, &CoreError{o.Exe, -1, err, exeHint}
		}
	}
	if c.delve {
		c.nameLinkedFiles()
	}
	c.lay()
	if err := c.complete(o); err != nil {
		return nil, err
	}
	return t, nil
}

// complete builds the target from the core's mappings, notes and memory.
func (c *core) complete(o CoreOptions) error {
	t := c.target
	mem := c.held()
	c.openModules(mem)
	for _, m := range t.Modules {
		if m.Why != "" && c.exe != "" && m.Path == c.named {
			return &CoreError{o.Exe, -1, errors.New(m.Why), exeHint}
		}
	}
	r := t.reading()
	r.debugFiles()
	r.placeModules()
	mem = c.withFiles(mem)
	c.holes = mem.holes()
	t.source, t.memory = mem, mem
	for _, m := range t.Modules {
		if m.Image != nil {
			m.readStackMaps(mem)
		}
	}
	t.wanted = o.Given
	if before := c.before; before != nil {
		t.given, t.Found, t.Scanned, t.ScanCut, t.objects = before.given, before.Found, before.Scanned, before.ScanCut, before.objects
		r.followRegistries(before.Registries)
	} else {
		r.find()
		if err := r.place(t.wanted); err != nil {
			return err
		}
	}
	r.readAllObjects()
	return nil
}

// core holds the state of a core, or of a process that a debugger holds, while it is being opened.
type core struct {
	target   *Target
	path     string
	file     io.ReaderAt
	size     uint64
	header   *elfcore.Header
	notes    []elf.Prog64
	segments []segment    // in order of address
	files    []fileRow    // in order of address
	entry    machine.Addr // the entry point of the program; 0 if unknown
	auxv     []byte
	vdso     machine.Addr
	frame    uint64         // size of a signal's frame; 0 if unknown
	vectors  []vectorNote   // notes that are not yet decoded
	layout   *xsave.Layout  // offsets of registers in these notes; nil if the core does not contain them
	names    map[int]string // names of threads by their numbers
	delve    bool           // the core was written by Delve's command dump
	kept     CoreMemory     // the extent of memory if `reframe record` wrote the core; otherwise ""
	written  []addrRange    // memory of files that differs from the files but is not in the core; in order of address
	redacted []addrRange    // memory that was omitted at the user's request; in order of address
	holes    []addrRange    // absent memory that begins or ends within a page; in order of address
	exe      string         // the program that replaces the one named in the core
	named    string
	open     opener        // opens the files that the core names
	fetch    opener        // opens files that the opener open cannot open; nil for none
	absent   string        // the reason why memory outside of all mappings is unavailable
	whole    bool          // all memory is available: a debugger holds the process
	unlisted bool          // the mappings are unknown: one mapping represents all memory without a file
	lender   *ModuleFiles  // lends open files; nil for none
	debug    string        // the sysroot and the directories to search for separate symbols
	below    string        // the sysroot; "" for the root of this machine
	before   *Target       // the same process at an earlier moment, or nil
	page     uint64        // the page size, which is the unit of mappings
	maps     []coreMapping // in order of address
}

// segment is a PT_LOAD of the core.
type segment struct {
	start, end machine.Addr
	off        uint64 // offset in the file of the core
	held       uint64 // number of bytes, from start, that the core claims to contain
	flags      elf.ProgFlag
}

func (c *core) fail(off int64, format string, args ...any) error {
	return &CoreError{c.path, off, fmt.Errorf(format, args...), ""}
}

// readHeader reads the ELF header and the program headers.
func (c *core) readHeader() error {
	h, err := elfcore.ReadHeader(c.file)
	if err != nil || h.Kind != elf.ET_CORE {
		return c.notCore(h, err)
	}
	if h.Class != elf.ELFCLASS64 {
		return &CoreError{c.path, elf.EI_CLASS, errors.New("a 32-bit core; only 64-bit ones can be read"), ""}
	}
	if c.target.arch, err = archOf(h); err != nil {
		return &CoreError{c.path, -1, err, ""}
	}
	c.header = h
	programs, err := h.Programs(c.file, c.size, system.MaxMappings)
	if err != nil {
		return &CoreError{c.path, int64(h.Phoff), err, ""}
	}
	end := uint64(0)
	for n, p := range programs {
		switch elf.ProgType(p.Type) {
		case elf.PT_NOTE:
			c.notes = append(c.notes, p)
		case elf.PT_LOAD:
			if p.Memsz == 0 {
				continue
			}
			if p.Vaddr+p.Memsz <= p.Vaddr {
				return c.fail(int64(h.Phoff), "segment %d has %#x bytes at %#x: it ends outside of the address space", n, p.Memsz, p.Vaddr)
			}
			c.segments = append(c.segments, segment{machine.Addr(p.Vaddr), machine.Addr(p.Vaddr + p.Memsz), p.Off, min(p.Filesz, p.Memsz), elf.ProgFlag(p.Flags)})
		default:
			continue
		}
		if p.Off+p.Filesz > p.Off {
			end = max(end, p.Off+p.Filesz)
		}
	}
	slices.SortStableFunc(c.segments, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(c.segments); i++ {
		if a, b := c.segments[i-1], c.segments[i]; a.end > b.start {
			return c.fail(int64(h.Phoff), "two segments contain the address %v: they begin at %v and at %v", b.start, a.start, b.start)
		}
	}
	if len(c.segments) == 0 {
		return c.fail(-1, "it contains no memory")
	}
	if end > c.size {
		c.target.Notes = append(c.target.Notes, fmt.Sprintf(
			"the core is cut short: it has %d of its %d bytes (was there a limit on the size of cores, or no room on the disk?)", c.size, end))
	}
	return nil
}

// notCore returns an error that names the type of a file which is not a core.
func (c *core) notCore(h *elfcore.Header, err error) error {
	what, hint := "", "reframe maps FILE reads the stack maps of a file"
	var magic [6]byte
	n, _ := c.file.ReadAt(magic[:], 0)
	switch {
	case c.size == 0:
		what, hint = "it is empty", "was there a limit on the size of cores (ulimit -c), or no room on the disk?"
	case h != nil:
		what = map[elf.Type]string{elf.ET_EXEC: "an executable", elf.ET_DYN: "a shared object or a position-independent executable",
			elf.ET_REL: "an unlinked object"}[h.Kind]
		if what == "" {
			what = "an ELF file of type " + h.Kind.String()
		}
	case bytes.HasPrefix(magic[:n], []byte(elf.ELFMAG)):
		what, hint = "a broken ELF file: "+err.Error(), ""
	default:
		what, hint = "no ELF file", ""
		if kind, ok := filekind.OfFile(c.path); ok && kind.Use != "" {
			what, hint = kind.What, kind.Use
		}
		// systemd-coredump(8) and similar tools compress cores. A core that zstd compressed once has already been decompressed here.
		if tool := filekind.Compressor(magic[:n]); tool != "" && tool != filekind.Zstd {
			what, hint = "compressed by "+tool, "decompress it first, or have it written by coredumpctl dump"
		}
	}
	return &CoreError{c.path, -1, fmt.Errorf("%w: %s", ErrNotCore, what), hint}
}

// archOf returns the architecture of a core. It passes an image that consists only of the ELF header to package internal/machine/object.
func archOf(h *elfcore.Header) (*machine.Arch, error) {
	b := bytes.Clone(h.Raw[:])
	h.Order.PutUint16(b[16:], uint16(elf.ET_EXEC))
	clear(b[24:]) // clears the entry point, program headers and sections
	h.Order.PutUint16(b[52:], elfcore.HeaderSize)
	img, err := object.New("core", bytes.NewReader(b), elfcore.HeaderSize)
	if err != nil {
		return nil, err
	}
	arch, err := img.Arch()
	if e := (*object.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return arch, err
}
