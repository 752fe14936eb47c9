package ptrace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/regset"
	"example.com/reframe/ptrace/xsave"
	"example.com/reframe/test/livetest"
)

// processor describes a processor as the kernel does: the components of an XSAVE area (XCR0), their offsets (CPUID, leaf 0xd), and the sizes of areas
// and signal frames. The numbers are from cores written on such processors.
type processor struct {
	name     string
	features uint64
	at       map[int][2]int // offset and size of each component
	size     int
	frame    uint64
	inUse    uint64 // components that are not in their initial state
	width    int    // size of a vector register
	standard int    // size of the area that gdb accepts
}

var (
	intel      = map[int][2]int{2: {576, 256}, 5: {1088, 64}, 6: {1152, 512}, 7: {1664, 1024}}
	intelPKRU  = map[int][2]int{2: {576, 256}, 5: {1088, 64}, 6: {1152, 512}, 7: {1664, 1024}, 9: {2688, 8}}
	intelTiles = map[int][2]int{2: {576, 256}, 5: {1088, 64}, 6: {1152, 512}, 7: {1664, 1024}, 9: {2688, 8}, 17: {2752, 64}, 18: {2816, 8192}}
	amd        = map[int][2]int{2: {576, 256}, 5: {832, 64}, 6: {896, 512}, 7: {1408, 1024}}
	amdPKRU    = map[int][2]int{2: {576, 256}, 5: {832, 64}, 6: {896, 512}, 7: {1408, 1024}, 9: {2432, 8}}
)

var knownProcessors = []processor{
	{"SSE", 0x3, nil, 576, 1520, 0x3, 16, 576},
	{"AVX", 0x7, map[int][2]int{2: {576, 256}}, 832, 1776, 0x7, 32, 832},
	{"AVX and MPX", 0x1f, map[int][2]int{2: {576, 256}, 3: {960, 64}, 4: {1024, 64}}, 1088, 2032, 0x7, 32, 1088},
	{"Intel, PKRU without AVX-512", 0x207, map[int][2]int{2: {576, 256}, 9: {2688, 8}}, 2696, 3632, 0x207, 32, 2696},
	{"Intel, AVX-512", 0xe7, intel, 2688, 3632, 0xe7, 64, 2688},
	{"Intel, AVX-512 without 32-bit programs", 0xe7, intel, 2688, 3520, 0xe7, 64, 2688},
	{"Intel, AVX-512 and PKRU", 0x2e7, intelPKRU, 2696, 3632, 0x2e7, 64, 2696},
	{"Intel, AMX not in use", 0x602e7, intelTiles, 11008, 11952, 0x2e7, 64, 2696},
	{"Intel, AMX in use", 0x602e7, intelTiles, 11008, 11952, 0x602e7, 64, 11008},
	{"AMD, AVX-512", 0xe7, amd, 2432, 3376, 0xe7, 64, 2688},
	{"AMD, AVX-512 and PKRU", 0x2e7, amdPKRU, 2440, 3392, 0x2e7, 64, 2696},
	{"AMD, PKRU without AVX-512", 0x207, map[int][2]int{2: {576, 256}, 9: {2432, 8}}, 2440, 3392, 0x207, 32, 2696},
}

// area returns the area that the kernel provides for a thread whose registers were set by regs.c.
func (p *processor) area() []byte {
	b := make([]byte, p.size)
	binary.LittleEndian.PutUint64(b[464:], p.features)
	binary.LittleEndian.PutUint64(b[512:], p.inUse)
	binary.LittleEndian.PutUint16(b, 0x37f)
	binary.LittleEndian.PutUint32(b[24:], 0x1f80)
	for n := range 16 {
		whole := pattern(n, 64)
		copy(b[160+16*n:], whole[:16])
		for part, from := range map[int]int{2: 16, 6: 32} {
			if at, ok := p.at[part]; ok {
				copy(b[at[0]+from*n:][:from], whole[from:])
			}
		}
		if at, ok := p.at[7]; ok {
			copy(b[at[0]+64*n:], pattern(16+n, 64))
		}
	}
	for n := range 8 {
		if at, ok := p.at[5]; ok {
			copy(b[at[0]+8*n:], pattern(n, 64)[8:16])
		}
	}
	for part, fill := range map[int]byte{9: 0x54, 17: 0x17, 18: 0x18} {
		if at, ok := p.at[part]; ok && p.inUse>>part&1 != 0 {
			copy(b[at[0]:], bytes.Repeat([]byte{fill}, at[1]))
		}
	}
	return b
}

// layoutNote is NT_X86_XSAVE_LAYOUT as the kernel writes it.
func (p *processor) layoutNote() []byte {
	var b []byte
	for part := range 64 {
		if at, ok := p.at[part]; ok {
			b, _ = binary.Append(b, binary.LittleEndian, [4]uint32{uint32(part), uint32(at[1]), uint32(at[0])})
		}
	}
	return b
}

// layout returns the places of the processor's registers.
func (p *processor) layout() (l xsave.Layout) {
	for part, at := range p.at {
		l[part] = xsave.Place{Offset: uint32(at[0]), Size: uint32(at[1])}
	}
	return l
}

// TestWriteCoreOfProcessors writes a core of each processor. gdb, lldb, eu-readelf and this package must read the original register values.
func TestWriteCoreOfProcessors(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, "nojit.c", nil)
	s, err := Open(t.Context(), p.PID)
	require.NoError(t, err)
	m := momentOf(t, s)
	target, err := s.Target()
	require.NoError(t, err)
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	require.NoError(t, err)
	stack := output(t, "eu-stack", "--core="+ownWritten(t, s), "-e", exe)
	require.NoError(t, err)
	other := processor{"of which no table knows", 0x802e7, map[int][2]int{2: {576, 256}, 5: {960, 64}, 6: {1024, 512}, 7: {1536, 1024}, 9: {2560, 8}, 19: {2624, 128}}, 2752, 3696, 0x2e7, 64, 2696}
	unheard := processor{"that keeps what nobody knows", 1<<23 | 0xe7, map[int][2]int{2: {576, 256}, 5: {960, 64}, 6: {1024, 512}, 7: {1536, 1024}, 23: {2560, 8}}, 2568, 3520, 1<<23 | 0xe7, 64, 0}
	for n, cpu := range append(append([]processor{}, knownProcessors...), other, unheard) {
		t.Run(cpu.name, func(t *testing.T) {
			m.threads = []coreThread{{p.PID, rawRegisters{arch, [][]byte{target.raw[0].raw.sets[0], cpu.area()}}}}
			m.vectors = cpu.layout()
			path := filepath.Join(t.TempDir(), "core")
			f, err := os.Create(path)
			require.NoError(t, err)
			require.NoError(t, errors.Join(m.write(f), f.Close()))

			requirePatterns(t, openCore(t, path).Threads()[0].Registers, cpu.width)
			written := readNotes(t, path)
			if cpu.standard == 0 { // the processor has its own layout, and the core has a note that describes it
				require.Equal(t, cpu.area(), written[regset.X86XState])
				require.Equal(t, cpu.layoutNote(), written[regset.X86Layout])
				return
			}
			require.Len(t, written[regset.X86XState], cpu.standard)
			if livetest.Out(3, n) {
				return // the other runs test only a third of the registers
			}
			for name, want := range gdbVectors(t, exe, path, cpu.width) {
				require.Equal(t, want[0], want[1], name)
			}
			text := output(t, "lldb-19", "-x", "-b", "-o", "target create "+exe+" --core "+path, "-o", "register read "+xmmNames(" "))
			for n := range 16 { // lldb 19 does not read wider registers from cores
				require.Regexp(t, fmt.Sprintf(`xmm%d = \{%s\}`, n, strings.Join(inHex(pattern(n, 16)), " ")), text)
			}
			text = output(t, "eu-readelf", "-n", path)
			for n := range 16 {
				v := pattern(n, 16)
				require.Contains(t, text, fmt.Sprintf("xmm%d:%s0x%016x%016x\n", n, strings.Repeat(" ", 2-n/10), binary.LittleEndian.Uint64(v[8:]), binary.LittleEndian.Uint64(v)))
			}
			require.Equal(t, frameLines(stack), frameLines(output(t, "eu-stack", "--core="+path, "-e", exe)))
		})
	}
	require.NoError(t, s.Detach())
}

func ownWritten(t *testing.T, s *Session) string {
	path := filepath.Join(t.TempDir(), "core")
	require.NoError(t, writeCore(s, path, s.pid))
	return path
}

// readNotes returns the notes of a core whose owner is LINUX.
func readNotes(t *testing.T, path string) map[elf.NType][]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	list := map[elf.NType][]byte{}
	file, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	budget := elfcore.Budget(1000)
	for _, p := range file.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		require.True(t, budget.Each(bytes.NewReader(b), uint64(len(b)), file.ByteOrder, elf.Prog64{Off: p.Off, Filesz: p.Filesz, Align: 4}, func(n elfcore.Note) {
			if n.Owner == elfcore.OwnerLinux {
				list[n.Kind], _ = n.Read(0, 1<<20)
			}
		}))
	}
	return list
}

func xmmNames(between string) string {
	var names []string
	for n := range 16 {
		names = append(names, fmt.Sprintf("xmm%d", n))
	}
	return strings.Join(names, between)
}

// inHex returns bytes as gdb and lldb show them.
func inHex(b []byte) (list []string) {
	for _, v := range b {
		list = append(list, fmt.Sprintf("0x%02x", v))
	}
	return list
}

// gdbVectors returns the contents of a core's vector registers, of width bytes each: the expected ones, and those that gdb reads.
func gdbVectors(t *testing.T, exe, path string, width int) map[string][2]string {
	t.Helper()
	list := map[string][2]string{}
	args := []string{"-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"}
	words := func(b []byte) (text string) {
		for ; len(b) > 0; b = b[8:] {
			text += fmt.Sprintf(" %x", binary.LittleEndian.Uint64(b))
		}
		return text
	}
	shown := map[int]string{16: "xmm%d.v2_int64", 32: "ymm%d.v4_int64", 64: "zmm%d.v8_int64"}[width]
	for reg, want := range patterns(width) {
		if want == nil {
			continue
		}
		name, format, values := "", "", []string{}
		switch {
		case reg >= 118:
			name = fmt.Sprintf("k%d", reg-118)
			format, values = " %lx", []string{"$" + name}
		default:
			n := int(reg) - 17
			if reg >= 67 {
				n = int(reg) - 67 + 16
			}
			name = fmt.Sprintf(shown, n)
			for i := range width / 8 {
				format += " %lx"
				values = append(values, fmt.Sprintf("$%s[%d]", name, i))
			}
		}
		list[name] = [2]string{words(want), ""}
		args = append(args, "-ex", fmt.Sprintf(`printf "%s is%s\n", %s`, name, format, strings.Join(values, ", ")))
	}
	out := output(t, "gdb", append(args, exe, path)...)
	for _, m := range regexp.MustCompile(`(?m)^(\S+) is(.*)$`).FindAllStringSubmatch(out, -1) {
		list[m[1]] = [2]string{list[m[1]][0], m[2]}
	}
	return list
}

// TestReadCoreOfProcessors requires that cores which the kernel writes on each processor are read correctly on any machine, with and without the note
// about the places of registers.
func TestReadCoreOfProcessors(t *testing.T) {
	for _, cpu := range knownProcessors {
		for _, told := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, told %v", cpu.name, told), func(t *testing.T) {
				note := cpu.layoutNote()
				if !told {
					note = nil
				}
				requirePatterns(t, coreOfVectors(t, cpu.area(), note, cpu.frame), cpu.width)
			})
		}
	}
}

// coreOfVectors returns the registers that are read from a core with one thread.
func coreOfVectors(t *testing.T, area, layout []byte, frame uint64) *machine.Registers {
	t.Helper()
	img := &coreImage{order: binary.LittleEndian, machine: elf.EM_X86_64}
	img.thread(7)
	img.note("LINUX", 0x202, area)
	if frame != 0 {
		auxv, _ := binary.Append(nil, binary.LittleEndian, []uint64{51, frame, 0, 0})
		img.note("CORE", 6, auxv)
	}
	if layout != nil {
		img.note("LINUX", 0x205, layout)
	}
	img.load(0x10000000, elf.PF_R|elf.PF_W, make([]byte, 16), 0x1000)
	return readBytes(t, img.bytes()).Threads()[0].Registers
}

// TestReadCoreOfUncertainVectors requires that registers are unavailable if their offsets in a core are unknown, and that the others are read.
func TestReadCoreOfUncertainVectors(t *testing.T) {
	byName := map[string]processor{}
	for _, cpu := range knownProcessors {
		byName[cpu.name] = cpu
	}
	standard := byName["Intel, AVX-512"]
	own := standard.layoutNote()
	for _, c := range []struct {
		name   string
		area   []byte
		layout []byte
		frame  uint64
		why    string // the reason for zmm16
	}{
		{"gdb 13 on AMD", standard.area(), nil, 3376, "the debugger that wrote the core read it at a wrong offset, as gdb up to 13 does"},
		{"gdb 13 on AMD, no 32-bit programs", standard.area(), nil, 3264, "the debugger that wrote the core read it at a wrong offset, as gdb up to 13 does"},
		{"an old kernel", standard.area(), nil, 0, "the core does not show whether its layout of vector registers is that of its processor (Linux before 5.14)"},
		{"a size of nobody's", append(standard.area(), make([]byte, 64)...), nil, 3632, "its offset in the area of vector registers is unknown"},
		{"a layout that does not tell it", standard.area(), own[:2*16], 3632, "its offset in the area of vector registers is unknown"},
		{"a corrupt layout", standard.area(), own[:17], 3632, "its offset in the area of vector registers is unknown"},
		{"twice", standard.area(), append(bytes.Clone(own), own...), 3632, "its offset in the area of vector registers is unknown"},
		{"outside of the area", standard.area(), bytes.Replace(own, []byte{0x80, 6, 0, 0}, []byte{0x90, 6, 0, 0}, 1), 3632, "the area of vector registers has 2688 bytes and ends before it"},
		{"far outside", standard.area(), bytes.Replace(own, []byte{0x80, 6, 0, 0}, []byte{0xff, 0xff, 0xff, 0xff}, 1), 3632, "the area of vector registers has 2688 bytes and ends before it"},
		{"in the header", standard.area(), bytes.Replace(own, []byte{0x80, 6, 0, 0}, []byte{0, 1, 0, 0}, 1), 3632, "its offset in the area of vector registers is unknown"},
		{"too small", standard.area(), bytes.Replace(own, []byte{0, 4, 0, 0}, []byte{0xff, 3, 0, 0}, 1), 3632, "its offset in the area of vector registers is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			regs := coreOfVectors(t, c.area, c.layout, c.frame)
			_, err := regs.Bytes(67)
			require.EqualError(t, err, "xmm16: "+c.why)
			for n := range 16 {
				got, err := regs.Bytes(machine.DWARFReg(17 + n))
				require.NoError(t, err)
				require.Equal(t, pattern(n, 64)[:len(got)], got)
				require.GreaterOrEqual(t, len(got), 16)
			}
		})
	}
	zeros := standard.area()
	zeros[512] = 0x02 // only xmm registers are in use; the upper halves and the other registers are zero, so their offsets do not matter
	regs := coreOfVectors(t, zeros, nil, 3632)
	for reg, want := range map[machine.DWARFReg][]byte{17: append(pattern(0, 16), make([]byte, 48)...), 70: make([]byte, 64), 119: make([]byte, 8)} {
		got, err := regs.Bytes(reg)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	compacted := standard.area()
	compacted[527] = 0x80
	_, err := coreOfVectors(t, compacted, own, 3632).Bytes(67)
	require.EqualError(t, err, "xmm16: its area of vector registers is compacted, which Linux never writes")
}

// TestReadVectorsOfThisMachine requires that cores of the kernel, gdb and reframe contain the register values that the program set on this machine.
// Values of gdb that are uncertain must not be read.
func TestReadVectorsOfThisMachine(t *testing.T) {
	livetest.Slow(t)
	p := program(t, "regs.c", []string{"-no-pie"}, "pause")
	p.Quiet(t, 0)
	width := 32
	if strings.Contains(p.Output(), "vectors 64") {
		width = 64
	}
	registers := func(path string) *machine.Registers { return openCore(t, path).Threads()[1].Registers }
	for _, path := range []string{ownCore(t, p), recordedCore(t, p, Options{Record: true}, Minimal), thinCore(t, ownCore(t, p))} {
		requirePatterns(t, registers(path), width)
	}
	regs := registers(livetest.Gcore(t, p))
	read := 0
	for reg, want := range patterns(width) {
		got, err := regs.Bytes(reg)
		if err != nil {
			require.Regexp(t, "processor|wrong offset|its offset", err.Error(), machine.AMD64.RegisterName(reg))
			continue
		}
		require.Equal(t, want[:len(got)], got, machine.AMD64.RegisterName(reg))
		read++
	}
	require.GreaterOrEqual(t, read, 16)

	path, can := livetest.KernelCore(t, p)
	if !can {
		return // the kernel passes cores to a program
	}
	requirePatterns(t, registers(path), width)
	if note := readNotes(t, path)[regset.X86Layout]; note != nil {
		told, err := xsave.Parse(note)
		require.NoError(t, err)
		host := xsave.Host()
		for part, place := range told {
			if place.Size > 0 {
				require.Equal(t, place, host[part], "the kernel and CPUID tell another place of part %d", part)
			}
		}
	}
	// Older kernels do not write the places of registers.
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b = bytes.ReplaceAll(b, []byte("\x05\x02\x00\x00LINUX\x00"), []byte("\x05\x7f\x00\x00LINUX\x00"))
	require.NoError(t, os.WriteFile(path, b, 0o600))
	requirePatterns(t, registers(path), width)
}
