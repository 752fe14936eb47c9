package unwind

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// core is an ELF core that gdb wrote, with the parts that these tests need.
type core struct {
	t       *testing.T
	loads   []*elf.Prog
	threads map[int]*machine.Registers
	files   []coreFile
	images  map[string]*os.File
	parsed  map[string]*elf.File
	codes   map[string]*Code
	hidden  []hidden
}

// hidden is a function whose CFI the tests hide from the unwinder.
type hidden struct {
	elf.Symbol // with the loaded address
	code       *Code
}

type coreFile struct {
	start, end, offset uint64
	path               string
}

// prstatusRegisters is the offset of pr_reg in the ELF core notes of x86-64 Linux. prstatusOrder is the order of its registers (struct
// user_regs_struct); a negative number stands for a register without a DWARF number.
const prstatusRegisters = 112

var prstatusOrder = []int{15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, -1, -1, 7}

func openCore(t *testing.T, path string) *core {
	t.Helper()
	file, err := elf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	c := &core{t: t, threads: map[int]*machine.Registers{}, images: map[string]*os.File{}, parsed: map[string]*elf.File{}, codes: map[string]*Code{}}
	for _, p := range file.Progs {
		switch p.Type {
		case elf.PT_LOAD:
			c.loads = append(c.loads, p)
		case elf.PT_NOTE:
			notes, err := io.ReadAll(p.Open())
			require.NoError(t, err)
			c.readNotes(notes)
		}
	}
	return c
}

func (c *core) readNotes(b []byte) {
	le := binary.LittleEndian
	for len(b) >= 12 {
		nameSize, size, kind := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
		desc := b[12+(nameSize+3)&^3:]
		b = desc[(size+3)&^3:]
		desc = desc[:size]
		switch elf.NType(kind) {
		case elf.NT_PRSTATUS:
			regs := machine.NewRegisters(machine.AMD64, "not in the core's note")
			for i, reg := range prstatusOrder {
				if reg >= 0 {
					regs.SetUint(machine.DWARFReg(reg), le.Uint64(desc[prstatusRegisters+8*i:]))
				}
			}
			c.threads[int(le.Uint32(desc[32:]))] = regs
		case 0x46494c45: // NT_FILE
			count := le.Uint64(desc)
			names := bytes.Split(desc[16+24*count:], []byte{0})
			for i := range count {
				row := desc[16+24*i:]
				c.files = append(c.files, coreFile{
					le.Uint64(row), le.Uint64(row[8:]), le.Uint64(row[16:]), string(names[i]),
				})
			}
		}
	}
}

func (c *core) ReadMemory(p []byte, addr machine.Addr) error {
	for _, load := range c.loads {
		if off := uint64(addr) - load.Vaddr; uint64(addr) >= load.Vaddr && off < load.Filesz && uint64(len(p)) <= load.Filesz-off {
			_, err := load.ReadAt(p, int64(off))
			return err
		}
	}
	if f := c.file(addr); f != nil && uint64(addr)+uint64(len(p)) <= f.end {
		_, err := c.image(f.path).ReadAt(p, int64(uint64(addr)-f.start+f.offset))
		return err
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not in the core"}
}

// executable reports whether an address is in executable memory. If gdb omitted the mapping from the core, the program headers of the mapped file
// decide.
func (c *core) executable(addr machine.Addr) bool {
	for _, load := range c.loads {
		if uint64(addr) >= load.Vaddr && uint64(addr)-load.Vaddr < load.Memsz {
			return load.Flags&elf.PF_X != 0
		}
	}
	f := c.file(addr)
	if f == nil {
		return false
	}
	for _, p := range c.elf(f.path).Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Off&^0xfff == f.offset {
			return true
		}
	}
	return false
}

// file returns the file that is mapped at addr; nil for none.
func (c *core) file(addr machine.Addr) *coreFile {
	for i, f := range c.files {
		if uint64(addr) >= f.start && uint64(addr) < f.end {
			return &c.files[i]
		}
	}
	return nil
}

func (c *core) image(path string) *os.File {
	if c.images[path] == nil {
		file, err := os.Open(path)
		require.NoError(c.t, err)
		c.t.Cleanup(func() { file.Close() })
		c.images[path] = file
	}
	return c.images[path]
}

// elf returns the parsed file of a mapping.
func (c *core) elf(path string) *elf.File {
	if c.parsed[path] == nil {
		file, err := elf.NewFile(c.image(path))
		require.NoError(c.t, err)
		c.parsed[path] = file
	}
	return c.parsed[path]
}

// Code finds the file that is mapped at pc. All files here are linked at address zero.
func (c *core) Code(pc machine.Addr) *Code {
	for _, s := range c.hidden {
		if uint64(pc)-s.Value < s.Size {
			return s.code
		}
	}
	path := ""
	if f := c.file(pc); f != nil {
		path = f.path
	}
	if c.codes[path] == nil {
		c.codes[path] = &Code{Source: path}
		if path != "" {
			table, err := cfi.NewTable(sectionsOf(c.t, path, c.base(path)))
			c.codes[path] = &Code{Source: path, Table: table, Err: err, Functions: c.symbols(path), Start: c.base(path) + machine.Addr(c.elf(path).Entry)}
		}
	}
	return c.codes[path]
}

// walk walks the stack of the thread that stopped.
func (s stop) walk() *Stack { return s.core.unwinder().Walk(s.registers(), nil) }

func (s stop) registers() *machine.Registers { return s.core.threads[s.want[0].TID] }

func (c *core) unwinder() *Unwinder {
	return &Unwinder{Arch: machine.AMD64, Memory: c, Finder: c, Executable: c.executable}
}

// base returns the address at which the start of a file is mapped.
func (c *core) base(path string) machine.Addr {
	for _, f := range c.files {
		if f.path == path && f.offset == 0 {
			return machine.Addr(f.start)
		}
	}
	require.FailNow(c.t, "not mapped", path)
	return 0
}

// symbol returns the address of a function of a file in the core.
func (c *core) symbol(path, name string) machine.Addr {
	return machine.Addr(c.function(path, name).Value)
}

// nameOf returns the symbol of the function that starts at an address.
func (c *core) nameOf(addr machine.Addr) string {
	if f := c.file(addr); f != nil {
		if s := c.symbols(f.path).at(addr); s != nil && s.Value == uint64(addr) {
			return s.Name
		}
	}
	return addr.String()
}

// function is a symbol of a file at its loaded address.
func (c *core) function(path, name string) elf.Symbol {
	for _, s := range c.symbols(path).list {
		if s.Name == name {
			return s
		}
	}
	require.FailNow(c.t, "no symbol", "%s in %s", name, path)
	return elf.Symbol{}
}

// hide hides everything about functions except their code.
func (c *core) hide(path string, names ...string) {
	for _, name := range names {
		c.hidden = append(c.hidden, hidden{c.function(path, name), &Code{}})
	}
}

// hideKnowing does the same as hide, but the unwinder still gets the start and the frame size of each function that known has.
func (c *core) hideKnowing(path, name string, known symbols) {
	s := c.function(path, name)
	known.list = []elf.Symbol{s}
	c.hidden = append(c.hidden, hidden{s, &Code{Functions: known}})
}

// symbols holds the functions of a file by loaded address, and its procedure linkage tables.
type symbols struct {
	list     []elf.Symbol
	plt      []elf.SectionHeader
	frame    uint64 // frame size of each function in bytes; 0 if unknown
	nameless bool   // hide the starts of functions from the unwinder
}

func (c *core) symbols(path string) symbols {
	image := c.elf(path)
	list, err := image.Symbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		list, err = image.DynamicSymbols()
	}
	require.NoError(c.t, err)
	var s symbols
	for _, f := range list {
		// LLVM gives the parts of a function symbols without a type.
		if kind := elf.ST_TYPE(f.Info); (kind == elf.STT_FUNC || kind == elf.STT_NOTYPE) && f.Size > 0 && f.Section != elf.SHN_UNDEF {
			f.Value += uint64(c.base(path))
			s.list = append(s.list, f)
		}
	}
	slices.SortStableFunc(s.list, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	for _, section := range image.Sections {
		if strings.HasPrefix(section.Name, ".plt") {
			header := section.SectionHeader
			header.Addr += uint64(c.base(path))
			s.plt = append(s.plt, header)
		}
	}
	return s
}

func (s symbols) Function(pc machine.Addr) (start, end machine.Addr) {
	for _, p := range s.plt {
		if uint64(pc)-p.Addr < p.Size {
			start := machine.Addr(p.Addr + (uint64(pc)-p.Addr)&^15)
			return start, start + 16
		}
	}
	if f := s.at(pc); f != nil && !s.nameless {
		return machine.Addr(f.Value), machine.Addr(f.Value + f.Size)
	}
	return 0, 0
}

func (s symbols) Entry(addr machine.Addr) bool {
	f := s.at(addr)
	return f != nil && f.Value == uint64(addr) && !strings.HasSuffix(f.Name, ".cold")
}

func (s symbols) Linkage(machine.Addr) bool { return false }

func (s symbols) FrameSize(pc machine.Addr) (uint64, bool) {
	return s.frame, s.frame != 0 && s.at(pc) != nil
}

func (s symbols) at(pc machine.Addr) *elf.Symbol {
	n, _ := slices.BinarySearchFunc(s.list, uint64(pc)+1, func(f elf.Symbol, addr uint64) int { return cmp.Compare(f.Value, addr) })
	if n > 0 && uint64(pc)-s.list[n-1].Value < s.list[n-1].Size {
		return &s.list[n-1]
	}
	return nil
}
