package object

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// run runs a tool and returns its output. A file written with "-o" may come from a cache.
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

// process reads the memory of a process from /proc/PID/mem.
type process struct {
	t   *testing.T
	pid int
	mem *os.File
}

func open(t *testing.T, pid int) process {
	t.Helper()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	t.Cleanup(func() { mem.Close() })
	return process{t, pid, mem}
}

func (p process) read(addr, size uint64) []byte {
	p.t.Helper()
	b := make([]byte, size)
	_, err := p.mem.ReadAt(b, int64(addr))
	require.NoError(p.t, err, "%d bytes at %#x", size, addr)
	return b
}

func (p process) word(addr uint64) uint64 {
	p.t.Helper()
	return binary.LittleEndian.Uint64(p.read(addr, 8))
}

// jitObjects returns the registered objects. The address of the descriptor is the one that nm prints for libLLVM, plus the library's load address.
func (p process) jitObjects() [][]byte {
	p.t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
	require.NoError(p.t, err)
	var base uint64
	var path string
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) == 6 && strings.Contains(fields[5], "/libLLVM") {
			from, _, _ := strings.Cut(fields[0], "-")
			base, err = strconv.ParseUint(from, 16, 64)
			require.NoError(p.t, err)
			path = fields[5]
			break
		}
	}
	require.NotEmpty(p.t, path)
	var descriptor uint64
	for line := range strings.Lines(run(p.t, livetest.Tool(p.t, "nm"), "-D", "--without-symbol-versions", path)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "__jit_debug_descriptor" {
			descriptor, err = strconv.ParseUint(fields[0], 16, 64)
			require.NoError(p.t, err)
		}
	}
	require.NotZero(p.t, descriptor)
	var objects [][]byte
	for at := p.word(base + descriptor + 16); at != 0; at = p.word(at) {
		objects = append(objects, p.read(p.word(at+16), p.word(at+24)))
	}
	require.NotEmpty(p.t, objects)
	return objects
}

// image opens bytes as an image.
func image(t testing.TB, data []byte) *Image {
	t.Helper()
	img, err := New("image", bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return img
}

// TestRelocatedIsWhatIsLoaded requires that relocating an object gives the bytes that RuntimeDyld has in memory.
func TestRelocatedIsWhatIsLoaded(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		version int
		program string
		kind    string
	}{
		{14, "jit_pp.ll", "mcjit"}, {16, "jit_pp.ll", "mcjit"}, {19, "jit_pp.ll", "mcjit"}, {22, "jit_pp.ll", "mcjit"},
		{16, "jit_sp.ll", "mcjit"}, {19, "deoptimize.ll", "mcjit"}, {22, "deoptimize.ll", "mcjit"},
		{22, "deoptimize.ll", "orc-rtdyld"},
	} {
		t.Run(fmt.Sprintf("%s/%s/%d", c.program, c.kind, c.version), func(t *testing.T) {
			t.Parallel()
			p := open(t, livetest.Lli(t, c.version, c.program, c.kind).PID)
			compared := map[string]int{}
			for _, data := range p.jitObjects() {
				img := image(t, data)
				require.True(t, img.Relocatable())
				for _, name := range []string{".llvm_stackmaps", ".eh_frame"} {
					s := img.Section(name)
					if s == nil || s.Addr == 0 {
						continue
					}
					got, relocated, err := s.Relocated()
					require.NoError(t, err)
					require.Zero(t, Undefined(relocated))
					raw, err := s.Data()
					require.NoError(t, err)
					require.NotEqual(t, raw, got, "%s has nothing to relocate", name)
					require.Equal(t, p.read(uint64(s.Addr), s.Size), got, name)
					compared[name]++
				}
			}
			require.Positive(t, compared[".llvm_stackmaps"])
			require.Positive(t, compared[".eh_frame"])
		})
	}
}

// TestRelocatedOfJITLink covers JITLink, which keeps no stack map section in memory. At the function addresses of the relocated section, memory must
// hold the code of the object.
func TestRelocatedOfJITLink(t *testing.T) {
	for _, version := range []int{19, 22} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			p := open(t, livetest.Lli(t, version, "jit_pp.ll", "orc").PID)
			found := 0
			for _, data := range p.jitObjects() {
				img := image(t, data)
				s := img.Section(".llvm_stackmaps")
				if s == nil {
					continue
				}
				require.Zero(t, s.Addr)
				b, relocated, err := s.Relocated()
				require.NoError(t, err)
				require.Zero(t, Undefined(relocated))
				addr := binary.LittleEndian.Uint64(b[16:])
				sym, ok := img.SymbolAt(machine.Addr(addr))
				require.True(t, ok)
				require.Equal(t, "work", sym.Name)
				require.Equal(t, machine.Addr(addr), sym.Addr)
				code := img.CodeAt(sym.Addr)
				require.NotNil(t, code)
				start := make([]byte, 16) // the first 16 bytes of the function, which no relocation changes
				_, err = code.ReadAt(start, int64(sym.Addr-code.Loaded()))
				require.NoError(t, err)
				require.Equal(t, start, p.read(addr, 16))
				found++
			}
			require.Equal(t, 1, found)
		})
	}
}

// TestRelocatedUnresolved requires that references to undefined symbols stay unchanged and are counted. Expected values follow the ABI's table of
// relocations: S + A, and S + A - P.
func TestRelocatedUnresolved(t *testing.T) {
	dir := t.TempDir()
	source, out := filepath.Join(dir, "words.s"), filepath.Join(dir, "words.o")
	require.NoError(t, os.WriteFile(source, []byte(`
	.section .words, "a"
	.quad elsewhere
	.quad here + 5
	.quad here - .
	.long here
	.long here - . + 2
	.quad 0x1122334455667788
	.quad absolute
	.set absolute, 0x123456
	.globl absolute
	.section .place, "a"
	.skip 8
here:	.quad 0
`), 0o644))
	run(t, livetest.Tool(t, "gcc"), "-c", "-o", out, source)
	img := openFile(t, out)
	img.PlaceSections()
	s, here := img.Section(".words"), uint64(img.Section(".place").Addr)+8
	got, relocated, err := s.Relocated()
	require.NoError(t, err)
	require.Equal(t, 1, Undefined(relocated))
	p := uint64(s.Addr)
	var want []byte
	want = binary.LittleEndian.AppendUint64(want, 0)
	want = binary.LittleEndian.AppendUint64(want, here+5)
	want = binary.LittleEndian.AppendUint64(want, here-(p+16))
	want = binary.LittleEndian.AppendUint32(want, uint32(here))
	want = binary.LittleEndian.AppendUint32(want, uint32(here-(p+28)+2))
	want = binary.LittleEndian.AppendUint64(want, 0x1122334455667788)
	want = binary.LittleEndian.AppendUint64(want, 0x123456)
	require.Equal(t, want, got)
}
