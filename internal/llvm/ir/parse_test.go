package ir

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModuleHeader(t *testing.T) {
	m, err := ParseFile(filepath.Join("testdata", "common.ll"))
	require.NoError(t, err)
	require.Equal(t, "x86_64-pc-linux-gnu", m.Triple)
	require.Equal(t, "{ i32, double }", (&Type{Kind: StructKind, Fields: m.TypeNames["struct.pair"].Fields}).String())
	require.True(t, m.TypeNames["opaque"].Opaque)
	require.True(t, m.TypeNames["odd name"].Packed)
	require.Equal(t, `%"odd name"`, m.TypeNames["odd name"].String())

	type global struct {
		ref, typ, value, linkage, init string
		constant, external             bool
		align, space                   int
	}
	describe := func(name string) global {
		g := m.Lookup(name).(*Global)
		d := global{ref: g.Ref(), typ: g.Type().String(), value: g.ValueType.String(), linkage: g.Linkage,
			constant: g.Constant, external: g.External, align: g.Align, space: g.AddrSpace}
		if g.Init != nil {
			d.init = g.Init.Ref()
		}
		return d
	}
	require.Equal(t, global{ref: "@g", typ: "ptr", value: "i32", init: "7", align: 4}, describe("g"))
	require.Equal(t, global{ref: "@h", typ: "ptr", value: "[4 x i8]", init: `c"a\22\00\FF"`, constant: true, align: 1}, describe("h"))
	require.Equal(t, global{ref: "@1", typ: "ptr", value: "ptr", linkage: "internal", init: "@h"}, describe("1"))
	require.Equal(t, global{ref: `@"quoted @ name"`, typ: "ptr", value: "%struct.pair", linkage: "internal", init: "{ i32 -1, double 2.500000e+00 }"}, describe("quoted @ name"))
	require.Equal(t, global{ref: "@ext", typ: "ptr", value: "i64", linkage: "external", external: true}, describe("ext"))
	require.Equal(t, global{ref: "@space", typ: "ptr addrspace(3)", value: "i16", init: "-2", space: 3}, describe("space"))
	require.Equal(t, global{ref: "@later", typ: "ptr", value: "ptr", init: "@defined_later"}, describe("later"))
	require.Equal(t, "[ptr blockaddress(@indirect, %one), ptr blockaddress(@indirect, %two)]", describe("blocks").init)
	require.Equal(t, "<float 1.000000e+00, float -0.000000e+00, float 1.500000e+00, float undef>", describe("vec").init)
	require.Equal(t, "ptrtoint (ptr getelementptr (%struct.pair, ptr @\"quoted @ name\", i64 0, i32 1) to i64)", describe("addr").init)
	require.Equal(t, "<{ i8 1, [3 x i16] [i16 1, i16 2, i16 -3], %struct.pair zeroinitializer }>", describe("packed").init)

	alias := m.Lookup("alias2").(*Alias)
	require.Equal(t, "getelementptr ([16 x i32], ptr @comm, i64 0, i64 3)", alias.Target.Ref())
	require.True(t, m.Lookup("ifun").(*Alias).IFunc)
	require.Nil(t, m.Lookup("nothing"))
	require.Nil(t, m.Func("g"))

	f := m.Func("defined_later")
	require.Equal(t, "i32 (i32)", f.Sig.String())
	require.Equal(t, "fastcc", f.CC)
	require.True(t, f.Params[0].Attrs.SignExt)
	require.Equal(t, "0", f.Params[0].Name)
	require.Equal(t, "statepoint-example", m.Func(`name with " quote and \`).GC)
	require.True(t, m.Func("printf").Declared())
	require.Equal(t, "i32 (ptr, ...)", m.Func("printf").Sig.String())
}

func TestNumbersAndNames(t *testing.T) {
	m, err := ParseFile(filepath.Join("testdata", "common.ll"))
	require.NoError(t, err)
	f := m.Func("implicit")
	body, err := f.Body()
	require.NoError(t, err)
	require.Equal(t, []string{"0", "named", "1"}, []string{f.Params[0].Name, f.Params[1].Name, f.Params[2].Name})
	require.Equal(t, "2", body[0].Name)
	require.Equal(t, "3", body[0].Instrs[0].Name)
	require.Equal(t, f.Params[2], body[0].Instrs[0].Args[1])
	require.Equal(t, body[1], f.Block("next"))
	require.Equal(t, Value(body[1].Instrs[0]), f.Value("4"))
	require.Nil(t, f.Value("next"))
	require.Nil(t, f.Block("4"))

	odd := m.Func(`name with " quote and \`)
	require.Equal(t, `@"name with \22 quote and \5C"`, odd.Ref())
	require.Equal(t, `%"a b"`, odd.Value("a b").Ref())
	require.Equal(t, `%"7"`, odd.Value(`"7"`).Ref()) // %"7" is a name and not a number
	require.Equal(t, "%1", odd.Value("1").Ref())
	require.Equal(t, `%"-x.$y_"`, odd.Value("-x.$y_").Ref())
}

func TestInstructions(t *testing.T) {
	m, err := ParseFile(filepath.Join("testdata", "common.ll"))
	require.NoError(t, err)
	in := func(f, name string) *Instr {
		v, ok := m.Func(f).Value(name).(*Instr)
		require.True(t, ok, "%%%s of @%s", name, f)
		return v
	}
	require.Equal(t, NSW|NUW, in("arith", "add").Flags)
	require.Equal(t, Exact, in("arith", "ud").Flags)
	require.Equal(t, NoNaNs|NoInfs|NoSignedZeros|AllowReciprocal|AllowContract|ApproxFunc|Reassoc, in("arith", "fneg").Flags)
	require.Equal(t, "9223372036854775808", in("arith", "sub").Args[1].(*Const).Int.String()) // the operand -9223372036854775808, modulo 2^64
	require.Equal(t, "-9223372036854775808", in("arith", "sub").Args[1].Ref())
	require.Equal(t, "18446744073709551615", in("arith", "xor").Args[1].(*Const).Int.String())
	require.Equal(t, "<4 x i1>", in("arith", "c2").Typ.String())
	require.Equal(t, "sge", in("arith", "c2").Pred)
	require.Equal(t, "ptr addrspace(5)", in("arith", "as").Typ.String())

	alloca := in("memory", "vla")
	require.Equal(t, []Value{m.Func("memory").Params[3]}, alloca.Args)
	require.Equal(t, "i8", alloca.Elem.String())
	load := in("memory", "la")
	require.Equal(t, Atomic|Volatile, load.Flags)
	require.Equal(t, 8, load.Align)
	require.Equal(t, "{ i64, i1 }", in("memory", "cx").Typ.String())
	require.Equal(t, "umax", in("memory", "rmw2").Pred)
	require.Equal(t, "<2 x ptr>", in("memory", "g3").Typ.String())
	require.Equal(t, InBounds|NUSW, in("memory", "g1").Flags)
	require.Equal(t, "%struct.pair", m.Func("memory").Params[1].Attrs.ByVal.String())

	require.Equal(t, []int{1, 1}, in("aggregates", "e").Path)
	require.Equal(t, "i64", in("aggregates", "e").Typ.String())
	require.Equal(t, []int{0, 5, -1, 3}, in("aggregates", "s").Path)
	require.Equal(t, []int{0, 0}, in("aggregates", "s2").Path)
	require.Len(t, in("aggregates", "s").Args, 2)

	sw := m.Func("control").Block("entry").Instrs[0]
	require.Equal(t, "0 4294967295 2147483647", strings.Join([]string{sw.Cases[0].String(), sw.Cases[1].String(), sw.Cases[2].String()}, " "))
	require.Equal(t, "other block", sw.Blocks[0].Name)
	require.Equal(t, []*Block{sw.Blocks[0], sw.Blocks[1], sw.Blocks[1], sw.Blocks[3]}, sw.Blocks)
	phi := in("control", "f")
	require.Equal(t, Value(phi), phi.Args[2]) // a phi may be its own operand

	printf := in("calls", "r").Call
	require.Equal(t, "i32 (ptr, ...)", printf.Sig.String())
	require.Equal(t, Value(m.Func("printf")), printf.Callee)
	tail := in("calls", "r2")
	require.Equal(t, "tail", tail.Call.Tail)
	require.Equal(t, "fastcc", tail.Call.CC)
	require.Equal(t, map[string]string{"statepoint-id": "77"}, tail.Call.Attrs)
	require.True(t, tail.Call.ArgAttrs[0].SignExt)
	bundled := in("calls", "b").Call.Bundles
	require.Equal(t, "deopt", bundled[0].Tag)
	require.Len(t, bundled[0].Args, 3)
	require.Equal(t, Bundle{Tag: "other"}, bundled[1])
	require.Equal(t, &InlineAsm{Text: "cpuid", Constraints: "={ax},={bx}"}, in("calls", "a").Call.Callee)
	invoke := in("calls", "inv")
	require.Equal(t, "ok bad", invoke.Blocks[0].Name+" "+invoke.Blocks[1].Name)
	require.Equal(t, Cleanup, in("calls", "lp").Flags)
	entry := m.Func("calls").Block("0").Instrs
	require.Equal(t, "%struct.pair", entry[3].Call.ArgAttrs[0].ByVal.String())
	require.Equal(t, "{ i32 }", entry[3].Call.ArgAttrs[1].SRet.String())
	require.Equal(t, "cc 11", entry[5].Call.CC)
	require.Equal(t, "cc 99", entry[6].Call.CC)
}

func TestTypedPointers(t *testing.T) {
	m, err := ParseFile(filepath.Join("testdata", "typed.ll"))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	require.Equal(t, "i32**", m.Lookup("p").Type().String())
	require.Equal(t, "i32 addrspace(1)*", m.Lookup("space").Type().String())
	require.Equal(t, "void (%struct.node*)*", m.Func("visit").Type().String())
	require.Equal(t, "void (%struct.node*)**", m.Func("visit").Value("f.p").Type().String())
	require.Equal(t, "<2 x i32*>", m.Func("pointers").Value("ve").Type().String())
	require.Equal(t, "i64*", m.Lookup("al2").Type().String())

	// A second error keeps LLVM 17 and later from reading the module with opaque pointers, so pointees are compared.
	_, err = Parse("t.ll", []byte("@g = global i32 0\n@p = global i8* @g\n@q = global i8* @nope\n"))
	requireShown(t, err, "t.ll:2:17: '@g' defined with type 'i32*' but expected 'i8*'\n@p = global i8* @g\n                ^")
	m, err = Parse("t.ll", []byte("define void @f(i8* %p) {\n\t%x = load i32, i8* %p\n\tret i32 %x\n}\n"))
	require.NoError(t, err)
	requireShown(t, m.Check(), "t.ll:2:17: explicit pointee type doesn't match operand's pointee type ('i32' vs 'i8')\n\t%x = load i32, i8* %p\n\t               ^")
}

func TestHexIntegers(t *testing.T) {
	m, err := ParseFile(filepath.Join("testdata", "llvm19.ll"))
	require.NoError(t, err)
	// LangRef: s0x0001 is -1, because it is sign-extended from its active bits.
	require.Equal(t, "[i16 -2, i16 -1, i16 16]", m.Lookup("hex").(*Global).Init.Ref())
	require.Equal(t, "<i32 7, i32 7, i32 7, i32 7>", m.Lookup("v").(*Global).Init.Ref())
}

// TestBodiesAreLazy requires that a body is parsed on first use: each use and Check return its error.
func TestBodiesAreLazy(t *testing.T) {
	m, err := Parse("lazy.ll", []byte("define void @good() {\n  ret void ; a brace } in a comment\n}\n\ndefine void @bad() {\n  nonsense \"}\"\n}\n"))
	require.NoError(t, err)
	_, err = m.Func("good").Body()
	require.NoError(t, err)
	for range 2 {
		_, err = m.Func("bad").Body()
		requireShown(t, err, "lazy.ll:6:3: expected instruction opcode, not 'nonsense'\n  nonsense \"}\"\n  ^")
	}
	require.Equal(t, err, m.Check())
	require.Nil(t, m.Func("bad").Block("0"))

	m, err = Parse("lazy.ll", []byte("declare void @f()\n"))
	require.NoError(t, err)
	_, err = m.Func("f").Body()
	require.EqualError(t, err, "lazy.ll: @f is declared here and has no body")
}

func TestBodiesFromManyGoroutines(t *testing.T) {
	m, err := ParseFile(filepath.Join("testdata", "common.ll"))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, f := range m.Funcs {
				if f.Declared() {
					continue
				}
				body, err := f.Body()
				if err == nil {
					_, err = LiveAt(body[0], 0)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestBounds requires errors for short texts that would expand to large or infinite objects.
func TestBounds(t *testing.T) {
	chain := func(n int, format func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(format(i))
		}
		return b.String()
	}
	itoa := func(i int) string { return strings.Repeat("a", i+1) }
	for name, c := range map[string]struct{ src, want string }{
		"struct in itself":  {"%t = type { i32, [2 x %t] }\n@g = global i32 0, align 3\n", "b.ll:2:26: alignment is not a power of two"},
		"structs in cycle":  {"%t = type { %u }\n%u = type <{ %t }>\n@g = global i32 0, align 3\n", "b.ll:3:26: alignment is not a power of two"},
		"nested brackets":   {"@g = global " + strings.Repeat("[1 x ", 5000), "b.ll:1:1013: nested more than 200 deep"},
		"nested constants":  {"@g = global i32 " + strings.Repeat("add (i32 ", 5000), "b.ll:1:1813: nested more than 200 deep"},
		"exponential alias": {"%a = type i32\n" + chain(40, func(i int) string { return "%" + itoa(i+1) + " = type [1 x { %" + itoa(i) + ", %" + itoa(i) + " }]\n" }), "type is too large"},
		"splats":            {"@g = global <4000000000 x i8> splat (i8 1)\n", "b.ll:1:31: splat constants of this module have more than 0 elements"},
		"long integer":      {"@g = global i32 " + strings.Repeat("9", 30000), "b.ll:1:17: integer has more than 20000 digits"},
		"deep structs":      {"%a = type { i32 }\n" + chain(300, func(i int) string { return "%" + itoa(i+1) + " = type { %" + itoa(i) + " }\n" }), "nests more than 256 deep"},
	} {
		_, err := Parse("b.ll", []byte(c.src))
		require.ErrorContains(t, err, c.want, name)
		require.Less(t, len(err.Error()), 1000, name)
	}
	m := parse(t, "%a0 = type { i64, i64 }\n"+chain(60, func(i int) string { return "%a" + itoa(i) + " = type opaque\n" })+
		"%b0 = type { %a0, %a0 }\n@g = external global [18446744073709551615 x %b0]\n")
	require.Equal(t, NoSize, m.Layout.Size(m.Globals[0].ValueType))
}

func TestParseFileErrors(t *testing.T) {
	_, err := ParseFile(filepath.Join(t.TempDir(), "none.ll"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := write(t, "x.ll", "target triple = 7\n")
	_, err = ParseFile(path)
	requireShown(t, err, path+":1:17: expected a string\ntarget triple = 7\n                ^")
}

func TestLongLineIsCut(t *testing.T) {
	_, err := Parse("long.ll", []byte("@g = global [3 x i8] "+strings.Repeat(" ", 1000)+"x\n"))
	var where *Error
	require.ErrorAs(t, err, &where)
	require.Equal(t, 1022, where.Col)
	line, caret, two := strings.Cut(where.Snippet(), "\n")
	require.True(t, two)
	require.Equal(t, byte('x'), line[strings.IndexByte(caret, '^')])
}

// requireShown compares an error with its message and the two lines that are printed below it.
func requireShown(t *testing.T, err error, want string) {
	t.Helper()
	var where *Error
	require.ErrorAs(t, err, &where)
	require.Equal(t, want, where.Error()+"\n"+where.Snippet())
}
