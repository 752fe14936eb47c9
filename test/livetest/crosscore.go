package livetest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// dumpScript is a gdb script that runs the program until it gets a signal. It prints the registers, and the readable memory in ranges and in the
// stack.
const dumpScript = `
import base64, json, gdb
gdb.execute("continue", to_string=True)
print(json.dumps({"registers": [int(gdb.parse_and_eval("(unsigned long)$" + name)) for name in registers]}))
memory = gdb.selected_inferior()
def show(start, end):
    try:
        data = memory.read_memory(start, end - start).tobytes()
    except gdb.error:
        return False
    print(json.dumps({"start": start, "data": base64.b64encode(data).decode()}))
    return True
for start, end in ranges:
    show(start, end)
page = int(gdb.parse_and_eval("(unsigned long)$sp")) & -4096
while show(page, page + 4096):
    page += 4096
`

// RISCV64Core runs a static program that a signal ends, and returns the path of a core with its general registers and memory. gdb reads these through
// QEMU's stub, since QEMU 7.2 cannot write such a core.
func RISCV64Core(t testing.TB, c *Cross, program string, args ...string) string {
	t.Helper()
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, elf.EM_RISCV, file.Machine)
	var ranges [][2]uint64
	flags := map[uint64]elf.ProgFlag{}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD {
			start := p.Vaddr &^ 4095
			ranges = append(ranges, [2]uint64{start, (p.Vaddr + p.Memsz + 4095) &^ 4095})
			flags[start] = p.Flags
		}
	}
	// The order is that of struct user_regs_struct, which has pc in the place of x0.
	registers := []string{"pc"}
	for n := 1; n < 32; n++ {
		registers = append(registers, fmt.Sprintf("x%d", n))
	}
	given := func(name string, value any) string {
		b, err := json.Marshal(value)
		require.NoError(t, err)
		return fmt.Sprintf("python %s=%s", name, b)
	}
	script := filepath.Join(t.TempDir(), "dump.py")
	require.NoError(t, os.WriteFile(script, []byte(dumpScript), 0o644))
	out := c.GDB(t, script, []string{given("ranges", ranges), given("registers", registers)}, program, args...)

	// In struct elf_prstatus the pid is at offset 32, and the registers are at offset 112.
	status := make([]byte, 376)
	binary.LittleEndian.PutUint32(status[32:], 1)
	var memory []elf.Prog64
	var contents [][]byte
	for line := range bytes.Lines(out) {
		var l struct {
			Registers []uint64
			Start     uint64
			Data      []byte
		}
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		require.NoError(t, json.Unmarshal(line, &l), "%s", line)
		for n, v := range l.Registers {
			binary.LittleEndian.PutUint64(status[112+8*n:], v)
		}
		if l.Data != nil {
			f, known := flags[l.Start]
			if !known {
				f = elf.PF_R | elf.PF_W
			}
			size := uint64(len(l.Data))
			memory = append(memory, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(f), Vaddr: l.Start, Filesz: size, Memsz: size, Align: 1})
			contents = append(contents, l.Data)
		}
	}
	require.NotEmpty(t, memory, "%s", out)
	return writeCore(t, status, nil, memory, contents)
}

// writeCore writes a RISC-V core with one thread, and with its float registers if they are known.
func writeCore(t testing.TB, status, floats []byte, memory []elf.Prog64, contents [][]byte) string {
	t.Helper()
	var note bytes.Buffer
	put := func(b *bytes.Buffer, v any) { require.NoError(t, binary.Write(b, binary.LittleEndian, v)) }
	put(&note, [3]uint32{5, uint32(len(status)), uint32(elf.NT_PRSTATUS)})
	note.WriteString("CORE\x00\x00\x00\x00")
	note.Write(status)
	if floats != nil {
		put(&note, [3]uint32{5, uint32(len(floats)), uint32(elf.NT_FPREGSET)})
		note.WriteString("CORE\x00\x00\x00\x00")
		note.Write(floats)
	}

	const header, row = 64, 56
	at := uint64(header + row*(len(memory)+1))
	var core bytes.Buffer
	put(&core, elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_CORE), Machine: uint16(elf.EM_RISCV), Version: uint32(elf.EV_CURRENT),
		Phoff: header, Ehsize: header, Phentsize: row, Phnum: uint16(len(memory) + 1),
	})
	put(&core, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(note.Len()), Align: 4})
	at += uint64(note.Len())
	for _, p := range memory {
		p.Off = at
		at += p.Filesz
		put(&core, p)
	}
	core.Write(note.Bytes())
	for _, c := range contents {
		core.Write(c)
	}
	path := filepath.Join(t.TempDir(), "core")
	require.NoError(t, os.WriteFile(path, core.Bytes(), 0o644))
	return path
}
