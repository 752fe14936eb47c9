package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// mc assembles a source for a triple.
func mc(t testing.TB, triple, text string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "o")
	run(t, livetest.LLVM(t, 22, "llvm-mc"), "-filetype=obj", "-triple="+triple, "-o", out, assembled(t, "in.s", text))
	return out
}

func symbolNames(list []Symbol) (names []string) {
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

// TestSymbolsStarting requires that symbols with one address are returned best first, although the object lists each before a better one. It compares
// them with those that llvm-nm prints.
func TestSymbolsStarting(t *testing.T) {
	const elfSource = `
	.set number, 0x1000
	.globl absolute
	.set absolute, 0x1000
	.type absolute, @function
	.size absolute, 64
	.text
.Lnone:
bare_local:
	.weak bare_weak
bare_weak:
	.globl bare
bare:
	.globl bare_function
	.type bare_function, @function
bare_function:
	.type local_function, @function
	.size local_function, 4
local_function:
	.weak weak_object
	.type weak_object, @object
	.size weak_object, 4
weak_object:
	.weak weak_function
	.type weak_function, @function
	.size weak_function, 4
weak_function:
	.globl global_object
	.type global_object, @object
	.size global_object, 4
global_object:
	.globl global_function
	.type global_function, @function
	.size global_function, 4
global_function:
	.globl second_function
	.type second_function, @function
	.size second_function, 4
second_function:
	.skip 8
`
	elfNames := []string{"global_function", "second_function", "global_object", "weak_function", "weak_object",
		"local_function", "bare_function", "bare", "bare_weak", "bare_local"}
	for _, c := range []struct {
		triple, text string
		source       string
		want         []string
		others       []string // other symbols with that address or absolute value
	}{
		{"x86_64-linux-gnu", ".text", elfSource, elfNames, []string{}},
		{"aarch64-linux-gnu", ".text", strings.Replace(elfSource, ".skip 8", "nop\n\tnop", 1), elfNames, []string{"$x"}},
		{"arm64-apple-macosx12", "__TEXT,__text", `
	.text
_local:
	.globl _weak
	.weak_definition _weak
_weak:
	.globl _global
_global:
	nop
`, []string{"_global", "_weak", "_local"}, []string{"ltmp0"}},
		{"x86_64-windows-msvc", ".text", `
	.text
	.globl other
other = here + 16
	.def local_function
	.scl 3
	.type 32
	.endef
here:
local_function:
	.weak weak
weak:
	.globl global
global:
	.globl function
	.def function
	.scl 2
	.type 32
	.endef
function:
	.skip 16
	nop
`, []string{"function", "global", "weak", "local_function", "here"}, []string{".text", "@feat.00", ".weak.weak.default.other"}},
	} {
		path := mc(t, c.triple, c.source)
		var listed []string
		for _, r := range llvmNM(t, path) {
			// llvm-nm prints no address for weak externals.
			if r.addr == 0 && r.kind != "U" {
				listed = append(listed, r.name)
			}
		}
		img := openFile(t, path)
		img.PlaceSections()
		at := img.Section(c.text).Addr
		require.Equal(t, machine.Addr(0x1000), at&^0xfff, "the number is an address too")
		list := img.SymbolsStarting(at)
		require.Equal(t, c.want, symbolNames(list), c.triple)
		require.Subset(t, append(c.want, c.others...), listed, c.triple)
		require.Equal(t, list, img.SymbolsStarting(at), "a second time")
		first, ok := img.SymbolStarting(at)
		require.True(t, ok)
		require.Equal(t, list[0], first)
		for n, s := range list {
			require.Equal(t, at, s.Addr)
			again, ok := img.Lookup(s.Name)
			require.True(t, ok)
			require.Equal(t, s, again, n)
		}
		inside, ok := img.SymbolAt(at + 1)
		require.True(t, ok)
		require.Equal(t, first, inside, c.triple)
		require.Empty(t, img.SymbolsStarting(at+1))
	}
}

// TestSymbolsStartingAtLabel requires that a label is returned if there is no other name.
func TestSymbolsStartingAtLabel(t *testing.T) {
	img := openFile(t, mc(t, "arm64-apple-macosx12", "\t.text\n\tnop\n_f:\n\tnop\n"))
	img.PlaceSections()
	at := img.Section("__TEXT,__text").Addr
	require.Equal(t, []string{"ltmp0"}, symbolNames(img.SymbolsStarting(at)))
	require.Equal(t, []string{"_f"}, symbolNames(img.SymbolsStarting(at+4)))
}

// TestSymbolsStartingOfLinked requires each name once, although .symtab and .dynsym of a linked image share most symbols.
func TestSymbolsStartingOfLinked(t *testing.T) {
	object := mc(t, "x86_64-linux-gnu", `
	.globl absolute
	.set absolute, 0x201000
	.text
	.skip 16
	.weak b
	.type b, @function
	.size b, 8
b:
	.globl a
	.type a, @function
	.size a, 8
a:
	.type c, @function
	.size c, 8
c:
	.skip 8
`)
	out := filepath.Join(t.TempDir(), "linked.so")
	lld(t, out, "-shared", object)
	both := map[string]int{}
	for _, r := range readelf(t, out) {
		both[r.name]++
	}
	require.Equal(t, []int{2, 2, 1}, []int{both["a"], both["b"], both["c"]})
	img := openFile(t, out)
	img.Bias = 0x7f0000000000
	at := nm(t, out)["a"] + img.Bias
	require.Equal(t, []Symbol{{"a", at, 8}, {"b", at, 8}, {"c", at, 8}}, img.SymbolsStarting(at))
	sym, ok := img.SymbolAt(at + 7)
	require.True(t, ok)
	require.Equal(t, Symbol{"a", at, 8}, sym)
}

// TestAbsoluteSymbols requires that absolute symbols of an unlinked image have no address, even if a section is placed at their value.
func TestAbsoluteSymbols(t *testing.T) {
	var source strings.Builder
	for at := 0; at < 0x4000; at += 4 {
		fmt.Fprintf(&source, "\t.globl n%x\n\t.set n%x, %#x\n\t.size n%x, 64\n", at, at, at, at)
	}
	path := mc(t, "x86_64-linux-gnu", source.String()+"\t.text\n\t.skip 64\n\t.globl f\n\t.size f, 8\nf:\t.skip 8\n")
	absolutes := 0
	for _, r := range readelf(t, path) {
		if r.section == "ABS" && strings.HasPrefix(r.name, "n") {
			absolutes++
		}
	}
	require.Equal(t, 0x1000, absolutes)
	img := openFile(t, path)
	img.PlaceSections()
	text := img.Section(".text").Addr
	next, ok := img.Next(0)
	require.True(t, ok)
	require.Equal(t, text+64, next)
	_, ok = img.Next(next)
	require.False(t, ok)
	require.Empty(t, img.SymbolsStarting(text))
	_, ok = img.SymbolAt(text)
	require.False(t, ok)
	sym, ok := img.SymbolAt(text + 71)
	require.True(t, ok)
	require.Equal(t, Symbol{"f", text + 64, 8}, sym)
	number, ok := img.Lookup("n1000")
	require.True(t, ok)
	require.Equal(t, machine.Addr(0x1000), number.Addr)
}

// TestSymbolAtPassesOverMarks requires that mapping symbols are not returned as functions, even in code whose symbols have no sizes.
func TestSymbolAtPassesOverMarks(t *testing.T) {
	path := mc(t, "aarch64-linux-gnu", "\t.text\nf:\n\tnop\n\t.word 0\n\tnop\n")
	marks := 0
	for _, r := range readelf(t, path) {
		if strings.HasPrefix(r.name, "$") {
			marks++
		}
	}
	require.Equal(t, 3, marks)
	img := openFile(t, path)
	img.PlaceSections()
	for off := range machine.Addr(12) {
		sym, ok := img.SymbolAt(img.Section(".text").Addr + off)
		require.True(t, ok)
		require.Equal(t, "f", sym.Name)
	}
}

// TestSymbolsStartingAmplification requires that SymbolsStarting allocates a bounded amount of memory if all symbols have one address and their long
// names share bytes.
func TestSymbolsStartingAmplification(t *testing.T) {
	const symbols, names = 40000, 45000
	var b bytes.Buffer
	for n := range symbols {
		_ = binary.Write(&b, binary.LittleEndian, elf.Sym64{Name: uint32(n + 1), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1, Size: 8})
	}
	rows := uint64(b.Len())
	for n := range names / 5 {
		fmt.Fprintf(&b, "%05d", n)
	}
	w := elfWriter{body: b.Bytes(), sections: []elf.Section64{
		{},
		{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Off: 64, Size: 64},
		{Type: uint32(elf.SHT_SYMTAB), Off: 64, Size: rows, Link: 3},
		{Type: uint32(elf.SHT_STRTAB), Off: 64 + rows, Size: names},
	}}
	data := w.bytes()
	spent := livetest.Allocated(func() {
		img := image(t, data)
		img.PlaceSections()
		for range 100 {
			require.Greater(t, len(img.SymbolsStarting(img.all[1].Addr)), 500)
		}
	})
	require.LessOrEqual(t, spent, uint64(32*len(data)+32<<20))
}

// TestSymbolsStartingOfMany looks up every function of a large object and all its names.
func TestSymbolsStartingOfMany(t *testing.T) {
	var b strings.Builder
	b.WriteString("\t.text\n")
	const many = 20000
	for n := range many {
		fmt.Fprintf(&b, "\t.globl g_%d\nf_%d:\ng_%d:\n\tret\n", n, n, n)
	}
	data, err := os.ReadFile(mc(t, "x86_64-linux-gnu", b.String()))
	require.NoError(t, err)
	r := &countedReads{ReaderAt: bytes.NewReader(data)}
	img, err := New("many", r, int64(len(data)))
	require.NoError(t, err)
	img.PlaceSections()
	text := img.Section(".text").Addr
	for n := range many {
		s := strconv.Itoa(n)
		require.Equal(t, []string{"g_" + s, "f_" + s}, symbolNames(img.SymbolsStarting(text+machine.Addr(n))))
	}
	require.Less(t, r.n, 40)
}
