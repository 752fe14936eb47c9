package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
)

// core is an ELF core that gdb wrote, as far as these tests need it.
type core struct {
	t       *testing.T
	loads   []*elf.Prog
	threads map[int]*machine.Registers
	files   []coreFile
	images  map[string]*os.File
	codes   map[string]*Code
	hidden  []elf.Symbol // at their loaded addresses
}

type coreFile struct {
	start, end, offset uint64
	path               string
}

// prstatus is where the ELF core notes of x86-64 Linux have pr_reg, and the
// order of it (struct user_regs_struct); a negative number is no DWARF register.
const prstatusRegisters = 112

var prstatusOrder = []int{15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, -1, -1, 7}

func openCore(t *testing.T, path string) *core {
	t.Helper()
	file, err := elf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	c := &core{t: t, threads: map[int]*machine.Registers{}, images: map[string]*os.File{}, codes: map[string]*Code{}}
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

// executable looks into the file for a mapping that gdb left out of the core.
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
	image, err := elf.NewFile(c.image(f.path))
	require.NoError(c.t, err)
	for _, p := range image.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Off&^0xfff == f.offset {
			return true
		}
	}
	return false
}

// file is what is mapped at addr.
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

// Code finds the file that is mapped at pc. The files here are all linked at zero.
func (c *core) Code(pc machine.Addr) *Code {
	for _, s := range c.hidden {
		if uint64(pc)-s.Value < s.Size {
			return &Code{}
		}
	}
	f := c.file(pc)
	if f == nil {
		return &Code{}
	}
	if c.codes[f.path] == nil {
		table, err := NewTable(sectionsOf(c.t, f.path, c.base(f.path)))
		c.codes[f.path] = &Code{Source: f.path, Table: table, Err: err}
	}
	return c.codes[f.path]
}

// base is where the start of a file is mapped.
func (c *core) base(path string) machine.Addr {
	for _, f := range c.files {
		if f.path == path && f.offset == 0 {
			return machine.Addr(f.start)
		}
	}
	require.FailNow(c.t, "not mapped", path)
	return 0
}

// symbol is where the core has a function of a file.
func (c *core) symbol(path, name string) machine.Addr {
	return machine.Addr(c.function(path, name).Value)
}

// function is a symbol of a file at its loaded address.
func (c *core) function(path, name string) elf.Symbol {
	file, err := elf.Open(path)
	require.NoError(c.t, err)
	defer file.Close()
	symbols, err := file.Symbols()
	require.NoError(c.t, err)
	for _, s := range symbols {
		if s.Name == name {
			s.Value += uint64(c.base(path))
			return s
		}
	}
	require.FailNow(c.t, "no symbol", "%s in %s", name, path)
	return elf.Symbol{}
}

// hide makes functions such of which nothing is known but their code.
func (c *core) hide(path string, names ...string) {
	for _, name := range names {
		c.hidden = append(c.hidden, c.function(path, name))
	}
}
