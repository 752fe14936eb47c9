package interp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
)

// FuzzBlocksAgainstSteps runs a random function twice: by single steps, and by whole blocks with fast paths. Both runs must have the same values,
// errors, halts, step counts and memory, even where a limit or a halt ends them early.
func FuzzBlocksAgainstSteps(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, seed%7*29)
	}
	f.Fuzz(func(t *testing.T, seed, limit uint64) {
		g := newBlocks(seed)
		src := g.function()
		limit = limit%2048 + 1
		if limit%4 == 0 {
			limit = 5000
		}
		a := observed(t, src, interp.Options{MaxSteps: limit, MaxMemory: 1 << 20, Trace: func(interp.Traced) {}})
		b := observed(t, src, interp.Options{MaxSteps: limit, MaxMemory: 1 << 20})
		require.Equal(t, a, b, "limit %d of\n%s", limit, src)
	})
}

// observed lists the results of a run of @f that halts at each entry of the block "stop": at each halt the line, the steps, the error and all values,
// and at the end the memory.
func observed(t *testing.T, src string, o interp.Options) (seen []string) {
	m := parse(t, src)
	in, err := interp.New(m, o)
	require.NoError(t, err)
	f := m.Func("f")
	body, err := f.Body()
	require.NoError(t, err, src)
	x, err := in.StartCall(f, nil)
	require.NoError(t, err, src)
	require.NoError(t, x.StopAt(f.Block("stop"), true))
	for halt := 0; ; halt++ {
		res, err := x.Run(context.Background())
		line := 0
		if i := x.At(0); i != nil {
			line = i.Line
		}
		seen = append(seen, fmt.Sprint("halt ", halt, " line ", line, " steps ", x.Steps(), " error ", err))
		for frame := range x.Depth() {
			for _, b := range body {
				for _, i := range b.Instrs {
					if v, ok := x.Value(frame, i); ok && x.At(frame).Block.Func == f {
						seen = append(seen, i.Ref()+" = "+v.Format())
					}
				}
			}
		}
		if res != nil && err == nil {
			seen = append(seen, "result "+res.Value.Format())
		}
		if res != nil || err != nil || halt > 20 {
			break
		}
	}
	data, undefined := make([]byte, 64), make([]byte, 64)
	where, err := in.Call(context.Background(), m.Func("where"), nil)
	require.NoError(t, err)
	at, _ := where.Value.Uint()
	require.NoError(t, in.Peek(data, undefined, machine.Addr(at)))
	return append(seen, fmt.Sprint(data, undefined))
}

// blocks generates random functions with few values and all flags. Their integers have widths between those of registers, and their constants include
// limits of a type, undef and poison.
type blocks struct {
	*rand.Rand
	text strings.Builder
	n    int                 // number of values so far
	have map[string][]string // usable values, by type
}

func newBlocks(seed uint64) *blocks { return &blocks{Rand: rand.New(rand.NewPCG(seed, 5))} }

func oneOf[T any](g *blocks, list ...T) T { return list[g.IntN(len(list))] }

func (g *blocks) width() int {
	return oneOf(g, 1, 2, 7, 8, 13, 16, 17, 31, 32, 32, 33, 48, 63, 64, 64, 64)
}

func (g *blocks) integer() string { return fmt.Sprintf("i%d", g.width()) }

// flags returns a random selection of the flags in list.
func (g *blocks) flags(list ...string) string {
	s := ""
	for _, f := range list {
		if g.IntN(3) == 0 {
			s += " " + f
		}
	}
	return s
}

// value returns an earlier value of that type, or a constant.
func (g *blocks) value(typ string) string {
	if list := g.have[typ]; len(list) > 0 && g.IntN(4) != 0 {
		return list[max(g.IntN(len(list)), g.IntN(len(list)))]
	}
	if g.IntN(25) == 0 {
		return oneOf(g, "undef", "poison")
	}
	switch typ {
	case "ptr":
		return oneOf(g, "@m", "@m", "null", "getelementptr (i8, ptr @m, i64 8)", "inttoptr (i64 -16 to ptr)", "inttoptr (i64 9223372036854775800 to ptr)")
	case "float":
		return oneOf(g, "0.0", "-0.0", "1.0", "-2.5", "0x7FF0000000000000", "0x7FF8000000000000", "0x36A0000000000000", "0x47EFFFFFE0000000")
	case "double":
		return oneOf(g, "0.0", "-0.0", "1.0", "-2.5", "0xFFF0000000000000", "0x7FF8000000000000", "0x0000000000000001", "0x7FEFFFFFFFFFFFFF", "0x3CA0000000000000")
	case "i1":
		return oneOf(g, "true", "false")
	}
	var bits int
	fmt.Sscanf(typ, "i%d", &bits)
	top := uint64(1) << (bits - 1)
	v := oneOf(g, 0, 1, 2, 3, uint64(bits-1), uint64(bits), top, top-1, top+1, top<<1-1, g.Uint64(), g.Uint64()>>32, uint64(g.IntN(100)))
	return fmt.Sprint(v & (top<<1 - 1))
}

// def adds an instruction with a result of that type.
func (g *blocks) def(typ, format string, args ...any) string {
	g.n++
	name := fmt.Sprintf("%%v%d", g.n)
	fmt.Fprintf(&g.text, "  %s = %s\n", name, fmt.Sprintf(format, args...))
	g.have[typ] = append(g.have[typ], name)
	return name
}

func (g *blocks) compare() string {
	if t := oneOf(g, "int", "int", "int", "ptr", "float", "double"); t == "float" || t == "double" {
		return g.def("i1", "fcmp%s %s %s %s, %s", g.flags("nnan", "ninf", "nsz"), oneOf(g, "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
			"ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true", "false"), t, g.value(t), g.value(t))
	} else if t == "int" {
		t = g.integer()
		return g.icmp(t, g.flags("samesign"))
	} else {
		return g.icmp(t, "")
	}
}

func (g *blocks) icmp(t, flags string) string {
	return g.def("i1", "icmp%s %s %s %s, %s", flags, oneOf(g, "eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"), t, g.value(t), g.value(t))
}

func (g *blocks) instruction() {
	switch t := g.integer(); g.IntN(16) {
	case 0, 1:
		g.def(t, "%s%s %s %s, %s", oneOf(g, "add", "sub", "mul", "shl"), g.flags("nuw", "nsw"), t, g.value(t), g.value(t))
	case 2:
		op := oneOf(g, "and", "or", "or disjoint", "xor", "lshr", "lshr exact", "ashr", "ashr exact")
		g.def(t, "%s %s %s, %s", op, t, g.value(t), g.value(t))
	case 3:
		g.def(t, "%s %s %s, %s", oneOf(g, "udiv", "sdiv", "urem", "srem", "udiv exact", "sdiv exact"), t, g.value(t), oneOf(g, "1", "-1", g.value(t)))
	case 4:
		g.compare()
	case 5:
		t = oneOf(g, t, "ptr", "float", "double")
		fast := ""
		if t == "float" || t == "double" {
			fast = g.flags("nnan", "ninf", "nsz")
		}
		g.def(t, "select%s i1 %s, %s %s, %s %s", fast, g.value("i1"), t, g.value(t), t, g.value(t))
	case 6:
		g.cast()
	case 7, 8:
		g.address()
	case 9, 10:
		g.access()
	case 11:
		f := oneOf(g, "float", "double")
		g.def(f, "%s%s %s %s, %s", oneOf(g, "fadd", "fsub", "fmul", "fdiv", "frem"), g.flags("nnan", "ninf", "nsz"), f, g.value(f), g.value(f))
	case 12:
		f := oneOf(g, t, "ptr", "float", "double")
		g.def(f, "freeze %s %s", f, g.value(f))
	case 14:
		g.integerIntrinsic()
	case 15:
		g.floatIntrinsic()
	case 13:
		switch g.IntN(8) {
		case 0:
			g.def("i32", "call i32 @half(i32 %s)", g.value("i32"))
		case 3:
			fmt.Fprintf(&g.text, "  call void @llvm.memset.p0.i64(ptr @b, i8 0, i64 %d, i1 false)\n", g.IntN(3000))
		case 4: // clocks advance by a nanosecond a step
			fmt.Fprintf(&g.text, "  %%t%d = call i32 @clock_gettime(i32 1, ptr @b)\n", g.n)
			g.def("i64", "load i64, ptr getelementptr (i8, ptr @b, i64 8)")
		case 6:
			g.def("i64", "call i64 @last(i64 %s)", g.value("i64"))
		case 7:
			g.def("ptr", "alloca [%d x i32]", g.IntN(500))
		case 5:
			fmt.Fprintf(&g.text, "  call void @qsort(ptr @m, i64 3, i64 8, ptr @order)\n")
		case 1:
			fmt.Fprintf(&g.text, "  call void @keep(i64 %s)\n", g.value("i64"))
		default:
			fmt.Fprintf(&g.text, "  %%p%d = call { i64, i8 } @pair(i64 %s)\n", g.n, g.value("i64"))
			g.def("i8", "extractvalue { i64, i8 } %%p%d, 1", g.n)
		}
	}
}

func (g *blocks) integerIntrinsic() {
	w := g.width()
	t := fmt.Sprintf("i%d", w)
	switch a := g.value(t); g.IntN(5) {
	case 0:
		name := oneOf(g, "ctpop", "bitreverse", "bswap")
		if name == "bswap" && w%16 != 0 {
			name = "ctpop"
		}
		g.def(t, "call %s @llvm.%s.%s(%s %s)", t, name, t, t, a)
	case 1:
		g.def(t, "call %s @llvm.%s.%s(%s %s, i1 %s)", t, oneOf(g, "ctlz", "cttz", "abs"), t, t, a, oneOf(g, "true", "false"))
	case 2:
		name := oneOf(g, "umin", "umax", "smin", "smax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat", "ushl.sat", "sshl.sat")
		g.def(t, "call %s @llvm.%s.%s(%s %s, %s %s)", t, name, t, t, a, t, g.value(t))
	case 3:
		g.def(t, "call %s @llvm.%s.%s(%s %s, %s %s, %s %s)", t, oneOf(g, "fshl", "fshr"), t, t, a, t, g.value(t), t, g.value(t))
	case 4:
		name := oneOf(g, "uadd", "sadd", "usub", "ssub", "umul", "smul")
		fmt.Fprintf(&g.text, "  %%o%d = call { %s, i1 } @llvm.%s.with.overflow.%s(%s %s, %s %s)\n", g.n, t, name, t, t, a, t, g.value(t))
		o := g.n
		g.def(t, "extractvalue { %s, i1 } %%o%d, 0", t, o)
		g.def("i1", "extractvalue { %s, i1 } %%o%d, 1", t, o)
	}
}

func (g *blocks) floatIntrinsic() {
	t, suffix := "double", "f64"
	if g.IntN(2) == 0 {
		t, suffix = "float", "f32"
	}
	a, flags := g.value(t), g.flags("nnan", "nsz")
	switch g.IntN(5) {
	case 0:
		g.def(t, "fneg%s %s %s", flags, t, a)
	case 1:
		name := oneOf(g, "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round", "fabs")
		g.def(t, "call%s %s @llvm.%s.%s(%s %s)", flags, t, name, suffix, t, a)
	case 2, 3:
		name := oneOf(g, "minnum", "maxnum", "minimum", "maximum", "copysign")
		g.def(t, "call%s %s @llvm.%s.%s(%s %s, %s %s)", flags, t, name, suffix, t, a, t, g.value(t))
	case 4:
		g.def(t, "call%s %s @llvm.%s.%s(%s %s, %s %s, %s %s)", flags, t, oneOf(g, "fma", "fmuladd"), suffix, t, a, t, g.value(t), t, g.value(t))
	}
}

func (g *blocks) cast() {
	a, b := g.width(), g.width()
	if a == b {
		b = a%64 + 1
	}
	from, to := fmt.Sprintf("i%d", min(a, b)), fmt.Sprintf("i%d", max(a, b))
	f := oneOf(g, "float", "double")
	switch g.IntN(11) {
	case 0:
		g.def(from, "trunc%s %s %s to %s", g.flags("nuw", "nsw"), to, g.value(to), from)
	case 1:
		g.def(to, "zext%s %s %s to %s", g.flags("nneg"), from, g.value(from), to)
	case 2:
		g.def(to, "sext %s %s to %s", from, g.value(from), to)
	case 3:
		g.def(to, "ptrtoint ptr %s to %s", g.value("ptr"), to)
	case 4:
		g.def("ptr", "inttoptr %s %s to ptr", to, g.value(to))
	case 5:
		g.def("double", "bitcast i64 %s to double", g.value("i64"))
	case 6:
		g.def("i32", "bitcast float %s to i32", g.value("float"))
	case 7:
		g.def(f, "%s %s %s to %s", oneOf(g, "sitofp", "uitofp", "uitofp nneg"), to, g.value(to), f)
	case 8:
		g.def(to, "%s %s %s to %s", oneOf(g, "fptosi", "fptoui"), f, g.value(f), to)
	case 9:
		g.def("double", "fpext%s float %s to double", g.flags("nnan", "ninf"), g.value("float"))
	case 10:
		g.def("float", "fptrunc double %s to float", g.value("double"))
	}
}

func (g *blocks) address() {
	flags := g.flags(oneOf(g, "inbounds", "nusw"), "nuw")
	base, x, y := g.value("ptr"), g.integer(), g.integer()
	if g.IntN(2) == 0 {
		x = "i64"
	}
	typ := oneOf(g, "i8", "i32", "i64", "i128", "{ i8, i64 }", "[3 x i16]", "[1073741824 x i64]")
	switch {
	case typ == "{ i8, i64 }" && g.IntN(2) == 0:
		g.def("ptr", "getelementptr%s %s, ptr %s, %s %s, i32 1", flags, typ, base, x, g.value(x))
	case strings.HasPrefix(typ, "[") && g.IntN(2) == 0:
		g.def("ptr", "getelementptr%s %s, ptr %s, %s %s, %s %s", flags, typ, base, x, g.value(x), y, g.value(y))
	default:
		g.def("ptr", "getelementptr%s %s, ptr %s, %s %s", flags, typ, base, x, g.value(x))
	}
}

// access adds a load or store of the available memory, or slightly past its end.
func (g *blocks) access() {
	p := "@m"
	if g.IntN(5) > 0 {
		x := g.def("i64", "and i64 %s, %d", g.value("i64"), oneOf(g, 7, 56, 60, 63))
		p = g.def("ptr", "getelementptr i8, ptr @m, i64 %s", x)
	} else if g.IntN(3) == 0 {
		p = g.value("ptr")
	}
	t := oneOf(g, g.integer(), "i8", "i16", "i32", "i64", "float", "double", "ptr")
	if g.IntN(2) == 0 {
		g.def(t, "load %s, ptr %s", t, p)
	} else {
		fmt.Fprintf(&g.text, "  store %s %s, ptr %s\n", t, g.value(t), p)
	}
}

// function generates @f and its callees. A block uses its own values and those of the first block; its phis take values of each predecessor.
func (g *blocks) function() string {
	n := 2 + g.IntN(4)
	label := func(k int) string {
		if k == n-1 {
			return "stop"
		}
		return fmt.Sprint("b", k)
	}
	types := []string{g.integer(), "i64", oneOf(g, "ptr", "double", "float", "i1")}
	bodies, ends, before := make([]string, n), make([]string, n), make([][]string, n)
	var first map[string][]string
	for k := range n {
		g.have = map[string][]string{}
		for t, list := range first {
			g.have[t] = append([]string{}, list...)
		}
		if k > 0 {
			for j, t := range types {
				g.have[t] = append(g.have[t], fmt.Sprintf("%%phi%d.%d", k, j))
			}
		}
		g.text.Reset()
		for range g.IntN(8) {
			g.instruction()
		}
		to := func() string { return "%" + label(1+g.IntN(n-1)) }
		next := []string{to()}
		switch g.IntN(7) {
		case 0:
			ends[k] = "br label " + next[0]
		case 6:
			ends[k] = fmt.Sprintf("invoke void @keep(i64 %s) to label %s unwind label %%pad", g.value("i64"), next[0])
		case 1:
			next = append(next, to(), to())
			t := g.integer()
			if t == "i1" {
				t = "i7"
			}
			ends[k] = fmt.Sprintf("switch %s %s, label %s [ %s 0, label %s %s 3, label %s ]", t, g.value(t), next[0], t, next[1], t, next[2])
		case 2:
			if k == n-1 {
				ends[k], next = "ret i64 "+g.value("i64"), nil
				break
			}
			fallthrough
		default:
			next = append(next, to())
			c := g.value("i1")
			if g.IntN(3) > 0 {
				c = g.compare()
			}
			ends[k] = fmt.Sprintf("br i1 %s, label %s, label %s", c, next[0], next[1])
		}
		for j := range n {
			var in []string // the same for each edge from one block
			for _, t := range types {
				in = append(in, fmt.Sprintf("[ %s, %%%s ]", g.value(t), label(k)))
			}
			for _, b := range next {
				if b == "%"+label(j) {
					before[j] = append(before[j], in...)
				}
			}
		}
		bodies[k] = g.text.String()
		if k == 0 {
			first = g.have
		}
	}
	s := blocksCallees + declared(bodies) + "define i64 @f() personality ptr @keep {\n"
	for k := range n {
		s += label(k) + ":\n"
		for j, t := range types {
			if k == 0 {
				break
			}
			if len(before[k]) == 0 { // the block has no predecessor
				s += fmt.Sprintf("  %%phi%d.%d = freeze %s poison\n", k, j, t)
			}
			var in []string
			for e := j; e < len(before[k]); e += len(types) {
				in = append(in, before[k][e])
			}
			if in != nil {
				s += fmt.Sprintf("  %%phi%d.%d = phi %s %s\n", k, j, t, strings.Join(in, ", "))
			}
		}
		s += bodies[k] + "  " + ends[k] + "\n"
	}
	return s + "pad:\n  %pad.v = landingpad { ptr, i32 } cleanup\n  unreachable\n}\n"
}

// declared returns the declarations of the intrinsics that the bodies call.
func declared(bodies []string) string {
	var list []string
	call := regexp.MustCompile(`call(?: nnan| nsz)* (\S+|{ \S+, i1 }) (@llvm\.\S+?)\((.*)\)`)
	for _, m := range call.FindAllStringSubmatch(strings.Join(bodies, ""), -1) {
		var types []string
		for _, arg := range strings.Split(m[3], ", ") {
			typ, _, _ := strings.Cut(arg, " ")
			types = append(types, typ)
		}
		if !strings.Contains(m[2], "memset") {
			list = append(list, fmt.Sprintf("declare %s %s(%s)\n", m[1], m[2], strings.Join(types, ", ")))
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "")
}

const blocksCallees = `@m = global [9 x i64] [i64 -1, i64 1, i64 undef, i64 4294967295, i64 0, i64 81985529216486895, i64 2, i64 3, i64 4]
@b = global [3000 x i8] zeroinitializer
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @clock_gettime(i32, ptr)
declare void @qsort(ptr, i64, i64, ptr)
define i32 @order(ptr %p, ptr %q) {
  %a = load i64, ptr %p
  %b = load i64, ptr %q
  %d = sub i64 %a, %b
  %o = trunc i64 %d to i32
  ret i32 %o
}
define i64 @last(i64 %x) {
  %c = icmp ult i64 %x, 1000
  %d = ashr i64 %x, 3
  br i1 %c, label %a, label %b
a:
  ret i64 %d
b:
  %p = alloca [100 x i8]
  %r = musttail call i64 @last(i64 %d)
  ret i64 %r
}
define ptr @where() {
  ret ptr @m
}
define i32 @half(i32 %x) {
  %h = ashr i32 %x, 1
  %c = icmp slt i32 %h, 100
  br i1 %c, label %a, label %b
a:
  ret i32 %h
b:
  ret i32 %x
}
define void @keep(i64 %x) {
  store i64 %x, ptr @m
  ret void
}
define { i64, i8 } @pair(i64 %x) {
  %t = trunc i64 %x to i8
  %p = insertvalue { i64, i8 } { i64 7, i8 undef }, i8 %t, 1
  ret { i64, i8 } %p
}
`
