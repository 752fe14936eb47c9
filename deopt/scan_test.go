package deopt_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestUnregisteredObjectsInOneMapping requires that the scan finds the maps of two unregistered objects in one mapping, and that the frame has
// the record of the running one.
func TestUnregisteredObjectsInOneMapping(t *testing.T) { unregisteredObjects(t) }

// TestUnregisteredObjectsInMemoryMappedTwice requires the same as TestUnregisteredObjectsInOneMapping for a memfd that is mapped twice. The scan must
// find each map once. JITs without memory that is both writable and executable use such mappings.
func TestUnregisteredObjectsInMemoryMappedTwice(t *testing.T) { unregisteredObjects(t, "-DTWICE") }

func unregisteredObjects(t *testing.T, flags ...string) {
	t.Helper()
	include := "-I" + filepath.Join("..", "internal", "demo", "target")
	p := livetest.C(t, "unregistered.c", append(flags, include), livetest.Object(t, 19, "host_mod.ll"))
	m, err := ir.ParseFile(livetest.Testdata(t, "programs", "host_mod.ll"))
	require.NoError(t, err)
	v := frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{m}})
	require.Len(t, v.Space().Found.Maps, 2)
	f := recorded(t, v)
	require.EqualValues(t, 31, f.Record.ID)
	require.EqualValues(t, f.Record.Offset+13, *f.Offset, "the call of a patchpoint is 13 bytes long")
	require.Contains(t, strings.Join(f.Notes, "\n"), "its function has no symbol; its records are those of @jf")
	check(t, f, map[string]string{"%a": "1000", "%b": "7", "%x": "1007", "%y": "7000", "%d": "2.5"}, []string{"3"})
}
