package object

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// row is a line of readelf -sW.
type row struct {
	addr, size       uint64
	kind, bind, name string
	section          string
}

// readelf returns the symbols of a file without their versions.
func readelf(t *testing.T, path string) []row {
	t.Helper()
	var rows []row
	for line := range strings.Lines(livetest.Printed(t, livetest.Tool(t, "readelf"), "-sW", path)) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.HasSuffix(f[0], ":") || f[0] == "Num:" {
			continue
		}
		addr, err := strconv.ParseUint(f[1], 16, 64)
		require.NoError(t, err, line)
		size, err := strconv.ParseUint(f[2], 0, 64) // readelf prints large sizes in hexadecimal
		require.NoError(t, err, line)
		name, _, _ := strings.Cut(f[7], "@")
		rows = append(rows, row{addr, size, f[3], f[4], name, f[6]})
	}
	require.NotEmpty(t, rows, path)
	return rows
}

func openFile(t *testing.T, path string) *Image {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	require.NoError(t, err)
	img, err := New(path, f, info.Size())
	require.NoError(t, err)
	return img
}

func library(t *testing.T, pattern string) string {
	t.Helper()
	livetest.NeedsTools(t)
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	path, err := filepath.EvalSymlinks(files[0])
	require.NoError(t, err)
	return path
}

func TestSymbols(t *testing.T) {
	const bias = 0x7f0000000000
	for _, c := range []struct {
		name    string
		path    string
		samples int
	}{
		{"libLLVM", library(t, "/usr/lib/*/libLLVM.so.19.1"), 40},
		{"libc", library(t, "/lib/*/libc.so.6"), 300},
		{"ld.so", library(t, "/lib/*/ld-linux-x86-64.so.2"), 1000},
		{"program", livetest.CBinary(t, "threads.c"), 1000},
		{"stripped of nothing", livetest.CBinary(t, "threads.c", "-static"), 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			img := openFile(t, c.path)
			img.Bias = bias
			rows := readelf(t, c.path)
			addrs := map[string]map[machine.Addr]bool{}
			local := map[string]bool{}
			var defined []row
			for _, r := range rows {
				if _, err := strconv.Atoi(r.section); err != nil || r.kind == "TLS" || r.kind == "SECTION" || r.kind == "FILE" || r.name == "" {
					continue
				}
				defined = append(defined, r)
				if addrs[r.name] == nil {
					addrs[r.name] = map[machine.Addr]bool{}
				}
				addrs[r.name][machine.Addr(r.addr)+bias] = true
				if r.bind == "LOCAL" {
					local[r.name] = true
				}
			}
			step := max(1, len(defined)/c.samples)
			for i := 0; i < len(defined); i += step {
				r := defined[i]
				sym, ok := img.Lookup(r.name)
				require.True(t, ok, r.name)
				require.Equal(t, r.name, sym.Name)
				require.True(t, addrs[r.name][sym.Addr], "%s at %v", r.name, sym.Addr)
				if !local[r.name] {
					again, ok := img.Exported(r.name)
					require.True(t, ok, r.name)
					require.Equal(t, sym, again)
				}
				if r.size == 0 {
					continue
				}
				// Of all symbols that cover the middle of this one, SymbolAt returns the one that starts last.
				at := machine.Addr(r.addr+r.size/2) + bias
				sym, ok = img.SymbolAt(at)
				require.True(t, ok, r.name)
				var start uint64
				names := map[string]bool{}
				for _, o := range defined {
					if o.size == 0 || machine.Addr(o.addr)+bias > at || machine.Addr(o.addr+o.size)+bias <= at || o.addr < start {
						continue
					}
					if o.addr > start {
						start, names = o.addr, map[string]bool{}
					}
					names[o.name] = true
				}
				require.Equal(t, machine.Addr(start)+bias, sym.Addr, r.name)
				require.True(t, names[sym.Name], "%s is none of %v", sym.Name, names)
				require.LessOrEqual(t, uint64(at-sym.Addr), sym.Size)
			}
			for _, name := range []string{"", "no such symbol", "malloc\x00", strings.Repeat("x", 10000)} {
				_, ok := img.Lookup(name)
				require.False(t, ok, "%q", name)
			}
			for _, at := range []machine.Addr{0, 1, bias - 1, 1<<64 - 1} {
				_, ok := img.SymbolAt(at)
				require.False(t, ok, "%v", at)
			}
		})
	}
}

// TestSymbolsOfObject requires that symbols are found by address in an unloaded object after PlaceSections.
func TestSymbolsOfObject(t *testing.T) {
	for _, version := range []int{14, 16, 19, 22} {
		path := livetest.Object(t, version, "jit_pp.ll")
		img := openFile(t, path)
		require.Empty(t, img.Code(), "nothing is loaded")
		img.PlaceSections()
		require.True(t, img.Placed())
		require.Len(t, img.Code(), 1)
		functions := 0
		for _, r := range readelf(t, path) {
			if r.kind != "FUNC" || r.section == "UND" {
				continue
			}
			functions++
			sym, ok := img.Lookup(r.name)
			require.True(t, ok)
			require.Equal(t, img.Code()[0].Addr+machine.Addr(r.addr), sym.Addr)
			require.Equal(t, r.size, sym.Size)
			for _, at := range []machine.Addr{sym.Addr, sym.Addr + machine.Addr(sym.Size) - 1} {
				again, ok := img.SymbolAt(at)
				require.True(t, ok)
				require.Equal(t, sym, again)
			}
		}
		require.Equal(t, 3, functions, "blocker, work and main")
		_, ok := img.Lookup("pause")
		require.False(t, ok, "only referred to")
		_, ok = img.Exported("msg")
		require.False(t, ok, "a private constant")
	}
}

// TestSymbolsWithoutSize reads code without symbol sizes, as in assembly: SymbolAt returns the nearest symbol before in the same section.
func TestSymbolsWithoutSize(t *testing.T) {
	dir := t.TempDir()
	source, out := filepath.Join(dir, "bare.s"), filepath.Join(dir, "bare.o")
	require.NoError(t, os.WriteFile(source, []byte(`
	.text
	.skip 16
first:	.skip 16
	.globl second
second:	.skip 16
	.size third, 8
third:	.skip 16
	.section .other, "ax"
	.skip 32
`), 0o644))
	run(t, livetest.Tool(t, "gcc"), "-c", "-o", out, source)
	img := openFile(t, out)
	img.PlaceSections()
	text, other := img.Section(".text"), img.Section(".other")
	for _, c := range []struct {
		at   machine.Addr
		want string
	}{
		{text.Addr + 15, ""}, {text.Addr + 16, "first"}, {text.Addr + 31, "first"}, {text.Addr + 32, "second"},
		{text.Addr + 48, "third"}, {text.Addr + 55, "third"}, {text.Addr + 56, "second"}, {text.Addr + 64, ""},
		{other.Addr, ""}, {other.Addr + 31, ""},
	} {
		sym, ok := img.SymbolAt(c.at)
		require.Equal(t, c.want != "", ok, "%v", c.at)
		require.Equal(t, c.want, sym.Name, "%v", c.at)
	}
	_, ok := img.Exported("first")
	require.False(t, ok)
	_, ok = img.Exported("second")
	require.True(t, ok)
}

// countedReads counts the reads of an image.
type countedReads struct {
	io.ReaderAt
	n int
}

func (c *countedReads) ReadAt(p []byte, off int64) (int, error) {
	c.n++
	return c.ReaderAt.ReadAt(p, off)
}

// TestSymbolsOfManyFunctions requires that looking up the name of every function of a large object does not read the file for each.
func TestSymbolsOfManyFunctions(t *testing.T) {
	const many = 20000
	dir := t.TempDir()
	source, out := filepath.Join(dir, "many.s"), filepath.Join(dir, "many.o")
	var b strings.Builder
	b.WriteString("\t.text\n")
	for n := range many {
		fmt.Fprintf(&b, "function_%d:\n\tret\n", n)
	}
	require.NoError(t, os.WriteFile(source, []byte(b.String()), 0o644))
	for _, triple := range []string{"x86_64-linux-gnu", "x86_64-windows-msvc"} {
		run(t, livetest.LLVM(t, 22, "llvm-mc"), "-filetype=obj", "-triple="+triple, "-o", out, source)
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		r := &countedReads{ReaderAt: bytes.NewReader(data)}
		img, err := New("many", r, int64(len(data)))
		require.NoError(t, err)
		img.PlaceSections()
		text := img.Section(".text").Addr
		for n := range many {
			sym, ok := img.SymbolStarting(text + machine.Addr(n))
			require.True(t, ok)
			require.Equal(t, "function_"+strconv.Itoa(n), sym.Name)
			next, ok := img.Next(sym.Addr)
			require.Equal(t, n < many-1, ok)
			require.True(t, !ok || next == sym.Addr+1)
		}
		require.Less(t, r.n, 40, triple)
	}
}

// TestFileAddr looks up the first byte of each loadable segment, and of the page that it starts in, from readelf's program headers.
func TestFileAddr(t *testing.T) {
	path := livetest.CBinary(t, "threads.c")
	img := openFile(t, path)
	segments := 0
	for line := range strings.Lines(livetest.Printed(t, livetest.Tool(t, "readelf"), "-lW", path)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "LOAD" {
			continue
		}
		segments++
		var off, addr uint64
		_, err := fmt.Sscanf(f[1]+" "+f[2], "0x%x 0x%x", &off, &addr)
		require.NoError(t, err)
		got, ok := img.FileAddr(off)
		require.True(t, ok)
		require.Equal(t, machine.Addr(addr), got)
	}
	require.GreaterOrEqual(t, segments, 4)
	_, ok := img.FileAddr(1 << 40)
	require.False(t, ok)
}
