package stackmap

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// compiled is one program of testdata/programs, or of this package's testdata, and
// the releases of LLVM whose llc takes it.
type compiled struct {
	program  string
	releases []int
}

// Of LLVM 14, neither opt nor llc takes statepoints with opaque pointers.
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

// section returns the bytes of .llvm_stackmaps as they stand in a file.
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

// run runs a tool and returns what it prints.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", cmd, stderr.String())
	return string(out)
}

// writer writes a section by hand.
type writer struct {
	order binary.AppendByteOrder
	b     []byte
}

func (w *writer) u8(v ...uint8) *writer { w.b = append(w.b, v...); return w }

func (w *writer) u16(v ...uint16) *writer {
	for _, v := range v {
		w.b = w.order.AppendUint16(w.b, v)
	}
	return w
}

func (w *writer) u32(v ...uint32) *writer {
	for _, v := range v {
		w.b = w.order.AppendUint32(w.b, v)
	}
	return w
}

func (w *writer) u64(v ...uint64) *writer {
	for _, v := range v {
		w.b = w.order.AppendUint64(w.b, v)
	}
	return w
}

// location writes a kind, a size, a register and an offset.
func (w *writer) location(kind uint8, size, reg uint16, offset int32) *writer {
	return w.u8(kind, 0).u16(size, reg, 0).u32(uint32(offset))
}

// sample is a section with every kind of location: two functions, the second without
// records and with a stack of no fixed size, two constants, and two records, of which the
// first needs padding after its locations and after its live-outs.
func sample(order binary.AppendByteOrder) []byte {
	w := &writer{order: order}
	w.u8(3, 0, 0, 0).u32(2, 2, 2)
	w.u64(0x7f0000001000, 24, 2)
	w.u64(0x7f0000002000, 1<<64-1, 0)
	w.u64(0x123456789abcdef0, 1<<63)
	w.u64(1<<64-1).u32(0x44).u16(0, 5)
	w.location(1, 8, 3, 0).location(2, 8, 6, -16).location(3, 4, 7, 1<<31-1).location(4, 8, 0, -1).location(5, 8, 0, 1)
	w.u32(0)            // up to a multiple of 8
	w.u16(0xffff, 1)    // padding, which the format does not want to be anything
	w.u16(17).u8(0, 64) // xmm0
	w.u64(7).u32(0).u16(0x8000, 0).u16(0, 0).u32(0)
	return w.b
}

func describe(maps []*Map) string {
	var b bytes.Buffer
	for _, m := range maps {
		fmt.Fprintf(&b, "LLVM StackMap Version: %d\nNum Functions: %d\n", m.Version, len(m.Functions))
		for _, f := range m.Functions {
			fmt.Fprintf(&b, "  Function address: %d, stack size: %d, callsite record count: %d\n", uint64(f.Addr), f.StackSize, len(f.Records))
		}
		fmt.Fprintf(&b, "Num Constants: %d\n", len(m.Constants))
		for i, c := range m.Constants {
			fmt.Fprintf(&b, "  #%d: %d\n", i+1, c)
		}
		fmt.Fprintf(&b, "Num Records: %d\n", m.Records())
		for _, f := range m.Functions {
			for _, r := range f.Records {
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

// where spells a location as llvm-readobj does.
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
