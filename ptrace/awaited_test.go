package ptrace

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// TestPagesThatAreNeverProvided requires that no capture or read waits for absent pages of a stack, code or heap that a userfaultfd server never
// provides. Present pages must be read, also those after absent pages. For absent pages the error must name this reason. The process must resume
// afterwards.
func TestPagesThatAreNeverProvided(t *testing.T) {
	const page = elfcore.Page
	p := program(t, "awaited.c", []string{"-O1", "-fno-omit-frame-pointer"})
	at := map[string]machine.Addr{}
	for line := range strings.Lines(p.Output()) {
		var name string
		var addr uint64
		if n, _ := fmt.Sscanf(line, "%s %v", &name, &addr); n == 2 {
			at[name] = machine.Addr(addr)
		}
	}
	require.Len(t, at, 3, p.Output())
	const why = "not present: userfaultfd provides it on access"
	var b [8]byte
	reads := func(t *testing.T, mem machine.Memory, names ...string) {
		for _, name := range names {
			there, absent := at[name], at[name]+page
			if name == "hole" {
				there, absent = at[name]+16*page, at[name]
			}
			require.NoError(t, mem.ReadMemory(b[:], there), name)
			require.Equal(t, [8]byte{0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3}, b, name)
			require.ErrorContains(t, mem.ReadMemory(b[:], absent), why, name)
		}
	}
	t.Run("copied", func(t *testing.T) {
		target, err := Capture(p.PID, Options{})
		require.NoError(t, err)
		defer target.Close()
		reads(t, target, "hole", "code")
	})
	t.Run("held", func(t *testing.T) {
		target, err := Capture(p.PID, Options{Hold: true})
		require.NoError(t, err)
		defer target.Close()
		reads(t, target, "hole", "code", "heap")
	})
	t.Run("surveyed", func(t *testing.T) {
		target, err := Survey(p.PID, Options{})
		require.NoError(t, err)
		defer target.Close()
		reads(t, target, "hole", "code", "heap")
	})
	t.Run("under control", func(t *testing.T) {
		s, err := Open(t.Context(), p.PID)
		require.NoError(t, err)
		target, err := s.Target()
		require.NoError(t, err)
		reads(t, target, "hole", "code", "heap")
		require.Error(t, s.Insert(Breakpoint{Addr: at["code"] + page}), "no code is there")
		require.NoError(t, s.Detach())
	})
	for _, memory := range []CoreMemory{Minimal, Writable, All} {
		t.Run(fmt.Sprint("recorded, ", memory), func(t *testing.T) {
			target, err := Capture(p.PID, Options{Record: true, Hold: memory != Minimal})
			require.NoError(t, err)
			defer target.Close()
			path := filepath.Join(t.TempDir(), "core")
			_, err = target.WriteCore(t.Context(), path, RecordOptions{Memory: memory})
			require.NoError(t, err)
			c, err := OpenCore(path, CoreOptions{})
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.ReadMemory(b[:], at["hole"]+16*page))
			require.Error(t, c.ReadMemory(b[:], at["hole"]))
		})
	}
	p.Signal(t, syscall.SIGUSR1)
	require.NoError(t, p.Wait())
	require.Contains(t, p.Output(), "done")
}

// TestReadsWithoutTheFile requires that process_vm_readv(2) does not wait for such pages either. It is used if /proc/PID/mem cannot be opened.
func TestReadsWithoutTheFile(t *testing.T) {
	const page = elfcore.Page
	p, at := untouched(t)
	l := live(p.PID)
	denied := &Error{p.PID, "cannot open", ErrPermission, ""}
	there, absent := at["provided"]+touchedAt, at["provided"]+touchedAt+page
	wants := wantsOf(absent, there, 8, at["private"]+touchedAt)
	require.NoError(t, l.readManyWithoutFile(wants, denied))
	require.Equal(t, []bool{false, false, false, true}, []bool{wants[0].OK, wants[1].OK, wants[2].OK, wants[3].OK}, "of mappings that are provided nothing is read")
	require.Equal(t, []byte{1}, wants[3].Buf)

	l.provided = &provisions{} // userfaultfd has provided a mapping since the list was read
	l.provided.once.Do(func() {})
	wants = wantsOf(there, absent)
	require.NoError(t, l.readManyWithoutFile(wants, denied))
	require.False(t, wants[1].OK)
	_, err := l.mem.ReadWithin(livetest.Patience, wantsOf(there))
	require.ErrorContains(t, err, "takes too long", "the thread still waits")
	p.Kill()
}

func wantsOf(addrs ...machine.Addr) (wants []system.Want) {
	for _, a := range addrs {
		wants = append(wants, system.Want{Addr: a, Buf: make([]byte, 1)})
	}
	return wants
}
