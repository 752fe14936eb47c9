package frametest

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/test/livetest"
)

// ReadModule parses the text of a module.
func ReadModule(t *testing.T, name, text string) *ir.Module {
	t.Helper()
	m, err := ir.Parse(name, []byte(text))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return m
}

// Written writes a module to a file and parses it.
func Written(t *testing.T, name, text string) (path string, m *ir.Module) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path, ReadModule(t, name, text)
}

// LLC compiles a module. It does not run the pass that rewrites statepoints.
func LLC(t *testing.T, version int, path string, flags ...string) string {
	t.Helper()
	object := strings.TrimSuffix(path, ".ll") + ".o"
	Command(t, "", livetest.LLVM(t, version, "llc"), append(flags, "-filetype=obj", path, "-o", object)...)
	return object
}

// MapsOf reads the maps of a file with the given modules.
func MapsOf(t *testing.T, path string, modules ...*ir.Module) *maps.Maps {
	t.Helper()
	m, err := maps.OfFile(path, maps.Options{Modules: modules})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

// Readings returns a line for each record: the number of its map, its function, and the names of its operands or the reason why they are unknown.
func Readings(t *testing.T, m *maps.Maps) []string {
	t.Helper()
	var out []string
	for _, i := range m.Images {
		for f := range i.Functions() {
			for rec := range f.Records() {
				var r maps.Reading
				f.Read(rec, &r)
				var names []string
				for n := range rec.Locations {
					if name := r.Role(n).Name; name != "" {
						names = append(names, name)
					}
				}
				require.True(t, len(names) == 0 || r.Note == "", "%v %s", names, r.Note)
				out = append(out, fmt.Sprintf("%d %s: %s%s", f.Number, f.Name, strings.Join(names, " "), r.Note))
			}
		}
	}
	return out
}

// TryLLC compiles a module with llc, and reports whether llc succeeds. llc is killed after some seconds of processor time, or if it uses gigabytes,
// because for some modules it never ends.
func TryLLC(t *testing.T, version int, text string, flags ...string) (object string, ok bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.ll")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	// The limit exceeds the time of every compilation that ends.
	args := append([]string{"-c", `ulimit -t 5 && ulimit -v 4000000 && ulimit -c 0 && exec "$0" "$@"`, livetest.LLVM(t, version, "llc"), "-filetype=obj"}, flags...)
	object, failure := livetest.TryMade(t, "sh", "m.o", append(args, path)...)
	require.NotContains(t, failure, "error: expected", "it is no module:\n%s", text)
	return object, failure == ""
}

// Readobj returns the output of llvm-readobj for the stack map of an object.
func Readobj(t *testing.T, object string) string {
	t.Helper()
	out, err := exec.Command(livetest.LLVM(t, 19, "llvm-readobj"), "--stackmap", object).Output()
	require.NoError(t, err)
	return string(out)
}

// MapOf encodes a map and parses it.
func MapOf(t *testing.T, constants []uint64, functions ...stackmap.BlobFunction) *stackmap.Map {
	t.Helper()
	data, err := stackmap.AppendBlob(nil, binary.LittleEndian, &stackmap.Blob{Version: 3, Dialect: stackmap.V3, Functions: functions, Constants: constants})
	require.NoError(t, err)
	m, _, err := stackmap.ParseOne(data, stackmap.Options{Order: binary.LittleEndian})
	require.NoError(t, err)
	return m
}
