package object

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// functionsOf returns the functions of an image's stack maps, and the bytes of the maps with their addresses set to 0.
func functionsOf(t *testing.T, img *Image) (names []string, addrs []uint64, rest []byte) {
	t.Helper()
	data, done, err := img.StackMaps()[0].Relocated()
	require.NoError(t, err)
	require.Zero(t, Undefined(done))
	count := int(binary.LittleEndian.Uint32(data[4:]))
	for n := range count {
		at := 16 + 24*n
		addr := binary.LittleEndian.Uint64(data[at:])
		sym, ok := img.SymbolStarting(machine.Addr(addr))
		require.True(t, ok, "%#x", addr)
		names, addrs = append(names, sym.Name), append(addrs, addr)
		clear(data[at : at+8])
	}
	return names, addrs, data
}

// TestMachOLinkedStackMaps requires that a linked image has the stack maps of its object, with the function addresses that llvm-nm prints.
func TestMachOLinkedStackMaps(t *testing.T) {
	livetest.Slow(t)
	machoLinks(t, []string{"jit_pp.ll", "weak"}, func(t *testing.T, object, linked string) {
		unlinked := openFile(t, object)
		unlinked.PlaceSections()
		want, _, wantRest := functionsOf(t, unlinked)
		names, addrs, rest := functionsOf(t, openFile(t, linked))
		require.Equal(t, want, names)
		require.Equal(t, wantRest, rest)
		byName := map[string]uint64{}
		for _, r := range llvmNM(t, linked) {
			byName[r.name] = r.addr
		}
		for n, name := range names {
			require.Equal(t, byName[name], addrs[n], name)
		}
		if strings.Contains(t.Name(), "weak") {
			require.Equal(t, []string{"_first", "_weak", "_hidden", "_main"}, names)
		} else {
			require.Equal(t, []string{"_work"}, names)
		}
	})
}

// TestMachOFixups requires the fixups that llvm-objdump prints for every section.
func TestMachOFixups(t *testing.T) {
	livetest.Slow(t)
	machoLinks(t, []string{"weak"}, func(t *testing.T, _, linked string) {
		img := openFile(t, linked)
		defined := map[string]uint64{}
		for _, r := range llvmNM(t, linked) {
			if r.kind != "U" {
				defined[r.name] = r.addr
			}
		}
		var want, got []string
		for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-objdump"), "--macho", "--dyld-info", linked)) {
			f := strings.Fields(line)
			switch {
			case len(f) == 6 && f[4] == "rebase":
				want = append(want, fmt.Sprintf("%s,%s %s rebase %s", f[0], f[1], f[2], f[5]))
			case len(f) == 8 && f[4] == "bind":
				addend, err := strconv.ParseUint(f[5], 0, 64)
				require.NoError(t, err)
				value, own := defined[f[7]]
				text := fmt.Sprintf("%s,%s %s bind %s+%#x", f[0], f[1], f[2], f[7], addend)
				if own {
					text += fmt.Sprintf(" = 0x%X", value+addend)
				}
				want = append(want, text)
			}
		}
		for _, s := range img.all {
			if !s.Bits {
				continue
			}
			data, done, err := s.Relocated()
			require.NoError(t, err)
			raw, err := s.Data()
			require.NoError(t, err)
			for _, r := range done {
				at := uint64(s.Addr) + r.Offset
				value := binary.LittleEndian.Uint64(data[r.Offset:])
				text := fmt.Sprintf("%s 0x%X rebase 0x%X", s.Name, at, value)
				if r.Symbol() != "" {
					text = fmt.Sprintf("%s 0x%X bind %s+%#x", s.Name, at, r.Symbol(), r.Addend)
					if r.Defined {
						text += fmt.Sprintf(" = 0x%X", value)
					}
				}
				got = append(got, text)
				copy(raw[r.Offset:], data[r.Offset:r.Offset+8])
			}
			require.Equal(t, raw, data, "nothing else has changed")
		}
		require.Equal(t, want, got)
		if strings.Contains(t.Name(), "-no_fixup_chains") {
			require.Empty(t, got)
		} else {
			require.GreaterOrEqual(t, len(got), 8)
		}
	})
}

// chained describes an image of one segment of two pages with chained fixups. Its section starts 16 bytes into the segment.
type chained struct {
	format    uint16
	valid     uint32
	starts    []uint16
	imports   []uint32
	importing uint32 // format of the imports
	names     string
	words     map[int]uint64 // words by their offset in the section
	narrow    bool
	compress  uint32
}

const (
	chainedBase    = 0x100000000
	chainedSegment = chainedBase + 0x4000
)

func (c chained) bytes() []byte {
	le := binary.LittleEndian
	file := make([]byte, 0xc000)
	name := func(s string) []byte { return append([]byte(s), make([]byte, 16-len(s))...) }
	base := uint64(chainedBase)
	if c.narrow {
		base = 0x4000
	}
	segment := func(at int, segment string, addr, off, size uint64, sections uint32) int {
		le.PutUint32(file[at:], 0x19)
		le.PutUint32(file[at+4:], 72+80*sections)
		copy(file[at+8:], name(segment))
		for n, v := range []uint64{addr, size, off, size} {
			le.PutUint64(file[at+24+8*n:], v)
		}
		le.PutUint32(file[at+64:], sections)
		return at + 72
	}
	for n, v := range []uint32{0xfeedfacf, 0x0100000c, 2, 2, 3, 72 + 152 + 16} {
		le.PutUint32(file[4*n:], v)
	}
	at := segment(32, "__TEXT", base, 0, 0x4000, 0)
	at = segment(at, "__DATA", base+0x4000, 0x4000, 0x8000, 1)
	copy(file[at:], name("__data"))
	copy(file[at+16:], name("__DATA"))
	le.PutUint64(file[at+32:], base+0x4010)
	le.PutUint64(file[at+40:], 0x7ff0)
	le.PutUint32(file[at+48:], 0x4010)
	at += 80
	fixups := le.AppendUint32(nil, 0)
	starts := le.AppendUint32(nil, 3) // three segments, the last without fixups
	starts = append(le.AppendUint32(le.AppendUint32(starts, 0), 16), 0, 0, 0, 0)
	starts = le.AppendUint32(starts, uint32(22+2*len(c.starts)))
	starts = le.AppendUint16(le.AppendUint16(starts, 0x4000), c.format)
	starts = le.AppendUint64(starts, 0x4000)
	starts = le.AppendUint16(le.AppendUint32(starts, c.valid), 2)
	for _, s := range c.starts {
		starts = le.AppendUint16(starts, s)
	}
	for len(starts)%4 != 0 {
		starts = append(starts, 0)
	}
	imports := 28 + len(starts)
	size := map[uint32]int{1: 4, 2: 8, 3: 16}[c.importing]
	if size == 0 {
		size = 4
	}
	for _, v := range []uint32{28, uint32(imports), uint32(imports + 4*len(c.imports)), uint32(4 * len(c.imports) / size), c.importing, c.compress} {
		fixups = le.AppendUint32(fixups, v)
	}
	fixups = append(fixups, starts...)
	for _, v := range c.imports {
		fixups = le.AppendUint32(fixups, v)
	}
	fixups = append(fixups, c.names...)
	for n, v := range []uint32{0x80000034, 16, uint32(len(file)), uint32(len(fixups))} {
		le.PutUint32(file[at+4*n:], v)
	}
	for off, v := range c.words {
		if c.narrow {
			le.PutUint32(file[0x4010+off:], uint32(v))
		} else {
			le.PutUint64(file[0x4010+off:], v)
		}
	}
	return append(file, fixups...)
}

// place is the expected result of one fixup.
type place struct {
	off    uint64
	value  uint64 // the expected word, if the image defines the symbol
	symbol string
	addend int64
}

// TestMachOChainFormats covers each pointer format, as mach-o/fixup-chains.h defines its bits. lld writes only one of them.
func TestMachOChainFormats(t *testing.T) {
	const bind64, bind, auth = 1 << 63, 1 << 62, 1 << 63
	names := "\x00_a\x00_b\x00"
	importA, importB := uint32(1|1<<9), uint32(0xfe|4<<9)
	arm64e := func(unsigned uint64) chained {
		c := chained{starts: []uint16{16, 0xffff}, importing: 1, imports: []uint32{importA, importB}, names: names}
		const next = 1 << 51
		c.words = map[int]uint64{
			0:  unsigned | 0xab<<43 | 1*next,
			8:  0x4444 | 0x1234<<32 | auth | 2*next, // signed: the offset, and how to sign it
			24: 1 | bind | 0x7fffb<<32 | 1*next,     // an addend of -5
			32: 0 | bind | auth | 0x4321<<32,        // a signed import, which has no addend
		}
		return c
	}
	want := []place{{0, chainedBase + 0x5678 | 0xab<<56, "", 0}, {8, chainedBase + 0x4444, "", 0}, {24, 0, "_b", -5}, {32, 0, "_a", 0}}
	plain := chained{starts: []uint16{16, 0}, importing: 1, imports: []uint32{importA, importB}, names: names, words: map[int]uint64{
		0: 0x5678 | 0x7f<<36 | 3<<51, 12: 1 | 0xff<<24 | 2<<51 | bind64, 20: chainedBase,
		0x4000 - 16: 0x1111,
	}}
	wantPlain := func(base uint64) []place {
		return []place{{0, base + 0x5678 | 0x7f<<56, "", 0}, {12, 0, "_b", 255}, {20, base + chainedBase, "", 0}, {0x4000 - 16, base + 0x1111, "", 0}}
	}
	withFormat := func(c chained, format uint16) chained {
		c.format = format
		return c
	}
	addends, wide := plain, plain
	addends.importing, addends.imports = 2, []uint32{importA, 0, importB, 0xfffffff0} // -16
	wide.importing, wide.imports = 3, []uint32{1, 1, 0, 0, 0xfffe, 4, 0xffffff00, 0xffffffff}
	withAddend := func(a int64) []place {
		p := wantPlain(0)
		p[1].addend = a
		return p
	}
	narrow := chained{narrow: true, format: 3, valid: 0x1000000, starts: []uint16{0x8002, 0xffff, 16, 0x8000 | 64},
		importing: 1, imports: []uint32{importA, importB}, names: names, words: map[int]uint64{
			0: 0x8010 | 2<<26, 8: 1 | 63<<20 | 1<<26 | 1<<31, 12: (1<<26+0x1000000)/2 + 77, 48: 0x9000,
		}}
	for _, c := range []struct {
		name string
		chained
		want []place
	}{
		{"ARM64E", withFormat(arm64e(chainedBase+0x5678), 1), want},
		{"ARM64E_USERLAND", withFormat(arm64e(0x5678), 9), want},
		{"ARM64E_USERLAND24", withFormat(arm64e(0x5678), 12), want},
		{"64", withFormat(plain, 2), wantPlain(0)},
		{"64_OFFSET", withFormat(plain, 6), wantPlain(chainedBase)},
		{"imports with addends", withFormat(addends, 2), withAddend(255 - 16)},
		{"imports with wide addends", withFormat(wide, 2), withAddend(255 - 256)},
		{"32", narrow, []place{{0, 0x8010, "", 0}, {8, 0, "_b", 63}, {48, 0x9000, "", 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			img := image(t, c.bytes())
			s := img.Section("__DATA,__data")
			data, done, err := s.Relocated()
			require.NoError(t, err)
			size := 8
			if c.narrow {
				size = 4
				require.Equal(t, uint32(77), binary.LittleEndian.Uint32(data[12:]), "a number that bridges")
			}
			var got []place
			for _, r := range done {
				p := place{off: r.Offset, symbol: r.Symbol()}
				if r.Defined {
					p.value = get(data[r.Offset:], size, binary.LittleEndian)
				} else {
					p.addend = r.Addend
				}
				got = append(got, p)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestMachOChainErrors requires an error for each kind of malformed chain.
func TestMachOChainErrors(t *testing.T) {
	good := chained{format: 2, starts: []uint16{16, 0xffff}, importing: 1, imports: []uint32{1 | 1<<9}, names: "\x00_a\x00"}
	for _, c := range []struct {
		want   string
		change func(c *chained)
	}{
		{"pointer format 7 is not supported", func(c *chained) { c.format = 7 }},
		{"a chain leaves its page", func(c *chained) { c.words = map[int]uint64{0: 0xfff << 51} }},
		{"__data+0x0: chained fixups: two pointers overlap", func(c *chained) { c.words = map[int]uint64{0: 1 << 51} }},
		{"import 1 of 1", func(c *chained) { c.words = map[int]uint64{0: 1<<63 | 1} }},
		{"import 65536 of 1", func(c *chained) { c.format, c.words = 12, map[int]uint64{0: 1<<62 | 1<<16} }},
		{"imports of format 4 are not supported", func(c *chained) { c.importing, c.words = 4, map[int]uint64{0: 1 << 63} }},
		{"the name of import 0 lies outside", func(c *chained) { c.imports, c.words = []uint32{1 | 9<<9}, map[int]uint64{0: 1 << 63} }},
		{"the names of imports are compressed", func(c *chained) { c.compress, c.words = 1, map[int]uint64{0: 1 << 63} }},
		{"the section starts or ends inside of a pointer", func(c *chained) { c.starts[0] = 12 }},
		{"a chain leaves its page", func(c *chained) { c.starts[0] = 0x4000 }},
		{"two chains of a page overlap", func(c *chained) {
			c.narrow, c.format, c.starts = true, 3, []uint16{0x8002, 0xffff, 16, 16, 0x8000 | 16}
		}},
		{"its tables lie outside", func(c *chained) { c.narrow, c.format, c.starts = true, 3, []uint16{0xff00, 0xffff} }},
	} {
		bad := good
		bad.starts = append([]uint16(nil), good.starts...)
		c.change(&bad)
		_, _, err := image(t, bad.bytes()).Section("__DATA,__data").Relocated()
		require.ErrorContains(t, err, c.want)
	}
	// Before chained fixups, arm64e threaded the chains through the bind opcodes.
	threaded := good.bytes()
	at := bytes.Index(threaded, []byte{0x34, 0, 0, 0x80})
	binary.LittleEndian.PutUint32(threaded[at:], 0x22)
	binary.LittleEndian.PutUint32(threaded[at+4:], 24)
	binary.LittleEndian.PutUint32(threaded[20:], 72+152+24)
	binary.LittleEndian.PutUint32(threaded[at+16:], 0x1000)
	binary.LittleEndian.PutUint32(threaded[at+20:], 16)
	_, _, err := image(t, threaded).Section("__DATA,__data").Relocated()
	require.NoError(t, err)
	threaded[0x1000] = 0xd0
	_, _, err = image(t, threaded).Section("__DATA,__data").Relocated()
	require.ErrorContains(t, err, "threaded")
}
