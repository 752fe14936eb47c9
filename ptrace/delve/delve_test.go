package delve

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/test/livetest"
)

// dlv may reply late on a busy machine.
func init() { defaultTime = 6 * livetest.Patience }

// attached returns a process, the state that a capture read before, and the address of a dlv server that has attached to the process.
func attached(t *testing.T, flags ...string) (*livetest.Process, *ptrace.Target, string) {
	t.Helper()
	p := livetest.C(t, filepath.Join("..", "ptrace", "testdata", "regs.c"), nil, "pause")
	before, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(before.Close)
	return p, before, livetest.Headless(t, append([]string{"attach", strconv.Itoa(p.PID)}, flags...)...).Addr
}

// both runs a test with the files of this machine, and with the server alone.
func both(t *testing.T, f func(t *testing.T, look bool)) {
	t.Run("files", func(t *testing.T) { f(t, true) })
	t.Run("requests", func(t *testing.T) { f(t, false) })
}

// TestOpen requires that registers, memory and files equal those that ptrace read of the same stopped process.
func TestOpen(t *testing.T) {
	p, before, addr := attached(t, "--accept-multiclient")
	both(t, func(t *testing.T, look bool) {
		s, err := open(t.Context(), addr, Options{}, look)
		require.NoError(t, err)
		defer s.Close()
		require.Equal(t, p.PID, s.PID)
		require.Equal(t, before.Command, s.Command)
		require.Len(t, s.Threads, len(before.Threads()))
		for i, want := range before.Threads() {
			got := s.Threads[i]
			require.Equal(t, want.ID, got.ID)
			require.Equal(t, want.Registers.ThreadPointer(), got.Registers.ThreadPointer())
			wantFloats, err := want.Registers.FloatControl()
			require.NoError(t, err)
			floats, err := got.Registers.FloatControl()
			require.NoError(t, err)
			require.Equal(t, wantFloats, floats)
			for _, reg := range machine.AMD64.Registers() {
				w, err := want.Registers.Bytes(reg)
				if err != nil || reg > 48 {
					continue
				}
				g, err := got.Registers.Bytes(reg)
				require.NoError(t, err, machine.AMD64.RegisterName(reg))
				if reg >= 17 && reg < 33 && got.ID == p.PID {
					require.GreaterOrEqual(t, len(g), 16) // Delve omits the upper part if the thread has never used it
					w = w[:len(g)]
				}
				require.Equal(t, w, g, machine.AMD64.RegisterName(reg))
			}
			sp, err := want.Registers.Addr(machine.AMD64.SP)
			require.NoError(t, err)
			stack, same := make([]byte, 256), make([]byte, 256)
			require.NoError(t, before.ReadMemory(stack, sp))
			n, err := s.Memory.Read(same, sp)
			require.NoError(t, err)
			require.Equal(t, stack, same[:n])
		}
		auxv, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/auxv")
		require.NoError(t, err)
		require.Equal(t, auxv, s.Auxv)
		exe, err := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/exe")
		require.NoError(t, err)
		if look {
			require.NotEmpty(t, s.Mappings)
			require.Empty(t, s.Notes)
			return
		}
		require.Nil(t, s.Mappings)
		require.Equal(t, exe, s.Program)
		require.Len(t, s.Notes, 2)
		for _, f := range s.Files {
			m := before.ModuleAt(f.Bias)
			require.NotNil(t, m, f.Path)
			own, err := filepath.EvalSymlinks(f.Path)
			require.NoError(t, err)
			require.Equal(t, m.Path, own)
		}
	})
}

// TestBreakpoints requires that memory contains the code of the process, and not Delve's breakpoint in the dynamic linker.
func TestBreakpoints(t *testing.T) {
	_, before, addr := attached(t, "--accept-multiclient")
	both(t, func(t *testing.T, look bool) {
		s, err := open(t.Context(), addr, Options{}, look)
		require.NoError(t, err)
		defer s.Close()
		patches := s.Memory.(*memory).patches
		require.Len(t, patches, 1)
		at := patches[0].at
		var code, raw [8]byte
		require.NoError(t, before.ReadMemory(code[:], at-4))
		_, err = s.Memory.(*memory).read(raw[:], at-4)
		require.NoError(t, err)
		require.NotEqual(t, code, raw)
		_, err = s.Memory.Read(raw[:], at-4)
		require.NoError(t, err)
		require.Equal(t, code, raw)
	})
}

// TestEndOfMemory requires that memory is read up to the first byte that is not mapped.
func TestEndOfMemory(t *testing.T) {
	_, before, addr := attached(t, "--accept-multiclient")
	maps, err := before.Mappings()
	require.NoError(t, err)
	end := maps[len(maps)-1].End
	for _, m := range maps {
		if m.Path == "[stack]" {
			end = m.End
		}
	}
	both(t, func(t *testing.T, look bool) {
		s, err := open(t.Context(), addr, Options{}, look)
		require.NoError(t, err)
		defer s.Close()
		for _, before := range []int{8, 4096, 5000, 65536} {
			b := make([]byte, 64<<10)
			n, err := s.Memory.Read(b, end-machine.Addr(before))
			if before == len(b) {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
				require.NotErrorIs(t, err, holder.ErrLost)
			}
			require.Equal(t, before, n)
		}
		n, err := s.Memory.Read(make([]byte, 16), 8)
		require.Error(t, err)
		require.Zero(t, n)
	})
}

// TestProgramOfRelativePath requires a note if the path of the program is unknown and the user does not give it.
func TestProgramOfRelativePath(t *testing.T) {
	exe := livetest.CBinary(t, "nojit.c")
	p := livetest.Program(t, "sh", "-c", `cd "$1" && exec "./$2"`, "sh", filepath.Dir(exe), filepath.Base(exe))
	addr := livetest.Headless(t, "attach", strconv.Itoa(p.PID), "--accept-multiclient").Addr
	for _, given := range []bool{false, true} {
		s, err := open(t.Context(), addr, Options{Program: given}, false)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.NotEmpty(t, s.Auxv)
		require.Empty(t, s.Program)
		require.Equal(t, !given, strings.Contains(strings.Join(s.Notes, "\n"), "give it with --exe"), s.Notes)
	}
}

// TestLongVectors requires a limit on the size of an auxiliary vector, so that the time to search a hostile stack is linear.
func TestLongVectors(t *testing.T) {
	vector := func(entries int) (b []byte) {
		add := func(words ...uint64) {
			for _, w := range words {
				b = binary.LittleEndian.AppendUint64(b, w)
			}
		}
		for range entries - 4 {
			add(atExecFn, 1)
		}
		add(atPageSize, pageSize, atPhdr, 1, atPhent, programHeader, 0, 0)
		return b
	}
	require.Equal(t, vector(64), auxvIn(vector(64)))
	require.Nil(t, auxvIn(vector(65)))
	entry := vector(4)[16:48]
	require.Nil(t, auxvIn(slices.Repeat(entry, maxStack/len(entry))))
}
