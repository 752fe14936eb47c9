package ptrace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/test/livetest"
)

// A coreImage writes cores by elf(5) and core(5), both valid and invalid ones.
type coreImage struct {
	order    byteOrders
	machine  elf.Machine
	notes    []byte
	files    []fileRow
	unit     uint64 // unit of offsets in files
	segments []coreSegment
	xnum     bool // the number of segments is in section header 0
}

type byteOrders interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

type coreSegment struct {
	elf.Prog64
	data []byte
}

func (c *coreImage) note(owner string, kind uint32, desc []byte) {
	b := c.order.AppendUint32(nil, uint32(len(owner)+1))
	b = c.order.AppendUint32(b, uint32(len(desc)))
	b = c.order.AppendUint32(b, kind)
	for _, part := range [][]byte{append([]byte(owner), 0), desc} {
		b = append(b, part...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	c.notes = append(c.notes, b...)
}

// load adds a segment that holds data and has size bytes in memory.
func (c *coreImage) load(addr uint64, flags elf.ProgFlag, data []byte, size uint64) {
	c.segments = append(c.segments, coreSegment{elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(flags), Vaddr: addr, Filesz: uint64(len(data)), Memsz: size}, data})
}

func (c *coreImage) fileNote() []byte {
	b := c.order.AppendUint64(nil, uint64(len(c.files)))
	b = c.order.AppendUint64(b, c.unit)
	for _, f := range c.files {
		for _, v := range []uint64{uint64(f.start), uint64(f.end), f.off} {
			b = c.order.AppendUint64(b, v)
		}
	}
	for _, f := range c.files {
		b = append(append(b, f.path...), 0)
	}
	return b
}

func (c *coreImage) bytes() []byte {
	if c.files != nil {
		c.note("CORE", ntFile, c.fileNote())
		c.files = nil
	}
	all := append([]coreSegment{{elf.Prog64{Type: uint32(elf.PT_NOTE), Filesz: uint64(len(c.notes)), Align: 4}, c.notes}}, c.segments...)
	off := uint64(64 + 64 + 56*len(all))
	h := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(c.machine), Version: 1, Phoff: 128, Shoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(all)), Shentsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	if c.order == byteOrders(binary.BigEndian) {
		h.Ident[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	}
	first := elf.Section64{}
	if c.xnum {
		h.Phnum, first.Info = elfcore.ManyPrograms, uint32(len(all))
	}
	var out bytes.Buffer
	write := func(v any) { _ = binary.Write(&out, c.order, v) }
	write(h)
	write(first)
	for i := range all {
		if all[i].Off == 0 {
			all[i].Off = off
		}
		off += uint64(len(all[i].data))
		write(all[i].Prog64)
	}
	for _, s := range all {
		out.Write(s.data)
	}
	return out.Bytes()
}

// The program that contains the descriptor in smallCore, and the addresses of the list and of the object.
const (
	smallEntry  = 0x10000000
	smallObject = 0x10001000
)

// smallCore returns a core like that of corrupt.c after it has registered one object, jit.
func smallCore(t testing.TB, jit []byte) (c *coreImage, program string) {
	program = livetest.CBinary(t, "corrupt.c", "-no-pie")
	file, err := os.ReadFile(program)
	require.NoError(t, err)
	descriptor := uint64(0)
	image, err := elf.NewFile(bytes.NewReader(file))
	require.NoError(t, err)
	symbols, err := image.Symbols()
	require.NoError(t, err)
	for _, s := range symbols {
		if s.Name == descriptorName {
			descriptor = s.Value
		}
	}
	require.NotZero(t, descriptor)
	c = &coreImage{order: binary.LittleEndian, machine: elf.EM_X86_64, unit: 4096}
	status := make([]byte, 336)
	binary.LittleEndian.PutUint32(status[32:], 4242)
	binary.LittleEndian.PutUint64(status[112+8*16:], 0x401234) // rip
	info := make([]byte, 136)
	binary.LittleEndian.PutUint32(info[24:], 4242)
	copy(info[56:], "small --core ")
	c.note("CORE", uint32(elf.NT_PRSTATUS), status)
	c.note("CORE", uint32(elf.NT_PRPSINFO), info)
	for _, p := range image.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		start, off := p.Vaddr&^0xfff, p.Off&^0xfff
		end := (p.Vaddr + p.Filesz + 0xfff) &^ 0xfff
		c.files = append(c.files, fileRow{machine.Addr(start), machine.Addr(end), off / 4096, program})
		switch {
		case p.Off == 0:
			c.load(start, p.Flags, file[:1024], end-start)
		case p.Flags&elf.PF_W != 0:
			data := make([]byte, end-start)
			copy(data, file[off:p.Off+p.Filesz])
			binary.LittleEndian.PutUint32(data[descriptor-start:], 1)
			binary.LittleEndian.PutUint64(data[descriptor-start+16:], smallEntry)
			// Keep the core small: load only the page with the descriptor.
			page := (descriptor &^ 0xfff) - start
			c.load(start+page, p.Flags, data[page:min(page+4096, uint64(len(data)))], 4096)
		default:
			c.load(start, p.Flags, nil, end-start)
		}
	}
	entry := make([]byte, 32)
	binary.LittleEndian.PutUint64(entry[16:], smallObject)
	binary.LittleEndian.PutUint64(entry[24:], uint64(len(jit)))
	c.load(smallEntry, elf.PF_R|elf.PF_W, entry, 4096)
	c.load(smallObject, elf.PF_R|elf.PF_W, jit, uint64(len(jit))+4096)
	return c, program
}

func readBytes(t testing.TB, b []byte) *Target {
	t.Helper()
	target, err := readCore("core", bytes.NewReader(b), int64(len(b)), CoreOptions{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	return target
}

func hostObject(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(livetest.Object(t, 19, "host_mod.ll"))
	require.NoError(t, err)
	return b
}
