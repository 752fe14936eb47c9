package patched

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/ptrace"
)

// armCore returns an arm64 core with one executable mapping of this size, which begins with the code.
func armCore(t *testing.T, size int64, code ...uint32) *ptrace.Target {
	t.Helper()
	const address, start = 0x400000, 0x1000
	status := make([]byte, 392) // struct elf_prstatus
	note := binary.LittleEndian.AppendUint32(nil, 5)
	note = binary.LittleEndian.AppendUint32(note, uint32(len(status)))
	note = binary.LittleEndian.AppendUint32(note, uint32(elf.NT_PRSTATUS))
	note = append(append(note, "CORE\x00\x00\x00\x00"...), status...)
	header := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_AARCH64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	var b bytes.Buffer
	for _, part := range []any{
		header,
		elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 64 + 2*56, Filesz: uint64(len(note)), Align: 4},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: start, Vaddr: address, Filesz: uint64(size), Memsz: uint64(size)},
		note, make([]byte, start-64-2*56-len(note)), code,
	} {
		require.NoError(t, binary.Write(&b, binary.LittleEndian, part))
	}
	path := filepath.Join(t.TempDir(), "core")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	require.NoError(t, os.Truncate(path, start+size)) // the rest of the file is sparse
	core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { core.Close() })
	return core
}

// TestBranchesWithinBudget requires that all branches of code within the budget are listed, and that for more code the reason names the budget.
func TestBranchesWithinBudget(t *testing.T) {
	code := []uint32{0xd503201f, 0x94000010, 0xd63f0100, 0xd61f0200, 0x14000002, 0xd65f03c0} // nop; bl; blr x8; br x16; b; ret
	branches := []machine.Addr{0x400008, 0x40000c, 0x400010, 0x400014}
	list, missing := (&Finder{Space: progspace.New(armCore(t, 4<<10, code...))}).Branches()
	require.NoError(t, missing)
	require.Equal(t, branches, list)
	_, missing = (&Finder{Space: progspace.New(armCore(t, unwind.SearchBytes+4<<10, code...))}).Branches()
	require.Error(t, missing)
	require.Equal(t, frame.SearchBudget, frame.CodeOf(missing))
	require.EqualError(t, missing, "the search for the call that led here ended at its limit of 67108864 bytes of code")
	_, missing = (&Finder{Space: progspace.New(armCore(t, 1<<40, code...))}).Branches() // a JIT may reserve such a mapping
	require.Equal(t, frame.SearchBudget, frame.CodeOf(missing))
}

// tableOf returns the table of an object with one function.
func tableOf(t *testing.T, function machine.Range) *cfi.Table {
	t.Helper()
	var data []byte
	entry := func(parts ...any) {
		var b bytes.Buffer
		for _, part := range parts {
			require.NoError(t, binary.Write(&b, binary.LittleEndian, part))
		}
		b.Write(make([]byte, -b.Len()&7+4)) // pad so that, with its length field, the entry has a multiple of 8 bytes
		data = append(binary.LittleEndian.AppendUint32(data, uint32(b.Len())), b.Bytes()...)
	}
	entry(uint32(0), []byte{1, 0, 1, 0x78, 30, 0x0c, 31, 0}) // CIE: the return address is in x30, and the CFA is sp
	entry(uint32(len(data)+4), uint64(function.Start), uint64(function.End-function.Start))
	table, err := cfi.NewTable(cfi.Sections{Arch: machine.ARM64, EHFrame: cfi.Section{Addr: 0x8000, Data: bytes.NewReader(data), Size: int64(len(data))}})
	require.NoError(t, err)
	return table
}

// TestBranchesOfSeveralObjects requires that a jump in a range of code with several objects is classified by the functions of its own object.
func TestBranchesOfSeveralObjects(t *testing.T) {
	first, second := machine.Range{Start: 0x1000, End: 0x1020}, machine.Range{Start: 0x1020, End: 0x1060}
	// The first object's unwind information also claims the code of the second one. An unloaded object may leave such information.
	tables := []*cfi.Table{tableOf(t, machine.Range{Start: first.Start, End: second.End}), tableOf(t, second)}
	code := branchCode{table: func(at machine.Addr) *cfi.Table {
		switch {
		case first.Contains(at):
			return tables[0]
		case second.Contains(at):
			return tables[1]
		}
		return nil
	}}
	jump := func(from, to machine.Addr) bool {
		return code.leaves(binary.LittleEndian.AppendUint32(nil, 0x14000000|uint32(to-from)>>2&0x03ffffff), from) // b
	}
	require.False(t, jump(0x1008, 0x1010))
	require.False(t, jump(0x1030, 0x1040))
	require.True(t, jump(0x1030, 0x1010), "from the second object into the first one")
	require.False(t, jump(0x1008, 0x1010))
	require.True(t, jump(0x1008, 0x1040), "from the first object into the second one")
	require.True(t, jump(0x1008, 0x1070), "into code without CFI")
	require.True(t, jump(0x2000, 0x2010), "in code without CFI")
}
