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
	require.NoError(t, os.Truncate(path, start+size)) // the rest is sparse
	core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { core.Close() })
	return core
}

// TestBranchesWithinBudget requires that all branches of code within the budget are listed, and that of more code the reason names the budget.
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
	_, missing = (&Finder{Space: progspace.New(armCore(t, 1<<40, code...))}).Branches() // as a JIT may reserve
	require.Equal(t, frame.SearchBudget, frame.CodeOf(missing))
}
