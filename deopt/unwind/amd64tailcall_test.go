package unwind

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// tails compiles testdata/tails.c and tailslib.c.
func tails(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	program, library := filepath.Join(dir, "tails"), filepath.Join(dir, "libtails.so")
	flags = append([]string{"-O2", "-g", "-freorder-blocks-and-partition"}, flags...)
	livetest.Make(t, "gcc", append(flags, "-shared", "-fPIC", "-o", library, "testdata/tailslib.c")...)
	run(t, livetest.Tool(t, "gcc"), append(flags, "-fPIE", "-pie", "-o", program, "testdata/tails.c", library, "-Wl,-rpath,"+dir)...)
	return program
}

// TestTailCalls requires the frames that are missing because of tail calls. gdb knows them from DWARF's call sites, if a function can leave in only
// one way, and the unwinder from the call instruction.
func TestTailCalls(t *testing.T) {
	livetest.Slow(t)
	for b, build := range []struct {
		name  string
		flags []string
	}{
		{"lazy", []string{"-Wl,-z,lazy"}},
		{"bound", []string{"-Wl,-z,now"}},
		{"endbr64", []string{"-fcf-protection", "-Wl,-z,lazy,-z,ibtplt"}},
		{"no PLT", []string{"-fno-plt"}},
	} {
		program := tails(t, build.flags...)
		for w, test := range []struct {
			way      string
			inner    string // function of the frame below, if that matters
			ours     string
			gdbs     string
			indirect string // expected result without a PLT, where a call does not contain its target
		}{
			{way: "direct", ours: "direct: jumps", gdbs: "direct: jumps", indirect: "direct: jumps"},
			{way: "twice", ours: "twice: jumps_twice", gdbs: "twice: jumps_twice", indirect: "twice: jumps_twice"},
			{way: "stub", ours: "stub: only_jumps", gdbs: "stub: only_jumps", indirect: "stub: only_jumps"},
			{way: "through_plt", ours: "through_plt: far_jumps", gdbs: "through_plt: far_jumps"},
			{way: "to_plt", ours: "to_plt: jumps_far", gdbs: "to_plt: jumps_far", indirect: "to_plt: jumps_far"},
			{way: "far_and_back", ours: "far_and_back: far_jumps_on"},
			{way: "pointer", ours: "pointer: jumps_by_pointer", indirect: "pointer: jumps_by_pointer"},
			{way: "mutual", ours: "mutual: even", indirect: "mutual: even"},
			// The target of a call through a register is unknown.
			{way: "by_pointer"},
			// No frame is missing.
			{way: "later", inner: "jumps_later"},
			{way: "repeat", inner: "repeats"},
			{way: "cold", inner: "splits.cold"},
			{way: "ended", inner: "calls_never"},
			{way: "copies"},
		} {
			if !livetest.Whole() && b != w%4 {
				continue // without FIDELITY=all, each kind of tail call is tested with one of the builds
			}
			t.Run(build.name+"/"+test.way, func(t *testing.T) {
				s := stops(t, []string{"run"}, program, test.way)[0]
				stack := s.walk()
				require.True(t, stack.End.Complete, stack.End.Reason)
				require.Len(t, stack.Frames, len(s.want))
				var ours, gdbs []string
				for i, f := range stack.Frames {
					compareFrame(t, s.want[i], stack.Frames, i)
					if s.want[i].Name == test.way && test.inner != "" {
						require.Equal(t, test.inner, s.core.nameOf(stack.Frames[i-1].FDE.Start))
					}
					if f.Skipped != 0 {
						ours = append(ours, s.want[i].Name+": "+s.core.nameOf(f.Skipped))
					}
					if jumped := s.want[i].Jumped; len(jumped) > 0 { // ordered from inner to outer
						gdbs = append(gdbs, s.want[i].Name+": "+jumped[len(jumped)-1])
					}
				}
				want := test.ours
				if build.name == "no PLT" {
					want = test.indirect
				}
				require.Equal(t, want, strings.Join(ours, ", "))
				require.Equal(t, test.gdbs, strings.Join(gdbs, ", "))
			})
		}
	}
}

// TestParts stops in a function that is called from split-off parts of another function, each with an FDE and a symbol. The parts jump to each
// other, and the test requires that no frame is reported as missing.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	object, program := filepath.Join(dir, "parts.o"), filepath.Join(dir, "parts")
	livetest.Make(t, "llc-19", "-O2", "-relocation-model=pic", "-basic-block-sections=all", "-filetype=obj", "-o", object, "testdata/parts.ll")
	livetest.Make(t, "gcc", "-O2", "-fPIE", "-pie", "-o", program, "testdata/parts.c", object)
	for _, s := range stops(t, []string{"run", "run"}, program) {
		f := s.walk().Frames
		require.Len(t, f, len(s.want))
		require.Equal(t, "stops", s.core.nameOf(f[0].FDE.Start))
		require.Contains(t, s.core.nameOf(f[1].FDE.Start), "split.__part.")
		for i := range f {
			compareFrame(t, s.want[i], f, i)
			require.Zero(t, f[i].Skipped, "frame #%d", i)
		}
	}
}
