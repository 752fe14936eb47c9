package unwind

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestPLT steps through two calls of a function of another module, instruction by instruction. The first call goes through the entry in the procedure
// linkage table, the first entry, and the start of the dynamic linker's binding code; the second through the entry and the function. Some linkers do
// not describe their tables in .eh_frame, and gdb then loses the caller. The expected result is the caller's frame, which is the same at each
// instruction of its callee.
func TestPLT(t *testing.T) {
	livetest.Slow(t)
	for _, build := range []struct {
		name  string
		flags []string
		lld   bool
		first int // number of steps in the first call
		in    int // number of steps of both calls that are in the PLT
	}{
		{"ld", []string{"-Wl,-z,lazy"}, false, 16, 6},
		{"ld endbr64", []string{"-Wl,-z,lazy,-z,ibtplt", "-fcf-protection"}, false, 16, 9},
		{"ld bound", []string{"-Wl,-z,now"}, false, 4, 2},
		{"lld", []string{"-Wl,-z,lazy"}, true, 16, 6},
		{"lld endbr64", []string{"-Wl,-z,lazy,-z,force-ibt", "-fcf-protection"}, true, 16, 9},
		{"lld bound", []string{"-Wl,-z,now"}, true, 4, 2},
	} {
		t.Run(build.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "plt")
			if build.lld {
				lld, err := exec.LookPath("ld.lld-19")
				require.NoError(t, err)
				dir := t.TempDir()
				require.NoError(t, os.Symlink(lld, filepath.Join(dir, "ld"))) // gcc looks there for a linker with that name
				build.flags = append(build.flags, "-B"+dir)
			}
			livetest.Make(t, "gcc", append(build.flags, "-O2", "-fPIE", "-pie", "-o", program, "testdata/plt.c")...)
			// The first call, up to the dynamic linker; then the second call.
			to := append(append([]string{"run"}, slices.Repeat([]string{"step"}, build.first)...), append([]string{"run"}, slices.Repeat([]string{"step"}, 5)...)...)
			var caller *Frame // the frame of the function named calls, at its last stop
			in := map[string]int{}
			for n, s := range stops(t, to, program) {
				stack := s.walk()
				require.True(t, stack.End.Complete, "moment %d: %s", n, stack.End.Reason)
				f := stack.Frames
				place := s.place(program, f[0].PC)
				in[place]++
				if place == "calls" {
					caller = &f[0]
					continue
				}
				require.Empty(t, f[1].Guess, "moment %d", n)
				require.Equal(t, "calls", s.place(program, f[1].PC))
				require.Equal(t, caller.CFA, f[1].CFA)
				for _, reg := range keptRegisters {
					require.Equal(t, valueOf(t, *caller, reg), valueOf(t, f[1], reg))
				}
				if place == "plt" {
					require.Equal(t, map[bool]Rule{true: FromCode, false: FromCFI}[build.lld], f[1].Rule)
				}
				if !build.lld || place != "plt" {
					require.Len(t, f, len(s.want))
					for i := range f {
						compareFrame(t, s.want[i], f, i)
					}
				}
			}
			require.Equal(t, build.in, in["plt"])
			require.Greater(t, in["elsewhere"], 5)
		})
	}
}

// place names the place of an address: the function of a program, "plt" for its procedure linkage table, or "elsewhere" for another file.
func (s stop) place(program string, pc machine.Addr) string {
	list := s.core.symbols(program)
	if f := list.at(pc); f != nil {
		return f.Name
	}
	for _, p := range list.plt {
		if uint64(pc)-p.Addr < p.Size {
			return "plt"
		}
	}
	return "elsewhere"
}
