package object

import (
	"bytes"
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

// exported returns the names that the dynamic symbol table of a file defines, according to readelf, with their addresses. For a name with a default
// version (NAME@@VERSION, or no version) it returns only the address of that version. missing lists the undefined names that it refers to.
func exported(t *testing.T, path string) (defined map[string]map[machine.Addr]bool, missing []string) {
	t.Helper()
	defined = map[string]map[machine.Addr]bool{}
	older := map[string]map[machine.Addr]bool{}
	var undefined []string
	for line := range strings.Lines(livetest.Printed(t, livetest.Tool(t, "readelf"), "-W", "--dyn-syms", path)) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.HasSuffix(f[0], ":") || f[0] == "Num:" || f[3] == "TLS" || f[3] == "SECTION" {
			continue
		}
		name, version, versioned := strings.Cut(f[7], "@")
		into := defined
		if versioned && !strings.HasPrefix(version, "@") {
			into = older
		}
		if f[6] == "UND" {
			undefined = append(undefined, name)
			continue
		}
		addr, err := strconv.ParseUint(f[1], 16, 64)
		require.NoError(t, err, line)
		if into[name] == nil {
			into[name] = map[machine.Addr]bool{}
		}
		into[name][machine.Addr(addr)] = true
	}
	for name, at := range older {
		if defined[name] == nil {
			defined[name] = at
		}
	}
	for _, name := range undefined {
		if defined[name] == nil {
			missing = append(missing, name)
		}
	}
	return defined, missing
}

// sharedObject links a library with many functions.
func sharedObject(t *testing.T, triple string, flags ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\t.text\n\t.globl elsewhere\n")
	for n := range 300 {
		fmt.Fprintf(&b, "\t.globl function_%d\n\t.type function_%d,@function\nfunction_%d:\n\t.long %d\n\t.size function_%d, 4\n", n, n, n, n, n)
	}
	b.WriteString("\t.weak weak_one\nweak_one:\n\t.long 0\nlocal_one:\n\t.long 0\n\t.data\n\t.globl thing\nthing:\n\t.long 7\n")
	out := filepath.Join(t.TempDir(), "many.so")
	lld(t, out, append([]string{"-shared", "-s"}, append(flags, mc(t, triple, b.String()))...)...)
	return out
}

// TestNameHash looks up every name of libraries for several architectures, with the hash tables of GNU ld and lld and without one.
func TestNameHash(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		path   string
		hashed bool
		least  int // least number of names
	}{
		{library(t, "/usr/lib/*/libLLVM.so.19.1"), true, 40_000}, // linked by GNU ld
		{library(t, "/usr/lib/*/libLLVM.so.22*"), true, 40_000},
		{library(t, "/lib/*-linux-gnu/libc.so.6"), true, 2000},
		{"/usr/aarch64-linux-gnu/lib/libc.so.6", true, 2000},
		{"/usr/powerpc64-linux-gnu/lib/libc.so.6", true, 2000},
		{"/usr/s390x-linux-gnu/lib/libc.so.6", true, 2000},
		{sharedObject(t, "x86_64-linux-gnu", "--hash-style=gnu"), true, 302},
		{sharedObject(t, "i386-linux-gnu", "--hash-style=gnu"), true, 302},
		{sharedObject(t, "powerpc64-linux-gnu", "--hash-style=both"), true, 302},
		{sharedObject(t, "x86_64-linux-gnu", "--hash-style=sysv"), false, 302},
	} {
		t.Run(filepath.Base(filepath.Dir(c.path))+"/"+filepath.Base(c.path), func(t *testing.T) {
			img := openFile(t, c.path)
			tables := img.symbolTables()
			require.Len(t, tables, 1, "it is stripped")
			require.Equal(t, c.hashed, tables[0].hash != nil)
			defined, missing := exported(t, c.path)
			require.GreaterOrEqual(t, len(defined), c.least)
			for name, at := range defined {
				sym, ok := img.Lookup(name)
				require.True(t, ok, name)
				require.True(t, at[sym.Addr], "%s at %v", name, sym.Addr)
				_, alone := img.Only(name)
				require.Equal(t, len(at) == 1, alone, name)
				if _, ok = img.Lookup(name + "x"); defined[name+"x"] == nil {
					require.False(t, ok, name+"x")
				}
			}
			for _, name := range missing {
				_, ok := img.Lookup(name)
				require.False(t, ok, name)
			}
		})
	}
}

// TestNameHashReadsLittle requires that looking up a name in a large library takes few reads, whether the name exists or not.
func TestNameHashReadsLittle(t *testing.T) {
	path := library(t, "/usr/lib/*/libLLVM.so.19.1")
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	r := &countedReads{ReaderAt: f}
	img, err := New(path, r, info.Size())
	require.NoError(t, err)
	for _, name := range []string{"__jit_debug_descriptor", "__jit_debug_descriptors"} {
		before := r.n
		spent := livetest.Allocated(func() {
			_, ok := img.Lookup(name)
			require.Equal(t, name == "__jit_debug_descriptor", ok)
		})
		require.LessOrEqual(t, r.n-before, 20, name)
		require.LessOrEqual(t, spent, uint64(64<<10), name)
	}
}

// TestNameHashChanged requires that with a changed table a name is found at its address or not at all.
func TestNameHashChanged(t *testing.T) {
	path := sharedObject(t, "x86_64-linux-gnu", "--hash-style=gnu")
	defined, _ := exported(t, path)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	hash := openFile(t, path).symbolTables()[0].hash
	require.NotNil(t, hash)
	content, err := hash.section.Data()
	require.NoError(t, err)
	from := bytes.Index(data, content)
	require.Positive(t, from)
	found, lost := 0, 0
	for at := range content {
		for _, v := range []byte{0, 1, 0x7f, 0xff, content[at] ^ 1, content[at] + 1} {
			data[from+at] = v
			img, err := New(path, bytes.NewReader(data), int64(len(data)))
			require.NoError(t, err)
			for _, name := range []string{"function_0", "function_177", "weak_one", "thing", "elsewhere", "local_one"} {
				sym, ok := img.Lookup(name)
				if !ok {
					lost++
					continue
				}
				found++
				require.True(t, defined[name][sym.Addr], "byte %d of the table: %s at %v", at, name, sym.Addr)
			}
		}
		data[from+at] = content[at]
	}
	require.Greater(t, found, lost)
}

// TestSymbolAtOfOthers requires the symbol that covers an address, for every function of big-endian and of 32-bit libraries.
func TestSymbolAtOfOthers(t *testing.T) {
	for _, path := range []string{
		"/usr/s390x-linux-gnu/lib/libc.so.6",
		sharedObject(t, "i386-linux-gnu"),
		sharedObject(t, "powerpc64-linux-gnu"),
	} {
		img := openFile(t, path)
		img.Bias = 0x7f0000000000
		functions := 0
		rows := readelf(t, path)
		for n, r := range rows {
			if r.kind != "FUNC" || r.section == "UND" || r.size == 0 || n%5 != 0 {
				continue
			}
			functions++
			sym, ok := img.SymbolAt(img.Bias + machine.Addr(r.addr+r.size-1))
			require.True(t, ok, r.name)
			require.GreaterOrEqual(t, uint64(sym.Addr-img.Bias), r.addr, r.name) // SymbolAt may return another symbol, which starts later
			require.Greater(t, uint64(sym.Addr-img.Bias)+sym.Size, r.addr+r.size-1, r.name)
		}
		require.GreaterOrEqual(t, functions, 50, path)
	}
}
