package verify

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
)

// flatPages are pages of memory by their addresses.
type flatPages map[machine.Addr][]byte

func (f flatPages) ReadMemory(p []byte, addr machine.Addr) error {
	for n := 0; n < len(p); {
		at := addr + machine.Addr(n)
		page, ok := f[at&^4095]
		if !ok {
			return &machine.MemoryError{Addr: at, Len: len(p), Why: "not mapped"}
		}
		n += copy(p[n:], page[at&4095:])
	}
	return nil
}

// with returns the memory with words of eight bytes, in hex, at addresses.
func (f flatPages) with(words map[machine.Addr]string) flatPages {
	out := flatPages{}
	for addr, page := range f {
		out[addr] = bytes.Clone(page)
	}
	for addr, text := range words {
		b, _ := hex.DecodeString(text)
		copy(out[addr&^4095][addr&4095:], b)
	}
	return out
}

const comparedBase = 0x7000_0000_0000

// comparedPages returns forty pages, more than two blocks, of a writable mapping whose page 20 cannot be read.
func comparedPages() (flatPages, []machine.Mapping) {
	f := flatPages{}
	for i := range machine.Addr(40) {
		if i != 20 {
			f[comparedBase+i*4096] = make([]byte, 4096)
		}
	}
	f[0x1000] = make([]byte, 4096) // code
	return f, []machine.Mapping{
		{Start: 0x1000, End: 0x2000, Read: true, Exec: true},
		{Start: comparedBase, End: comparedBase + 36*4096, Read: true, Write: true},
		{Start: comparedBase + 36*4096, End: comparedBase + 40*4096, Read: true, Write: true, Share: true},
	}
}

// stored returns the stores of the interpreter: words by address. The bits that are set in undefined are undefined.
func (f flatPages) stored(words, undefined map[machine.Addr]string) []interp.Touched {
	data, unknown := f.with(words), f.with(nil)
	for _, page := range unknown {
		clear(page)
	}
	unknown = unknown.with(undefined)
	stored := map[machine.Addr][]byte{}
	for addr, text := range words {
		page := addr &^ 4095
		if stored[page] == nil {
			stored[page] = make([]byte, 512)
		}
		for at := addr & 4095; at < addr&4095+machine.Addr(len(text)/2); at++ {
			stored[page][at/8] |= 1 << (at % 8)
		}
	}
	var list []interp.Touched
	for page, bits := range stored {
		list = append(list, interp.Touched{Addr: page, Data: data[page], Undefined: unknown[page], Stored: bits})
	}
	return list
}

func TestCompareMemory(t *testing.T) {
	type words = map[machine.Addr]string
	const a, far = machine.Addr(comparedBase), machine.Addr(comparedBase + 35*4096)
	const one, two, minus = "0100000000000000", "0200000000000000", "ffffffffffffffff"
	was := words{a + 16: "1111111111111111", far: one}
	for name, c := range map[string]struct {
		interpreted, undefined, native words
		dead                           []machine.Range
		stack                          machine.Range
		left                           bool
		why                            string
		diffs                          []memoryDiff
	}{
		"nothing":              {},
		"the same":             {interpreted: words{a: one, far + 8: two}, native: words{a: one, far + 8: two}},
		"stored what is there": {interpreted: words{a + 16: "1111111111111111"}},
		"another value": {interpreted: words{a + 8: one}, native: words{a + 8: two},
			diffs: []memoryDiff{diffOf(a+8, "0000000000000000", one, "0000000000000000", two)}},
		"only native": {native: words{far: minus},
			diffs: []memoryDiff{diffOf(far, one, one, "0000000000000000", minus)}},
		"only native, beside what was stored": {interpreted: words{far + 64: one}, native: words{far + 64: one, far: two},
			diffs: []memoryDiff{diffOf(far, one, one, "0000000000000000", two)}},
		"only interpreted": {interpreted: words{a + 16: two},
			diffs: []memoryDiff{diffOf(a+16, "1111111111111111", two, "0000000000000000", "1111111111111111")}},
		"in two blocks, joined": {interpreted: words{a: one, a + 8: one, a + 65536: one}, native: words{a: two, a + 8: two},
			diffs: []memoryDiff{
				diffOf(a, "00000000000000000000000000000000", one+one, "00000000000000000000000000000000", two+two),
				diffOf(a+65536, "0000000000000000", one, "0000000000000000", "0000000000000000")}},
		"undefined bits": {interpreted: words{a: "0100000000000000"}, undefined: words{a: "0f00000000000000"}, native: words{a: "0a00000000000000"}},
		"a bit beside undefined ones": {interpreted: words{a: "0100000000000000"}, undefined: words{a: "0f00000000000000"}, native: words{a: "1a00000000000000"},
			diffs: []memoryDiff{diffOf(a, "0000000000000000", "0100000000000000", "0f00000000000000", "1a00000000000000")}},
		"dead":                         {native: words{a: minus, a + 8: minus}, dead: []machine.Range{{Start: a - 100, End: a + 16}}},
		"on the stack, by native code": {native: words{a: minus}, stack: machine.Range{Start: a - 100, End: a + 16}},
		"on the stack, by both": {interpreted: words{a: one}, native: words{a: minus}, stack: machine.Range{Start: a - 100, End: a + 16},
			diffs: []memoryDiff{diffOf(a, "0000000000000000", one, "0000000000000000", minus)}},
		"dead but for a byte": {native: words{a: minus}, dead: []machine.Range{{Start: a, End: a + 7}},
			diffs: []memoryDiff{diffOf(a, "0000000000000000", "0000000000000000", "0000000000000000", minus)}},
		"NaNs": {interpreted: words{a: "000000000000f87f", a + 8: "0000c07f0000c0ff", a + 16: "0000c07f01000000"},
			native: words{a: "000000000000f8ff", a + 8: "0000c0ff0000c07f", a + 16: "0000c0ff01000000"}},
		"all bits set are no NaN": {interpreted: words{a: minus}, native: words{a: "feffffffffffffff"},
			diffs: []memoryDiff{diffOf(a, "0000000000000000", minus, "0000000000000000", "feffffffffffffff")}},
		"shared, by another": {native: words{a + 37*4096: two}},
		"shared, stored": {interpreted: words{a + 37*4096: one},
			diffs: []memoryDiff{diffOf(a+37*4096, "0000000000000000", one, "0000000000000000", "0000000000000000")}},
		"shared, stored what is there": {interpreted: words{a + 37*4096: "0000000000000000"}, native: words{a + 37*4096: two},
			diffs: []memoryDiff{diffOf(a+37*4096, "0000000000000000", "0000000000000000", "0000000000000000", two)}},
		"on the stack, stored what is there": {interpreted: words{a: "0000000000000000"}, native: words{a: minus}, stack: machine.Range{Start: a - 100, End: a + 16},
			diffs: []memoryDiff{diffOf(a, "0000000000000000", "0000000000000000", "0000000000000000", minus)}},
		"outside was run": {interpreted: words{a: one}, native: words{a: one, a + 8: two, far: two}, left: true},
		"outside was run, stored what is there": {interpreted: words{a + 16: "1111111111111111"}, native: words{a + 16: two}, left: true,
			diffs: []memoryDiff{diffOf(a+16, "1111111111111111", "1111111111111111", "0000000000000000", two)}},
		"outside was run, stored half of a word": {interpreted: words{a: "01000000"}, native: words{a: "0100000005000000"}, left: true},
		"outside was run, stored half of a word, which is there": {interpreted: words{a + 20: "11111111"}, native: words{a + 16: "1111111105000000"}, left: true,
			diffs: []memoryDiff{diffOf(a+16, "1111111111111111", "1111111111111111", "0000000000000000", "1111111105000000")}},
		"a pointer of its own": {interpreted: words{a: "0000000000000048"}, native: words{a: two},
			why: "the interpreter stored a pointer to memory of its own at 0x700000000000"},
		"not writable": {interpreted: words{0x1000: one, a: one}, native: words{a: one},
			why: "the interpreter stored to 0x1000, which is not writable"},
	} {
		t.Run(name, func(t *testing.T) {
			memory, maps := comparedPages()
			memory = memory.with(was)
			image, err := copyImage(memory, maps, 0, nil)
			require.NoError(t, err)
			got := compareMemory(image, memory.with(c.native), slices.Values(memory.stored(c.interpreted, c.undefined)), c.dead, c.stack, c.left,
				func(v uint64) bool { return v == 0x4800000000000000 })
			n := uint64(0)
			for _, d := range c.diffs {
				n += d.Size / 8
			}
			require.Equal(t, c.why, textOf(got.why))
			require.Equal(t, comparedMemory{got.why, c.diffs, n}, got)
		})
	}
}

func diffOf(addr machine.Addr, before, interpreted, undefined, native string) memoryDiff {
	var b [4][]byte
	for i, text := range []string{before, interpreted, undefined, native} {
		b[i], _ = hex.DecodeString(text)
	}
	return memoryDiff{addr, uint64(len(b[0])), b[0], b[1], b[2], b[3]}
}

// TestCompareMemoryIsBounded requires that only a bounded number of differences is described, and that all are counted.
func TestCompareMemoryIsBounded(t *testing.T) {
	memory, maps := comparedPages()
	image, err := copyImage(memory, maps, 0, nil)
	require.NoError(t, err)
	changed := memory.with(nil)
	for at := 0; at < 4096; at += 16 {
		changed[comparedBase][at] = 1
	}
	page := changed[comparedBase+4096]
	for at := range page {
		page[at] = 1
	}
	got := compareMemory(image, changed, slices.Values([]interp.Touched(nil)), nil, machine.Range{}, false, func(uint64) bool { return false })
	require.Len(t, got.Diffs, 100)
	require.EqualValues(t, 256+512, got.Words)
	clear(changed[comparedBase])
	got = compareMemory(image, changed, slices.Values([]interp.Touched(nil)), nil, machine.Range{}, false, func(uint64) bool { return false })
	require.Len(t, got.Diffs, 1)
	require.EqualValues(t, 4096, got.Diffs[0].Size)
	require.Len(t, got.Diffs[0].Native, 64)
}

func TestCopyImage(t *testing.T) {
	memory, maps := comparedPages()
	image, err := copyImage(memory, maps, 1, nil)
	require.NoError(t, err, "zeros take no room")
	require.Equal(t, []imageRange{{machine.Range{Start: comparedBase, End: comparedBase + 36*4096}, false}, {machine.Range{Start: comparedBase + 36*4096, End: comparedBase + 40*4096}, true}}, image.ranges)
	require.Equal(t, []memoryBlock{
		{addr: comparedBase, size: 65536},
		{addr: comparedBase + 65536, size: 65536, missing: 1 << 4},
		{addr: comparedBase + 32*4096, size: 4 * 4096},
		{addr: comparedBase + 36*4096, size: 4 * 4096, shared: true},
	}, image.blocks)
	memory[comparedBase+39*4096][5] = 1
	_, err = copyImage(memory, maps, 4*4096, nil)
	require.NoError(t, err)
	_, err = copyImage(memory, maps, 4*4096-1, nil)
	require.EqualError(t, err, "the process has 160 KiB of writable memory, and more than 15 KiB are in use")
	// A page that is unmapped later cannot be compared.
	image, err = copyImage(memory, maps, 0, nil)
	require.NoError(t, err)
	delete(memory, comparedBase+4096)
	got := compareMemory(image, memory, slices.Values([]interp.Touched(nil)), nil, machine.Range{}, false, func(uint64) bool { return false })
	require.EqualError(t, got.why, "the page at 0x700000001000 cannot be read")
	require.Equal(t, comparedMemory{why: got.why}, got)
}

// BenchmarkCompareMemory compares 256 MiB without a change.
func BenchmarkCompareMemory(b *testing.B) {
	data := bytes.Repeat([]byte{1}, 4096)
	memory := flatPages{}
	const size = 256 << 20
	for at := machine.Addr(0); at < size; at += 4096 {
		memory[comparedBase+at] = data
	}
	image, err := copyImage(memory, []machine.Mapping{{Start: comparedBase, End: comparedBase + size, Read: true, Write: true}}, 0, nil)
	require.NoError(b, err)
	b.SetBytes(size)
	for b.Loop() {
		compareMemory(image, memory, slices.Values([]interp.Touched(nil)), nil, machine.Range{}, false, func(uint64) bool { return false })
	}
}

// TestImageOfLargeMappings requires that reserved mappings with too many pages to query are not compared, and that a store to such a mapping makes
// memory not comparable, like a store to memory that is not writable.
func TestImageOfLargeMappings(t *testing.T) {
	memory, maps := comparedPages()
	const far = machine.Addr(1 << 46)
	memory[far] = make([]byte, 4096)
	large := append(slices.Clone(maps), machine.Mapping{Start: far, End: far + maxImageMapping + 4096, Read: true, Write: true})
	image, err := copyImage(memory, large, 0, nil)
	require.NoError(t, err)
	plain, err := copyImage(memory, maps, 0, nil)
	require.NoError(t, err)
	require.Equal(t, plain.blocks, image.blocks)
	for at, why := range map[machine.Addr]string{
		comparedBase: "", far: "the interpreter stored to 0x400000000000, in a mapping that is too large to be compared",
		0x1000: "the interpreter stored to 0x1000, which is not writable",
	} {
		stores := map[machine.Addr]string{at: "0500000000000000"}
		got := compareMemory(image, memory.with(stores), slices.Values(memory.stored(stores, nil)), nil, machine.Range{}, false, func(uint64) bool { return false })
		require.Equal(t, why, textOf(got.why))
		require.Zero(t, got.Words)
	}
	large = large[:0]
	for n := range machine.Addr(5) {
		large = append(large, machine.Mapping{Start: far + n*maxImageMapping, End: far + (n+1)*maxImageMapping, Read: true, Write: true})
	}
	_, err = copyImage(memory, large, 0, nil)
	require.ErrorContains(t, err, "the process has 320 GiB of writable memory, more than the limit of 256 GiB")
}

// reserved is memory that reports some of its parts as untouched.
type reserved struct {
	flatPages
	parts []machine.Range
}

func (r reserved) ReadMemory(p []byte, addr machine.Addr) error {
	for _, part := range r.parts {
		if part.Contains(addr) && addr+machine.Addr(len(p)) <= part.End {
			clear(p)
			return nil
		}
	}
	return r.flatPages.ReadMemory(p, addr)
}

func (r reserved) Untouched() []machine.Range { return r.parts }

// TestCompareReservedMemory requires that memory that had no pages is compared if the interpreter, native code, or both have touched it since.
func TestCompareReservedMemory(t *testing.T) {
	const start, size = machine.Addr(0x5000_0000_0000), machine.Addr(8 << 30)
	const page = start + 5<<30 + 0x3000
	whole := []machine.Range{{Start: start, End: start + size}}
	memory, maps := comparedPages()
	maps = append([]machine.Mapping{{Start: start, End: start + size, Read: true, Write: true}}, maps...)
	image, err := copyImage(reserved{memory, whole}, maps, 0, nil)
	require.NoError(t, err)
	require.Less(t, len(image.blocks), 10)
	five, six := map[machine.Addr]string{page + 8: "0500000000000000"}, map[machine.Addr]string{page + 8: "0600000000000000"}
	touched := reserved{flatPages{page: make([]byte, 4096)}, []machine.Range{{Start: start, End: page}, {Start: page + 4096, End: start + size}}}
	for at, b := range memory {
		touched.flatPages[at] = b
	}
	as := func(words map[machine.Addr]string) reserved { return reserved{touched.with(words), touched.parts} }
	untouched := reserved{memory, whole}
	for name, c := range map[string]struct {
		interpreter map[machine.Addr]string
		native      reserved
		diffs       []memoryDiff
	}{
		"nobody":            {nil, untouched, nil},
		"native alone":      {nil, as(five), []memoryDiff{{Addr: page + 8, Size: 8}}},
		"interpreter alone": {five, untouched, []memoryDiff{{Addr: page + 8, Size: 8}}},
		"both":              {five, as(five), nil},
		"each its own":      {six, as(five), []memoryDiff{{Addr: page + 8, Size: 8}}},
		"both zero":         {map[machine.Addr]string{page + 8: "0000000000000000"}, as(nil), nil},
		"unmapped":          {five, reserved{memory, nil}, nil},
	} {
		got := compareMemory(image, c.native, slices.Values(touched.stored(c.interpreter, nil)), nil, machine.Range{}, false, func(uint64) bool { return false })
		require.NoError(t, got.why, name)
		require.Len(t, got.Diffs, len(c.diffs), name)
		for i, d := range got.Diffs {
			require.Equal(t, c.diffs[i], memoryDiff{Addr: d.Addr, Size: d.Size}, name)
		}
	}
}

// TestChangesOfReservedMemory requires that the interpreter gets changes by native code in untouched memory, and memory that native code releases.
func TestChangesOfReservedMemory(t *testing.T) {
	const start, size = machine.Addr(0x5000_0000_0000), machine.Addr(1 << 30)
	const page = start + 1<<29 + 0x3000
	maps := []machine.Mapping{{Start: start, End: start + size, Read: true, Write: true}}
	none := reserved{flatPages{}, []machine.Range{{Start: start, End: start + size}}}
	some := reserved{flatPages{page: make([]byte, 4096)}, []machine.Range{{Start: start, End: page}, {Start: page + 4096, End: start + size}}}
	some.flatPages[page][16] = 7
	before, err := copyImage(none, maps, 0, nil)
	require.NoError(t, err)
	after, err := copyImage(some, maps, 0, before)
	require.NoError(t, err)
	list := changes(before, after, some)
	require.Equal(t, []changed{{addr: page + 16, data: []byte{7, 0, 0, 0, 0, 0, 0, 0}}}, list)
	with := before.with(list, after)
	var b [16]byte
	require.Equal(t, 16, with.read(b[:], page+8))
	require.Equal(t, [16]byte{8: 7}, b)
	require.Equal(t, 16, with.read(b[:], start+8))
	require.Zero(t, b)

	list = changes(after, before, none) // as after madvise(2)
	require.Equal(t, []changed{{addr: page + 16, data: make([]byte, 8)}}, list)
	with = after.with(list, before)
	require.Equal(t, 16, with.read(b[:], page+8))
	require.Zero(t, b)

	nothing, err := copyImage(flatPages{}, nil, 0, nil)
	require.NoError(t, err)
	with = nothing.with(changes(nothing, before, none), before) // the memory was just mapped
	require.Equal(t, 16, with.read(b[:], page+8))
	require.True(t, with.holds(page))

	list = changes(after, nothing, flatPages{})
	sum := uint64(0)
	for _, c := range list {
		sum += c.unmapped
	}
	require.EqualValues(t, size, sum)
	gone := after.with(list, nothing)
	require.Zero(t, gone.read(b[:], page+8))
	anew := gone.with(changes(nothing, before, none), before) // other memory was mapped there before
	require.Equal(t, 16, anew.read(b[:], page+8))
	require.Zero(t, b)
}

// TestCompareWithinReservedMemory requires that a new mapping in the middle of a block of a reserved mapping is compared once, with its own content.
// Seed 40 of remap.c makes such mappings.
func TestCompareWithinReservedMemory(t *testing.T) {
	const start, size = machine.Addr(0x5000_0000_0000), machine.Addr(1 << 30)
	none := reserved{flatPages{}, []machine.Range{{Start: start, End: start + size}}}
	before, err := copyImage(none, []machine.Mapping{{Start: start, End: start + size, Read: true, Write: true}}, 0, nil)
	require.NoError(t, err)
	memory := flatPages{start + 0x3000: make([]byte, 4096), start + 0x4000: bytes.Repeat([]byte{7}, 4096)}
	after, err := copyImage(memory, []machine.Mapping{{Start: start + 0x3000, End: start + 0x5000, Read: true, Write: true}}, 0, before)
	require.NoError(t, err)
	with := before.with(changes(before, after, memory), after)
	got := compareMemory(with, memory, slices.Values([]interp.Touched(nil)), nil, machine.Range{}, false, func(uint64) bool { return false })
	require.NoError(t, got.why)
	require.Zero(t, got.Words)
}

// textOf returns the text of a reason, or "".
func textOf(why error) string {
	if why == nil {
		return ""
	}
	return why.Error()
}
