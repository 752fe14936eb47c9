package ir

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// object compiles a module with llc and returns the bytes of each global.
func object(t *testing.T, version int, file string) map[string][]byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.o")
	_, errs, ok := llvm(t, version, "llc", append(opaque14(version), "-filetype=obj", "-o", out, file)...)
	require.True(t, ok, "llc-%d: %s", version, errs)
	f, err := elf.Open(out)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	require.NoError(t, err)
	globals := map[string][]byte{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_OBJECT || int(s.Section) >= len(f.Sections) {
			continue
		}
		b := make([]byte, s.Size)
		if section := f.Sections[s.Section]; section.Type != elf.SHT_NOBITS {
			data, err := section.Data()
			require.NoError(t, err)
			copy(b, data[s.Value:])
		}
		globals[s.Name] = b
	}
	return globals
}

// encode returns a constant as it lies in little-endian memory.
func encode(d *DataLayout, c *Const) []byte {
	b := make([]byte, d.Size(c.Typ))
	put := func(at uint64, e *Const) { copy(b[at:], encode(d, e)) }
	switch c.Kind {
	case ConstZero, ConstNull:
	case ConstInt, ConstFloat:
		le := c.Int.FillBytes(make([]byte, max(len(b), len(c.Int.Bytes()))))
		for i := range b {
			b[i] = le[len(le)-1-i]
		}
	case ConstBytes:
		copy(b, c.Bytes)
	case ConstAggregate:
		for i, e := range c.Elems {
			if c.Typ.Kind == StructKind {
				put(d.FieldOffset(c.Typ, i), e)
			} else {
				put(uint64(i)*d.Size(c.Typ.Elem), e)
			}
		}
	default:
		panic(fmt.Sprint("constant of kind ", c.Kind))
	}
	return b
}

// TestConstantsAreWhatLLCWrites requires the bits of every literal and the offset of every field that llc writes into an object file.
func TestConstantsAreWhatLLCWrites(t *testing.T) {
	file := filepath.Join("testdata", "constants.ll")
	m, err := ParseFile(file)
	require.NoError(t, err)
	require.Greater(t, len(m.Globals), 40)
	for _, v := range versions {
		globals := object(t, v, file)
		for _, g := range m.Globals {
			want, ok := globals[g.Name]
			require.True(t, ok, "llc-%d: no symbol %s", v, g.Name)
			got := encode(m.Layout, g.Init)
			require.Equal(t, want, got[:len(want)], "llc-%d: %s", v, g.Ref())
			require.Equal(t, uint64(len(want)), m.Layout.Size(g.ValueType), "llc-%d: size of %v", v, g.ValueType)
		}
	}
}

// TestLayoutIsWhatLLVMFolds requires the sizes, alignments and offsets to which LLVM folds getelementptr.
func TestLayoutIsWhatLLVMFolds(t *testing.T) {
	types := []string{
		"i1", "i7", "i8", "i16", "i17", "i24", "i32", "i33", "i48", "i64", "i65", "i96", "i128", "i129", "i256", "i1024",
		"half", "bfloat", "float", "double", "x86_fp80", "fp128", "ppc_fp128", "ptr", "ptr addrspace(1)",
		"ptr addrspace(270)", "ptr addrspace(272)",
		"<1 x i8>", "<3 x i8>", "<8 x i1>", "<9 x i1>", "<3 x i32>", "<2 x i64>", "<4 x i64>", "<5 x double>", "<2 x ptr>", "<3 x i24>",
		"[3 x i16]", "[0 x i64]", "[2 x x86_fp80]", "[3 x { i8, i32 }]",
		"{}", "{ i8 }", "{ i8, i16, i32, i64, i128 }", "<{ i8, i16, i32, i64, i128 }>", "{ i1, { i8, double }, <{ i8, ptr }>, [3 x i8] }",
		"{ i8, x86_fp80, i8 }", "{ i8, <2 x double>, i8 }", "{ i8, [0 x i64] }", "<{ i8, { i8, i32 } }>", "{ i8, i24, i40, half, i1 }",
	}
	layouts := []string{
		"",
		"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128",
		"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
	}
	for _, v := range versions {
		for _, layout := range layouts {
			if layout == "" && v < 18 {
				continue // that release aligns i128 to 8 bytes, unlike the default layout
			}
			if strings.Contains(layout, "i128") && v < 18 {
				continue // llc requires that release's own x86-64 layout
			}
			if v >= 18 && layout != "" && !strings.Contains(layout, "i128") {
				continue // these releases add i128:128 to the old layout
			}
			checkLayout(t, v, layout, types)
		}
	}
}

func checkLayout(t *testing.T, version int, layout string, types []string) {
	t.Helper()
	var src strings.Builder
	fmt.Fprintf(&src, "target triple = \"x86_64-pc-linux-gnu\"\n")
	if layout != "" {
		fmt.Fprintf(&src, "target datalayout = %q\n", layout)
	}
	probe := func(name, typ, indices string) {
		fmt.Fprintf(&src, "@%s = global i64 ptrtoint (ptr getelementptr (%s, ptr null, %s) to i64)\n", name, typ, indices)
	}
	for i, typ := range types {
		fmt.Fprintf(&src, "@t%d = external global %s\n", i, typ)
		probe(fmt.Sprintf("size%d", i), typ, "i64 1")
		probe(fmt.Sprintf("align%d", i), "{ i1, "+typ+" }", "i64 0, i32 1")
	}
	fields := map[string]*Type{}
	m := parse(t, src.String())
	for i := range types {
		typ := m.Lookup(fmt.Sprintf("t%d", i)).(*Global).ValueType
		if typ.Kind == StructKind {
			for k := range typ.Fields {
				name := fmt.Sprintf("field%d_%d", i, k)
				probe(name, types[i], fmt.Sprintf("i64 0, i32 %d", k))
				fields[name] = typ
			}
		}
	}
	globals := object(t, version, write(t, "layout.ll", src.String()))
	folded := func(name string) uint64 {
		b := bytes.Clone(globals[name])
		require.Len(t, b, 8, name)
		for i := range 4 {
			b[i], b[7-i] = b[7-i], b[i]
		}
		return new(big.Int).SetBytes(b).Uint64()
	}
	for i, text := range types {
		typ := m.Lookup(fmt.Sprintf("t%d", i)).(*Global).ValueType
		require.Equal(t, folded(fmt.Sprintf("size%d", i)), m.Layout.Size(typ), "LLVM %d: size of %s", version, text)
		require.Equal(t, folded(fmt.Sprintf("align%d", i)), uint64(m.Layout.Align(typ)), "LLVM %d: alignment of %s", version, text)
		for k := range typ.Fields {
			name := fmt.Sprintf("field%d_%d", i, k)
			if fields[name] != nil {
				require.Equal(t, folded(name), m.Layout.FieldOffset(typ, k), "LLVM %d: field %d of %s", version, k, text)
			}
		}
	}
}
