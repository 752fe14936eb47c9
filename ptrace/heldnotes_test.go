package ptrace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
)

// filled is memory with one readable page, in which each byte is the low byte of its address.
type filled machine.Addr

func (f filled) Read(p []byte, addr machine.Addr) (int, error) {
	for i := range p {
		at := addr + machine.Addr(i)
		if at < machine.Addr(f) || at >= machine.Addr(f)+0x1000 {
			return i, context.DeadlineExceeded
		}
		p[i] = byte(at)
	}
	return len(p), nil
}

// TestRecordHeld requires that a core of a held process has exactly the registers that the debugger provided, on each architecture.
func TestRecordHeld(t *testing.T) {
	for _, a := range machine.Archs() {
		if a.Pointer != 8 {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			regs := machine.NewRegisters(a, "not given")
			regs.SetUint(a.PC, 0x10010)
			regs.SetUint(a.SP, 0x10100)
			var vector, absent machine.DWARFReg
			for _, reg := range a.Registers() {
				info, _ := a.Register(reg)
				if info.Class == machine.Vector && vector == 0 {
					vector = reg
					regs.Set(reg, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}[:min(16, info.Size)])
				}
				if info.Class == machine.General && reg != a.SP && reg != a.PC {
					absent = reg
				}
			}
			regs.SetThreadPointer(0x10200)
			held := &holder.State{Kind: holder.Remote, Addr: "here", Arch: a, PID: 7, Command: "work", Memory: filled(0x10000),
				Threads:  []machine.Thread{{ID: 7, Name: "first", Registers: regs}, {ID: 8, Name: "second", Missing: "not selected"}},
				Mappings: []machine.Mapping{{Start: 0x10000, End: 0x11000, Read: true, Write: true, Exec: true}}}
			target, err := OpenHeld(held, CoreOptions{})
			require.NoError(t, err)
			defer target.Close()
			path := filepath.Join(t.TempDir(), "held.core")
			written, err := target.WriteCore(context.Background(), path, RecordOptions{Memory: Minimal})
			require.NoError(t, err)
			require.Equal(t, []string{"thread 8: not selected"}, written.LeftOut)
			core, err := OpenCore(path, CoreOptions{})
			require.NoError(t, err)
			defer core.Close()
			require.Equal(t, a, core.Arch())
			require.Equal(t, 7, core.PID)
			require.Equal(t, "work", core.Command)
			require.Len(t, core.Threads(), 1)
			got := core.Threads()[0]
			require.Equal(t, "first", got.Name)
			for _, reg := range []machine.DWARFReg{a.PC, a.SP, vector} {
				want, err := regs.Bytes(reg)
				require.NoError(t, err)
				b, err := got.Registers.Bytes(reg)
				require.NoError(t, err, a.RegisterName(reg))
				require.Equal(t, want, b, a.RegisterName(reg))
			}
			_, err = got.Registers.Bytes(absent)
			require.ErrorContains(t, err, notHeld, a.RegisterName(absent))
			require.Equal(t, machine.Addr(0x10200), got.Registers.ThreadPointer())
			b := make([]byte, 4)
			require.NoError(t, core.ReadMemory(b, 0x10101))
			require.Equal(t, []byte{1, 2, 3, 4}, b)
		})
	}
}

// TestHeldErrorKeepsNotes requires that, if a target cannot be opened, the error contains the notes of the debugger and later notes.
func TestHeldErrorKeepsNotes(t *testing.T) {
	object := filepath.Join(t.TempDir(), "missing.o")
	for name, o := range map[string]CoreOptions{"no object": {Given: []Object{{Path: object}}}, "no directory": {Sysroot: object}} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenHeld(&holder.State{Kind: holder.Remote, Addr: "here", Arch: machine.AMD64, PID: 7, Memory: filled(0x10000), Program: "/nonexistent/program",
				Notes: []string{"the stub does not list memory", "it has other processes"}}, o)
			require.ErrorIs(t, err, os.ErrNotExist)
			require.ErrorContains(t, err, object)
			require.ErrorContains(t, err, "(note: the stub does not list memory; it has other processes")
			require.Equal(t, o.Given != nil, strings.Contains(err.Error(), "; its program /nonexistent/program is not used: "), err)
		})
	}
}
