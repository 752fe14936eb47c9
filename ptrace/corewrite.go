package ptrace

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/xsave"
)

// coreMoment is the state of a process at one moment, for writing a core.
type coreMoment struct {
	ctx      context.Context
	arch     *machine.Arch
	about    *coreAbout   // nil if from is set
	from     *coreSource  // the core from which this core is made; nil for a process
	threads  []coreThread // debuggers first show the first thread
	vectors  xsave.Layout // offsets of registers in the XSAVE areas of the threads
	names    []threadNote
	maps     []machine.Mapping
	memory   machine.Memory
	pages    io.ReaderAt                            // /proc/PID/pagemap; nil if it cannot be read
	awaits   func(addr machine.Addr, size int) bool // [Target.awaits]; nil if userfaultfd provides no pages
	mode     CoreMemory
	spans    []span      // contents of a minimal core, in order of address
	own      []keptPart  // mapped pages that may differ from their file
	redacted []addrRange // memory that was omitted at the user's request, in order of address
	held     uint64      // number of bytes of memory in the core
	progress func(written, of uint64)
}

type threadNote struct {
	tid  int
	name string
}

type coreThread struct {
	tid int
	raw rawRegisters
}

const (
	// coreChunk is the size in which memory is read and written. A chunk that cannot be read is read in pages.
	coreChunk = 1 << 20
	// maxUnreadable bounds the number of unreadable pages, because a process can map more pages than can be tried. After this many, the rest of a
	// mapping is omitted.
	maxUnreadable = 1 << 18
	// spareHeaders is the number of spare program headers, because a part is split at unreadable pages.
	spareHeaders = 64
)

// coreWriter writes a core. It writes the headers last, because the number of segments is known only after reading. The program headers are at the
// front, so that a truncated core still describes the memory that remains. If there is not enough space at the front, they are at the end.
type coreWriter struct {
	file     elfcore.File
	off      int64
	programs []elf.Prog64
	buf      []byte
	moment   *coreMoment
	room     int // number of program headers that fit at the front
	refused  int // number of pages that could not be read
	done     uint64
	total    uint64 // number of bytes of memory to write
}

func (m *coreMoment) write(f elfcore.File) error {
	w := &coreWriter{file: f, off: elfcore.HeaderSize, buf: make([]byte, coreChunk), moment: m}
	kept := make([][]keptPart, len(m.maps))
	w.room = spareHeaders
	for i, mapping := range m.maps {
		kept[i] = m.kept(mapping)
		w.room += len(kept[i])
		for _, p := range kept[i] {
			if p.keep {
				w.total += uint64(p.end - p.start)
			}
		}
	}
	w.room = min(w.room, elfcore.ManyPrograms-1)
	w.off += int64(w.room) * elfcore.ProgramSize
	notes := m.notes()
	w.programs = append(w.programs, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: uint64(w.off), Filesz: uint64(len(notes)), Align: 4})
	if err := w.put(notes); err != nil {
		return err
	}
	w.off = (w.off + elfcore.Page - 1) &^ (elfcore.Page - 1)
	for i, mapping := range m.maps {
		for _, p := range kept[i] {
			if err := w.load(mapping, p); err != nil {
				return err
			}
		}
	}
	return w.headers()
}

func (w *coreWriter) put(b []byte) error {
	if _, err := w.file.WriteAt(b, w.off); err != nil {
		return err
	}
	w.off += int64(len(b))
	return nil
}

// load writes a part of a mapping. Pages that cannot be read become segments without contents.
func (w *coreWriter) load(m machine.Mapping, p keptPart) error {
	if !p.keep {
		w.segment(m, p.start, p.end, false)
		return nil
	}
	for at := p.start; at < p.end; {
		if err := context.Cause(w.moment.ctx); err != nil {
			return err
		}
		if w.moment.progress != nil {
			w.moment.progress(w.done+uint64(at-p.start), w.total)
		}
		b := w.buf[:min(uint64(p.end-at), coreChunk)]
		if w.moment.untouched(m, at, len(b)) {
			w.segment(m, at, at+machine.Addr(len(b)), true)
			w.off += int64(len(b))
			at += machine.Addr(len(b))
			continue
		}
		if w.moment.memory.ReadMemory(b, at) != nil {
			b = b[:min(len(b), elfcore.Page-int(at&(elfcore.Page-1)))]
			if w.refused == maxUnreadable {
				w.segment(m, at, p.end, false)
				return nil
			}
			if w.moment.memory.ReadMemory(b, at) != nil {
				w.refused++
				w.segment(m, at, at+machine.Addr(len(b)), false)
				at += machine.Addr(len(b))
				continue
			}
		}
		w.segment(m, at, at+machine.Addr(len(b)), true)
		if err := w.sparse(b); err != nil {
			return err
		}
		at += machine.Addr(len(b))
	}
	w.done += uint64(p.end - p.start)
	return nil
}

// sparse writes memory and skips pages of zeros.
func (w *coreWriter) sparse(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), elfcore.Page)
		if elfcore.IsZero(b[:n]) {
			w.off += int64(n)
		} else {
			for n < len(b) && !elfcore.IsZero(b[n:min(n+elfcore.Page, len(b))]) {
				n = min(n+elfcore.Page, len(b))
			}
			if err := w.put(b[:n]); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

// segment adds a program header for the next bytes in the file, or for omitted memory.
func (w *coreWriter) segment(m machine.Mapping, start, end machine.Addr, held bool) {
	flags := elf.ProgFlag(0)
	for flag, on := range map[elf.ProgFlag]bool{elf.PF_R: m.Read, elf.PF_W: m.Write, elf.PF_X: m.Exec} {
		if on {
			flags |= flag
		}
	}
	size, filesz := uint64(end-start), uint64(0)
	if held {
		filesz = size
		w.moment.held += size
	}
	last := &w.programs[len(w.programs)-1]
	if last.Type == uint32(elf.PT_LOAD) && last.Vaddr+last.Memsz == uint64(start) && start > m.Start && (last.Filesz > 0) == held {
		last.Memsz, last.Filesz = last.Memsz+size, last.Filesz+filesz
		return
	}
	if held { // the offset in the file must equal the address modulo the page size (System V ABI, chapter 5, "Program Loading")
		w.off += int64((uint64(start) - uint64(w.off)) & (elfcore.Page - 1))
	}
	w.programs = append(w.programs, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(flags), Off: uint64(w.off), Vaddr: uint64(start), Filesz: filesz, Memsz: size, Align: elfcore.Page})
}

// coreMachines maps architectures to the machine of a core, and to e_flags if readers need them.
var coreMachines = map[*machine.Arch]struct {
	of    elf.Machine
	flags uint32
}{
	machine.AMD64: {elf.EM_X86_64, 0}, machine.ARM64: {elf.EM_AARCH64, 0}, machine.ARM64BE: {elf.EM_AARCH64, 0}, machine.RISCV64: {elf.EM_RISCV, 0},
	// For PowerPC, e_flags holds the version of the ABI.
	machine.S390X: {elf.EM_S390, 0}, machine.PPC64: {elf.EM_PPC64, 1}, machine.PPC64LE: {elf.EM_PPC64, 2},
	machine.LOONG64: {elf.EM_LOONGARCH, 0},
}

// coreHeader returns the ELF header of a core without program headers.
func coreHeader(a *machine.Arch) (*elf.Header64, error) {
	of, known := coreMachines[a]
	if !known {
		return nil, fmt.Errorf("cannot write a core for %s", a.Title)
	}
	h := &elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(of.of), Version: uint32(elf.EV_CURRENT), Flags: of.flags}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	if a.BigEndian() {
		h.Ident[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	}
	return h, nil
}

// headers writes the program headers and the ELF header. If the ELF header cannot hold the number of program headers, section header 0 holds it
// (PN_XNUM of elf(5)).
func (w *coreWriter) headers() error {
	order := w.moment.order()
	h := &elf.Header64{}
	var err error
	if from := w.moment.from; from != nil {
		_, err = binary.Decode(from.header[:], order, h)
	} else {
		h, err = coreHeader(w.moment.arch)
	}
	if err != nil {
		return err
	}
	h.Phoff, h.Shoff, h.Ehsize, h.Phentsize, h.Phnum = uint64(w.off), 0, elfcore.HeaderSize, elfcore.ProgramSize, uint16(min(len(w.programs), elfcore.ManyPrograms))
	h.Shentsize, h.Shnum, h.Shstrndx = 0, 0, 0
	front := len(w.programs) <= w.room
	if front {
		h.Phoff = elfcore.HeaderSize
	}
	b, err := binary.Append(nil, order, w.programs)
	if err != nil {
		return err
	}
	if len(w.programs) >= elfcore.ManyPrograms {
		h.Shoff, h.Shnum, h.Shentsize = uint64(w.off)+uint64(len(b)), 1, elfcore.SectionSize
		if b, err = binary.Append(b, order, elf.Section64{Info: uint32(len(w.programs)), Size: 1}); err != nil {
			return err
		}
	}
	if front {
		_, err = w.file.WriteAt(b, elfcore.HeaderSize)
	} else {
		err = w.put(b)
	}
	if err != nil {
		return err
	}
	if err := w.file.Truncate(w.off); err != nil {
		return err
	}
	if b, err = binary.Append(nil, order, *h); err != nil {
		return err
	}
	_, err = w.file.WriteAt(b, 0)
	return err
}

// order returns the byte order of the core.
func (m *coreMoment) order() binary.ByteOrder {
	if m.from != nil {
		return m.from.order
	}
	return binary.LittleEndian
}
