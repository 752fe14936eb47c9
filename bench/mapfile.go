package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
)

const (
	mapCode      = 0x401000 // address of the first function of a map file
	mapConstants = 64       // entries of its constant table
	mapShapes    = 4096     // different lists of locations and live-outs
	mapsSection  = ".llvm_stackmaps"
)

// mapBlob returns a map with a number of records like those that llc writes for x86-64. A function has one to seven records. Of four records, two
// have the form of a statepoint, one of a patchpoint and one of a stackmap. They have four to eight locations, and patchpoints have live-outs, too.
// The same number always gives the same map.
func mapBlob(records int) *stackmap.Blob {
	random := rand.New(rand.NewPCG(3, uint64(records)))
	blob := &stackmap.Blob{Version: 3, Dialect: stackmap.V3}
	for range mapConstants {
		blob.Constants = append(blob.Constants, random.Uint64())
	}
	// Records share these shapes, so that a million records do not take a gigabyte.
	shapes := make([]stackmap.Record, mapShapes)
	for i := range shapes {
		shapes[i] = mapShape(random, i%4)
	}
	all := make([]stackmap.Record, records)
	for code := machine.Addr(mapCode); len(all) > 0; {
		n := min(len(all), 1+random.IntN(7))
		own := all[:n:n]
		all = all[n:]
		offset := uint32(0)
		for i := range own {
			own[i] = shapes[random.IntN(mapShapes)]
			if own[i].ID == 0 {
				own[i].ID = stackmap.RecordID(random.Uint32())
			}
			offset += 5 + random.Uint32N(80)
			own[i].Offset = offset
		}
		blob.Functions = append(blob.Functions, stackmap.BlobFunction{Addr: code, StackSize: 8 + 16*random.Uint64N(32), Records: own})
		code += machine.Addr(offset+64) &^ 15 // the alignment of functions on x86-64
	}
	return blob
}

// statepointID is the ID that LLVM gives to a statepoint without one (DefaultStatepointID in llvm/IR/Statepoint.h).
const statepointID = 0xABCDEF00

// mapShape returns a record: of a statepoint for forms 0 and 1, of a patchpoint for 2, of a stackmap for 3. The caller sets the ID of the last two.
func mapShape(random *rand.Rand, form int) stackmap.Record {
	var r stackmap.Record
	n := 4 + random.IntN(5)
	if form < 2 {
		r.ID = statepointID
		// The calling convention, the flags and the number of deopt values come first, then the deopt values, then pairs of gc pointers.
		pairs := random.IntN((n-3)/2 + 1)
		for _, v := range []int{0, 0, n - 3 - 2*pairs} {
			r.Locations = append(r.Locations, stackmap.Location{Kind: stackmap.Constant, Size: 8, Offset: int32(v)})
		}
		for len(r.Locations) < n {
			r.Locations = append(r.Locations, mapLocation(random, form == 0 || len(r.Locations) >= n-2*pairs))
		}
		return r
	}
	for len(r.Locations) < n {
		r.Locations = append(r.Locations, mapLocation(random, false))
	}
	if form == 2 {
		r.LiveOuts = []stackmap.LiveOut{{Reg: 0, Size: 8}, {Reg: 3, Size: 8}, {Reg: 7, Size: 8}, {Reg: 17, Size: 16}}[:2+random.IntN(3)]
	}
	return r
}

// mapLocation returns the location of one value, spilled or in any possible place.
func mapLocation(random *rand.Rand, spilled bool) stackmap.Location {
	slot := int32(8 * random.IntN(64))
	saved := []machine.DWARFReg{3, 6, 12, 13, 14, 15}[random.IntN(6)]
	if spilled {
		return stackmap.Location{Kind: stackmap.Indirect, Size: 8, Reg: 7, Offset: slot}
	}
	return []stackmap.Location{
		{Kind: stackmap.Register, Size: 8, Reg: saved},
		{Kind: stackmap.Indirect, Size: 8, Reg: 7, Offset: slot},
		{Kind: stackmap.Indirect, Size: 8, Reg: 6, Offset: -8 - slot},
		{Kind: stackmap.Direct, Size: 8, Reg: 7, Offset: slot},
		{Kind: stackmap.Constant, Size: 8, Offset: random.Int32N(1000) - 500},
		{Kind: stackmap.ConstantIndex, Size: 8, Offset: random.Int32N(mapConstants)},
	}[random.IntN(6)]
}

// mapFile writes an unlinked ELF object that holds only the section of blob, and returns the section's size in bytes.
func mapFile(t testing.TB, path string, blob *stackmap.Blob) (size int) {
	section, err := stackmap.AppendBlob(nil, binary.LittleEndian, blob)
	require.NoError(t, err)
	names := "\x00" + mapsSection + "\x00.shstrtab\x00"
	// ELF header, section, names, section headers (System V ABI, gABI 4.1, "ELF Header", "Sections").
	const head, row = 64, 64
	at := uint64(head + len(section))
	table := (at + uint64(len(names)) + 7) &^ 7
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{'\x7f', 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Shoff: table, Ehsize: head, Shentsize: row, Shnum: 3, Shstrndx: 2,
	}
	rows := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Off: head, Size: uint64(len(section)), Addralign: 8},
		{Name: uint32(len("\x00" + mapsSection + "\x00")), Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names)), Addralign: 1},
	}
	var before, after bytes.Buffer
	require.NoError(t, binary.Write(&before, binary.LittleEndian, header))
	after.WriteString(names)
	after.Write(make([]byte, table-at-uint64(len(names))))
	require.NoError(t, binary.Write(&after, binary.LittleEndian, rows))
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	for _, part := range [][]byte{before.Bytes(), section, after.Bytes()} {
		_, err := f.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	return len(section)
}

// mapsOf returns the section of a map file.
func mapsOf(t testing.TB, path string) []byte {
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	data, err := f.Section(mapsSection).Data()
	require.NoError(t, err)
	return data
}
