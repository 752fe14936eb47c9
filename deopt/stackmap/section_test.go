package stackmap

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// compiled is a program of testdata/programs, or of this package's testdata, and the releases of LLVM whose llc accepts it.
type compiled struct {
	program  string
	releases []int
}

// In LLVM 14, neither opt nor llc accepts statepoints with opaque pointers.
var programs = []compiled{
	{"jit_pp.ll", []int{14, 16, 19, 22}},
	{"jit_sp.ll", []int{14, 16, 19, 22}},
	{"sm_spill.ll", []int{14, 16, 19, 22}},
	{"dup.ll", []int{14, 16, 19, 22}},
	{"pc_ret.ll", []int{14, 16, 19, 22}},
	{"host_mod.ll", []int{14, 16, 19, 22}},
	{"sp_push.ll", []int{16, 19, 22}},
	{"deoptimize.ll", []int{16, 19, 22}},
	{"testdata/shapes.ll", []int{16, 19, 22}},
}

// object compiles one of the programs.
func object(t testing.TB, version int, program string, flags ...string) string {
	t.Helper()
	if filepath.Dir(program) != "." {
		path, err := filepath.Abs(program)
		require.NoError(t, err)
		program = path
	}
	return livetest.Object(t, version, program, flags...)
}

// section returns the bytes of .llvm_stackmaps in a file.
func section(t testing.TB, path string) []byte {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	s := f.Section(".llvm_stackmaps")
	require.NotNil(t, s, path)
	data, err := s.Data()
	require.NoError(t, err)
	return data
}

// run runs a tool and returns its output. A file made with "-o" may come from a cache.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	if slices.Contains(args, "-o") {
		livetest.Make(t, name, args...)
		return ""
	}
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", cmd, stderr.String())
	return string(out)
}

// parsed parses a little-endian section, whose layout it detects.
func parsed(t testing.TB, data []byte) []*Map {
	t.Helper()
	s, err := Parse(data, Options{Order: binary.LittleEndian})
	require.NoError(t, err)
	return s.Maps
}

// blobs decodes maps.
func blobs(maps []*Map) []*Blob {
	var list []*Blob
	for _, m := range maps {
		list = append(list, m.Blob())
	}
	return list
}

// unplaced returns a copy of blobs whose records have no positions.
func unplaced(list []*Blob) []*Blob {
	clear := func(records []Record) []Record {
		records = slices.Clone(records)
		for i := range records {
			records[i].Pos = 0
		}
		return records
	}
	var out []*Blob
	for _, b := range list {
		c := *b
		c.Functions = slices.Clone(b.Functions)
		for i := range c.Functions {
			c.Functions[i].Records = clear(c.Functions[i].Records)
		}
		c.Unattributed = clear(c.Unattributed)
		out = append(out, &c)
	}
	return out
}

func describe(maps []*Map) string {
	var b bytes.Buffer
	for _, m := range maps {
		fmt.Fprintf(&b, "LLVM StackMap Version: %d\nNum Functions: %d\n", m.Version, len(m.Functions))
		for _, f := range m.Functions {
			fmt.Fprintf(&b, "  Function address: %d, stack size: %d, callsite record count: %d\n", uint64(f.Addr), f.StackSize, f.Len())
		}
		fmt.Fprintf(&b, "Num Constants: %d\n", m.NumConstants())
		for i := range m.NumConstants() {
			fmt.Fprintf(&b, "  #%d: %d\n", i+1, m.ConstantAt(i))
		}
		fmt.Fprintf(&b, "Num Records: %d\n", m.Len())
		for i := range m.Functions {
			for r := range m.Records(&m.Functions[i]) {
				fmt.Fprintf(&b, "  Record ID: %d, instruction offset: %d\n    %d locations:\n", r.ID, r.Offset, len(r.Locations))
				for i, l := range r.Locations {
					fmt.Fprintf(&b, "      #%d: %s, size: %d\n", i+1, where(m, l), l.Size)
				}
				fmt.Fprintf(&b, "    %d live-outs: [ ", len(r.LiveOuts))
				for _, l := range r.LiveOuts {
					fmt.Fprintf(&b, "R#%d (%d-bytes) ", l.Reg, l.Size)
				}
				fmt.Fprint(&b, "]\n")
			}
		}
	}
	return b.String()
}

// where formats a location in the form of llvm-readobj.
func where(m *Map, l Location) string {
	switch l.Kind {
	case Register:
		return fmt.Sprintf("Register R#%d", l.Reg)
	case Direct:
		return fmt.Sprintf("Direct R#%d + %d", l.Reg, l.Offset)
	case Indirect:
		return fmt.Sprintf("Indirect [R#%d + %d]", l.Reg, l.Offset)
	case Constant:
		return fmt.Sprintf("Constant %d", uint32(l.Offset))
	}
	v, err := m.Constant(l)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("ConstantIndex #%d (%d)", l.Offset, v)
}
