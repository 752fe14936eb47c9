package ir

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParseDataLayout parses the layouts that LLVM 14 to 22 use for common targets.
func TestParseDataLayout(t *testing.T) {
	i128 := &Type{Kind: IntKind, Bits: 128}
	fp80 := &Type{Kind: X86FP80Kind}
	for _, c := range []struct {
		name, text        string
		big               bool
		pointer           int
		i64, i128, fp80   int
		program, g, stack int
	}{
		{"x86-64 of LLVM 14", "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128", false, 8, 8, 8, 16, 0, 0, 0},
		{"x86-64 of LLVM 18", "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128", false, 8, 8, 16, 16, 0, 0, 0},
		{"none", "", false, 8, 8, 16, 16, 0, 0, 0},
		{"aarch64", "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32", false, 8, 8, 16, 16, 0, 0, 0},
		{"i386", "e-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i128:128-f64:32:64-f80:32-n8:16:32-S128", false, 4, 4, 16, 4, 0, 0, 0},
		{"s390x", "E-m:e-i1:8:16-i8:8:16-i64:64-f128:64-v128:64-a:8:16-n32:64", true, 8, 8, 8, 16, 0, 0, 0},
		{"ppc64", "E-m:e-Fi64-i64:64-n32:64-S128-v256:256:256-v512:512:512", true, 8, 8, 8, 16, 0, 0, 0},
		{"amdgcn", "e-p:64:64-p1:64:64-p2:32:32-p7:160:256:256:32-i64:64-v16:16-v24:32-n32:64-S32-A5-G1-ni:7:8:9", false, 8, 8, 8, 16, 0, 1, 5},
	} {
		d, err := ParseDataLayout(c.text)
		require.NoError(t, err, c.name)
		require.Equal(t, c.text, d.Text)
		require.Equal(t, c.big, d.BigEndian, c.name)
		require.Equal(t, c.pointer, d.PointerBytes(0), c.name)
		require.Equal(t, c.pointer, d.PointerBytes(77), c.name)
		require.Equal(t, c.i64, d.Align(I64), c.name)
		require.Equal(t, c.i128, d.Align(i128), c.name)
		require.Equal(t, c.fp80, d.Align(fp80), c.name)
		require.Equal(t, []int{c.program, c.g, c.stack}, []int{d.ProgramSpace, d.GlobalSpace, d.AllocaSpace}, c.name)
	}
	for text, want := range map[string]string{
		"e--S128":           `data layout specification "": is empty`,
		"e-i64":             `data layout specification "i64": needs an alignment`,
		"e-i64:12":          `data layout specification "i64:12": 12 bits is not an alignment`,
		"e-p:64":            `data layout specification "p:64": needs a size and an alignment`,
		"e-p:0:8":           `data layout specification "p:0:8": a pointer needs a size and an alignment`,
		"e-p:32:32:32:64":   `data layout specification "p:32:32:32:64": an index must not be wider than its pointer`,
		"e-p99999999:64:64": `data layout specification "p99999999:64:64": "99999999" is not a number below 16777216`,
		"x":                 `data layout specification "x": is not known`,
		"little":            `data layout specification "little": is not known`,
	} {
		_, err := ParseDataLayout(text)
		require.EqualError(t, err, want)
	}
}

// TestLayoutOfATriple requires that a module without a layout has that of its triple (as clang 14 to 22 print them).
func TestLayoutOfATriple(t *testing.T) {
	fp80, double := &Type{Kind: X86FP80Kind}, &Type{Kind: DoubleKind}
	for _, c := range []struct {
		triple                string
		pointer               int
		i64, double, longSize int
	}{
		{"", 8, 8, 8, 16}, {"x86_64-linux-gnu", 8, 8, 8, 16}, {"x86_64-pc-windows-msvc", 8, 8, 8, 16},
		{"i686-unknown-linux-gnu", 4, 4, 4, 12}, {"i386-unknown-freebsd", 4, 4, 4, 12}, {"i586-apple-macosx10.8", 4, 4, 4, 16}, {"i386-apple-darwin", 4, 4, 4, 16},
		{"i686-pc-windows-msvc", 4, 8, 8, 16}, {"i686-pc-windows", 4, 8, 8, 16}, {"i686-w64-windows-gnu", 4, 8, 8, 12}, {"i686-w64-mingw32", 4, 8, 8, 12},
		{"i686-pc-cygwin", 4, 8, 8, 12}, {"i286-linux", 8, 8, 8, 16}, {"i6865-linux", 8, 8, 8, 16},
	} {
		m, err := Parse("m.ll", []byte(`target triple = "`+c.triple+`"`))
		require.NoError(t, err)
		require.Equal(t, c.pointer, m.Layout.PointerBytes(0), c.triple)
		require.Equal(t, []int{c.i64, c.double, c.longSize}, []int{m.Layout.Align(I64), m.Layout.Align(double), int(m.Layout.Size(fp80))}, c.triple)
		require.Empty(t, m.Layout.Text)
	}
	for _, order := range []string{"%s%s", "%[2]s%[1]s"} { // before or after the triple: a written layout takes precedence
		m, err := Parse("m.ll", fmt.Appendf(nil, order, "target datalayout = \"e\"\n", "target triple = \"i686-linux-gnu\"\n"))
		require.NoError(t, err)
		require.Equal(t, 8, m.Layout.PointerBytes(0))
	}
}

func TestWidthOfAnIndex(t *testing.T) {
	d, err := ParseDataLayout("e-p:64:64-p1:32:32-p7:160:256:256:32")
	require.NoError(t, err)
	for space, bits := range map[int]int{0: 64, 1: 32, 2: 64, 7: 32} {
		require.Equal(t, bits, d.IndexBits(space), "%d", space)
	}
}

// TestNonIntegralAddressSpaces requires that ni names the non-integral address spaces; like LLVM, it rejects space 0.
func TestNonIntegralAddressSpaces(t *testing.T) {
	m := parse(t, "target datalayout = \"e-p1:64:64-ni:8:1:8-n8:16:32:64\"\n")
	for space, want := range map[int]bool{0: false, 1: true, 2: false, 8: true} {
		require.Equal(t, want, m.Layout.NonIntegral(space), "%d", space)
	}
	plain, err := ParseDataLayout("e-p1:64:64-n8:16:32:64")
	require.NoError(t, err)
	require.False(t, plain.NonIntegral(1))
	with, err := ParseDataLayout("e-ni:1")
	require.NoError(t, err)
	without, err := ParseDataLayout("e")
	require.NoError(t, err)
	require.False(t, with.Equal(without))
	for _, text := range []string{"e-ni:0", "e-ni:x"} {
		_, err := ParseDataLayout(text)
		require.Error(t, err, text)
		_, _, ok := llvm(t, 19, "llvm-as", "-o", "/dev/null", write(t, "ni.ll", "target datalayout = \""+text+"\"\n"))
		require.False(t, ok, text)
	}
}

// TestEqualLayouts requires that layouts are compared by their specifications and not by their caches.
func TestEqualLayouts(t *testing.T) {
	a, err := ParseDataLayout("")
	require.NoError(t, err)
	b, err := ParseDataLayout("")
	require.NoError(t, err)
	require.Equal(t, uint64(16), a.Size(&Type{Kind: StructKind, Fields: []*Type{I8, I64}}))
	require.True(t, a.Equal(b))
	for _, text := range []string{"E", "e-p:32:32", "e-i64:32", "e-a:0:32", "e-v128:32"} {
		other, err := ParseDataLayout(text)
		require.NoError(t, err)
		require.False(t, a.Equal(other), text)
	}
}

func TestSizesWithoutASize(t *testing.T) {
	d, err := ParseDataLayout("")
	require.NoError(t, err)
	for _, typ := range []*Type{Void, Label, {Kind: StructKind, Opaque: true, Name: "o"}, {Kind: FuncKind, Elem: Void},
		{Kind: VectorKind, Elem: I32, Len: 4, Scalable: true}, {Kind: TargetKind, Name: "target(\"x\")"}} {
		require.Equal(t, NoSize, d.Size(typ), typ.String())
		require.Equal(t, NoSize, d.Size(&Type{Kind: ArrayKind, Len: 2, Elem: typ}))
		require.Equal(t, NoSize, d.Size(&Type{Kind: StructKind, Fields: []*Type{I8, typ}}))
	}
	pair := &Type{Kind: StructKind, Fields: []*Type{I8, I64}}
	require.Equal(t, uint64(8), d.FieldOffset(pair, 1))
	require.Equal(t, NoSize, d.FieldOffset(pair, 2))
	require.Equal(t, NoSize, d.FieldOffset(pair, -1))
}
