//go:build amd64 || arm64

package ptrace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-delve/delve/pkg/proc"
	"github.com/go-delve/delve/pkg/proc/native"
	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// delveDump makes Delve write a core of a process and detach, and returns the core's path.
func delveDump(t *testing.T, pid int, flags proc.DumpFlags) string {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	real := os.Stderr
	os.Stderr = null // Delve writes there that the program has no DWARF information
	defer func() { os.Stderr = real }()
	group, err := native.Attach(pid, nil, nil)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "core")
	f, err := os.Create(path)
	require.NoError(t, err)
	state := &proc.DumpState{}
	group.Selected.Dump(f, flags, state)
	require.NoError(t, state.Err)
	require.True(t, state.AllDone)
	for addr, own := range group.Selected.Breakpoints().M { // otherwise Delve leaves its own breakpoint in the dynamic linker when it detaches
		for _, let := range own.Breaklets {
			let.Kind = proc.UserBreakpoint
		}
		require.NoError(t, group.Selected.ClearBreakpoint(addr))
	}
	require.NoError(t, group.Detach(false))
	return path
}

// TestCoreOfDelve requires that a core written by Delve has the threads, registers and modules of the process, in both formats of its notes.
func TestCoreOfDelve(t *testing.T) {
	p := program(t, "regs.c", []string{"-no-pie"}, "pause")
	exe := executable(t, "regs.c", "-no-pie")
	for name, flags := range map[string]proc.DumpFlags{"notes of the kernel": 0, "notes of its own": proc.DumpPlatformIndependent} {
		t.Run(name, func(t *testing.T) {
			path := delveDump(t, p.PID, flags)
			live := capture(t, p.PID, Options{})
			core, err := OpenCore(path, CoreOptions{Exe: exe})
			require.NoError(t, err)
			t.Cleanup(core.Close)
			require.Equal(t, p.PID, core.PID)
			require.Empty(t, core.Notes)
			require.Len(t, core.Threads(), 2)
			for i, want := range live.Threads() {
				got := core.Threads()[i]
				require.Equal(t, want.ID, got.ID)
				for _, reg := range machine.AMD64.Registers() {
					w, err := want.Registers.Bytes(reg)
					if err != nil || reg > 32 {
						continue
					}
					g, err := got.Registers.Bytes(reg)
					require.NoError(t, err, machine.AMD64.RegisterName(reg))
					if reg < 17 {
						require.Equal(t, w, g, machine.AMD64.RegisterName(reg))
						continue
					}
					require.GreaterOrEqual(t, len(g), 16)
					require.Equal(t, w[:len(g)], g, machine.AMD64.RegisterName(reg))
				}
			}
			require.Equal(t, exe, core.Modules[0].Path)
			require.NotNil(t, core.Modules[0].Image)
			if flags == 0 {
				require.Contains(t, core.Command, " pause")
				libc := ""
				for _, m := range core.Modules {
					if filepath.Base(m.Path) == "libc.so.6" {
						require.NotNil(t, m.Image, m.Why)
						require.Empty(t, m.Unverified)
						libc = m.Path
					}
				}
				require.NotEmpty(t, libc, "the list of the dynamic linker names it")
			}
		})
	}
}

// TestDelveThreadOfARM64 reads a thread of arm64 in Delve's own format, complete and truncated at each byte.
func TestDelveThreadOfARM64(t *testing.T) {
	var note []byte
	words := func(list ...uint64) {
		for _, w := range list {
			note = binary.LittleEndian.AppendUint64(note, w)
		}
	}
	words(4711, 0x401000, 0x7ff0, 0x7ff8, 0)
	note = append(note, 0)
	words(0)
	note = binary.LittleEndian.AppendUint32(note, 3)
	for name, content := range map[string][]byte{"X19": bytes.Repeat([]byte{0x19}, 8), "V3": bytes.Repeat([]byte{3}, 16), "PSTATE": make([]byte, 8)} {
		for _, part := range [][]byte{[]byte(name), content} {
			note = append(binary.LittleEndian.AppendUint16(note, uint16(len(part))), part...)
		}
	}
	read := func(n int) []machine.Thread {
		img := &coreImage{order: binary.LittleEndian, machine: elf.EM_AARCH64, unit: 1}
		img.note("Delve Header", uint32(delveHeader), []byte("linux/arm64\nVersion: 1.27.2\nTarget Pid: 4710\nEntry Point: 0x400580\n"))
		img.note("", uint32(delveThread), note[:n])
		img.load(0x10000000, elf.PF_R|elf.PF_W, make([]byte, 16), 0x1000)
		core := readBytes(t, img.bytes())
		require.Equal(t, 4710, core.PID)
		return core.Threads()
	}
	all := read(len(note))
	require.Len(t, all, 1)
	require.Equal(t, 4711, all[0].ID)
	for reg, want := range map[machine.DWARFReg]uint64{machine.ARM64.PC: 0x401000, machine.ARM64.SP: 0x7ff0, 19: 0x1919191919191919} {
		got, err := all[0].Registers.Uint(reg)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	v3, err := all[0].Registers.Bytes(64 + 3)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{3}, 16), v3)
	_, err = all[0].Registers.Bytes(0)
	require.EqualError(t, err, "x0: not in the core")
	for n := range note {
		for _, th := range read(n) { // a truncated register is unknown
			if b, err := th.Registers.Bytes(19); err == nil {
				require.Equal(t, bytes.Repeat([]byte{0x19}, 8), b)
			}
		}
	}
}
