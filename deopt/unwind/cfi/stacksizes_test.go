package cfi

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

func TestStackSizes(t *testing.T) {
	row := func(start uint64, size ...byte) []byte { return le(start, size) }
	s, err := ReadStackSizes(machine.AMD64, 0x100000,
		le(row(0x1000, 0), row(0x1010, 0x7f), row(0x1020, 0xb8, 0x1f)), nil,
		le(row(0x2000, 8), row(0x2010, 8), row(0x2000, 8), row(0x2010, 16), row(0x2010, 0)), row(0x3000, 0x88, 0x80, 0x00))
	require.NoError(t, err)
	for start, want := range map[machine.Addr]uint64{0x101000: 0, 0x101010: 127, 0x101020: 4024, 0x102000: 8, 0x103000: 8} {
		size, ok := s.Find(start)
		require.True(t, ok)
		require.Equal(t, want, size)
	}
	for _, start := range []machine.Addr{0x1000, 0x101001, 0x102010, 0} { // the third has two sizes
		_, ok := s.Find(start)
		require.False(t, ok, "%v", start)
	}
	big, err := ReadStackSizes(machine.S390X, 0, []byte{0, 0, 0, 0, 0, 0, 0x10, 0, 160, 1})
	require.NoError(t, err)
	size, ok := big.Find(0x1000)
	require.True(t, ok)
	require.Equal(t, uint64(160), size)

	for _, test := range []struct {
		data []byte
		err  string
	}{
		{row(0x1000), ".stack_sizes at offset 0x8: truncated"},
		{row(0x1000, 0x80), ".stack_sizes at offset 0x9: truncated"},
		{append(row(0x1000, 8), 1, 2, 3), ".stack_sizes at offset 0x9: truncated"},
		{row(0x1000, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02), "does not fit in 64 bits"},
	} {
		_, err := ReadStackSizes(machine.AMD64, 0, row(0x1000, 8), test.data)
		require.ErrorContains(t, err, test.err)
	}
	_, err = ReadStackSizes(nil, 0)
	require.ErrorContains(t, err, "supported only for addresses of 8 bytes")
}

// elfFile is an object or an image for Linux that has .stack_sizes.
type elfFile struct {
	path  string
	arch  *machine.Arch
	img   *object.Image
	sizes *StackSizes
	table *Table
}

func openELF(t *testing.T, path string) *elfFile {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f := &elfFile{path: path}
	f.img, err = object.New(filepath.Base(path), bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	f.img.PlaceSections()
	f.arch, err = f.img.Arch()
	require.NoError(t, err)
	relocated := func(s *object.Section) []byte {
		b, _, err := s.Relocated()
		require.NoError(t, err)
		return b
	}
	var sections [][]byte
	for _, s := range f.img.Sections(".stack_sizes") {
		sections = append(sections, relocated(s))
	}
	require.NotEmpty(t, sections)
	f.sizes, err = ReadStackSizes(f.arch, 0, sections...)
	require.NoError(t, err)
	eh := f.img.Section(".eh_frame")
	frame := relocated(eh)
	f.table, err = NewTable(Sections{Arch: f.arch, EHFrame: Section{Addr: eh.Addr, Data: bytes.NewReader(frame), Size: int64(len(frame))}})
	require.NoError(t, err)
	return f
}

func (f *elfFile) start(t *testing.T, name string) machine.Addr {
	t.Helper()
	sym, ok := f.img.Lookup(name)
	require.True(t, ok, name)
	return sym.Addr
}

// stackObjects calls check with one object for each release of LLVM. An object has one function for each way to use the stack.
func stackObjects(t *testing.T, check func(t *testing.T, path string)) {
	for triple, shape := range map[string]struct {
		trap string
		sets [][]string
	}{
		"x86_64-linux-gnu":  {"int3", [][]string{nil, {"rbx"}, {"r14", "rbx"}, {"rbx", "r12", "r13", "r14", "r15"}}},
		"aarch64-linux-gnu": {"brk #0x7b", [][]string{nil, {"x19"}, {"x28", "d8"}, {"x19", "x20", "x21", "d8", "d9"}}},
	} {
		for keep, attribute := range framePointers {
			source := module(t, "frames.ll", framesModule(shape.trap, shape.sets, attribute))
			for _, version := range []int{14, 19, 22} {
				for _, level := range []string{"-O0", "-O2"} {
					t.Run(fmt.Sprintf("%s/%s/%d%s", triple, keep, version, level), func(t *testing.T) {
						t.Parallel()
						check(t, livetest.Object(t, version, source, "-stack-size-section", "-function-sections", "-relocation-model=pic", "-mtriple="+triple, level))
					})
				}
			}
		}
	}
}

var (
	listed        = regexp.MustCompile(`Functions: \[(.*)\]\s+Size: 0x([0-9A-F]+)`)
	functionLabel = regexp.MustCompile(`(?m)^[0-9a-f]+ <(\w+)>:$`)
	// Instructions that lower the stack pointer by a constant.
	lowering = regexp.MustCompile(`\s(?:pushq|subq\s+\$(0x[0-9a-f]+), %rsp|sub\s+(?:sp|x9), sp, #(0x[0-9a-f]+)(, lsl #12)?|st[rp]\s.*\[sp, #-(0x[0-9a-f]+)\]!)(?:\s|$)`)
)

// TestStackSizesOfShapes requires the sizes that llvm-readobj lists, for functions of every shape, in objects and in lld's output. Each size must
// equal the distance from the stack pointer to the CFA at a trap in the body. The test computes that distance from the instructions before the
// trap, and from the CFI if that is based on the stack pointer.
func TestStackSizesOfShapes(t *testing.T) {
	livetest.Slow(t)
	var mu sync.Mutex
	counts := map[string]int{}
	t.Cleanup(func() { t.Logf("all agree: %v", counts) })
	stackObjects(t, func(t *testing.T, path string) {
		f := openELF(t, path)
		linked := filepath.Join(t.TempDir(), "linked.so")
		livetest.Make(t, livetest.Tool(t, "ld.lld-19"), "-shared", "-o", linked, path)
		l := openELF(t, linked)
		sizes := map[string]uint64{}
		for _, m := range listed.FindAllStringSubmatch(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-readobj"), "--stack-sizes", path), -1) {
			size, err := strconv.ParseUint(m[2], 16, 64)
			require.NoError(t, err)
			sizes[m[1]] = size
			got, ok := f.sizes.Find(f.start(t, m[1]))
			require.True(t, ok, m[1])
			require.Equal(t, size, got, m[1])
			got, ok = l.sizes.Find(l.start(t, m[1]))
			require.True(t, ok, m[1])
			require.Equal(t, size, got, m[1])
		}
		require.NotEmpty(t, sizes)
		require.Len(t, f.sizes.sizes, len(sizes))
		require.Len(t, l.sizes.sizes, len(sizes))
		pushed := uint64(0)
		if f.arch == machine.AMD64 {
			pushed = 8
		}
		code := livetest.Printed(t, livetest.LLVM(t, 22, "llvm-objdump"), "-d", "--no-show-raw-insn", path)
		mu.Lock()
		defer mu.Unlock()
		for _, at := range functionLabel.FindAllStringSubmatchIndex(code, -1) {
			name := code[at[2]:at[3]]
			if name == "needs_fde_" {
				continue
			}
			start := f.start(t, name)
			body, trap := depth(t, code[at[1]:])
			shape := strings.TrimRight(name, "0123456789")
			size, ok := sizes[name]
			counts[shape]++
			switch shape {
			case "dynamic", "both":
				require.False(t, ok, name)
				continue
			case "aligned": // the size excludes the space for aligning
				require.True(t, ok, name)
				require.GreaterOrEqual(t, body, size, name)
				continue
			}
			require.True(t, ok, name)
			require.Equal(t, size, body, "%s of %s", name, path)
			fde, err := f.table.Find(start)
			require.NoError(t, err)
			row, err := fde.Rules(start + trap)
			require.NoError(t, err)
			if row.CFA.Register == f.arch.SP {
				counts["by CFI"]++
				require.Equal(t, int64(size+pushed), row.CFA.Offset, "%s of %s", name, path)
			}
		}
	})
}

// depth returns the distance by which a function lowers the stack pointer before its trap, and the offset of the trap.
func depth(t *testing.T, code string) (bytes uint64, trap machine.Addr) {
	t.Helper()
	var first machine.Addr
	for i, m := range disassembled.FindAllStringSubmatchIndex(code, -1) {
		line, _, _ := strings.Cut(code[m[0]:], "\n")
		if i == 0 {
			line, _, _ = strings.Cut(strings.TrimLeft(code[m[0]:], "\n"), "\n")
			first = hexAddr(t, code[m[2]:m[3]])
		}
		switch code[m[4]:m[5]] {
		case "int3", "brk":
			return bytes, hexAddr(t, code[m[2]:m[3]]) - first
		}
		if low := lowering.FindStringSubmatch(line); low != nil {
			number := low[1] + low[2] + low[4]
			if number == "" {
				number = "8"
			}
			by, err := strconv.ParseUint(number, 0, 64)
			require.NoError(t, err)
			if low[3] != "" {
				by <<= 12
			}
			bytes += by
		}
	}
	require.Fail(t, "no trap")
	return 0, 0
}

// TestStackSizesAgainstStackMaps requires the same size of a frame in .stack_sizes and in a stack map.
func TestStackSizesAgainstStackMaps(t *testing.T) {
	livetest.Slow(t)
	programs, err := filepath.Glob(filepath.Join(livetest.Testdata(t, "programs"), "*.ll"))
	require.NoError(t, err)
	same, dynamic := 0, 0
	for _, program := range programs {
		for _, triple := range []string{"x86_64-linux-gnu", "aarch64-linux-gnu"} {
			for _, version := range livetest.ShareOf([]int{14, 19, 22}, filepath.Base(program), triple) {
				path := livetest.TryObject(t, version, filepath.Base(program), "-stack-size-section", "-mtriple="+triple)
				if path == "" {
					continue
				}
				f := openELF(t, path)
				for _, s := range f.img.StackMaps() {
					b, _, err := s.Relocated()
					require.NoError(t, err)
					maps, err := stackmap.Parse(b, stackmap.Options{Order: f.arch.Order})
					require.NoError(t, err)
					for _, m := range maps.Maps {
						for _, function := range m.Functions {
							size, ok := f.sizes.Find(function.Addr)
							if function.StackSize == stackmap.DynamicStack {
								dynamic++
								continue
							}
							require.True(t, ok)
							require.Equal(t, function.StackSize, size)
							same++
						}
					}
				}
			}
		}
	}
	require.GreaterOrEqual(t, same, 50)
	t.Logf("%d functions: all agree; %d of no fixed size", same, dynamic)
}

func FuzzStackSizes(f *testing.F) {
	f.Add(le(uint64(0x1000), 0xb8, 0x1f, uint64(0x1010), 8), le(uint64(0x1000), 8))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		for _, arch := range []*machine.Arch{machine.AMD64, machine.PPC64} {
			s, err := ReadStackSizes(arch, 8, one, two)
			promised(t, err)
			if err == nil {
				require.LessOrEqual(t, len(s.sizes), (len(one)+len(two))/9)
				s.Find(0x1008)
			}
		}
	})
}
