package patches_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The kinds of site of a function. A function of the last kind has no site: it calls a stub directly.
const (
	shadow     = "stackmap"
	patchpoint = "patchpoint"
	statepoint = "statepoint"
	siteless   = "none"
)

// entrySize is the size of an entry of the log, the same as in host.c.
const entrySize = 256

// A program is a random module with the stubs that its patches lead to.
type program struct {
	seed     uint64
	version  int    // release of LLVM
	machine  string // amd64, arm64
	flags    []string
	altstack bool // signals are handled on an alternate stack
	funcs    []*function
	stubs    []*stub
}

// A function has one site.
type function struct {
	number    int
	kind      string
	id        uint64
	room      int // number of bytes that may be patched; 0: LLVM wrote a call at the site
	live      []operand
	calls     bool  // the function calls event before its stackmap
	stub      *stub // the stub that a function without a site calls
	attribute string
	text      string // text of the body
}

// An operand of a site. The function logs its value.
type operand struct {
	text  string // value with its type
	bytes int
}

func (f *function) name() string { return fmt.Sprintf("f%d", f.number) }

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func pick[V any](r *rand.Rand, of ...V) V { return of[r.IntN(len(of))] }

// generate returns the program of a seed, for a release of LLVM and a machine.
func generate(seed uint64, version int, machine string) *program {
	r := rand.New(rand.NewPCG(seed, uint64(version)))
	p := &program{seed: seed, version: version, machine: machine, altstack: chance(r, 40)}
	p.flags = []string{pick(r, "-O0", "-O1", "-O2", "-O2", "-O3"), "-relocation-model=static"}
	for n := range 24 {
		p.stubs = append(p.stubs, p.randomStub(r, n))
	}
	for n := range 40 {
		p.funcs = append(p.funcs, p.randomFunction(r, n))
	}
	return p
}

func (p *program) randomFunction(r *rand.Rand, number int) *function {
	f := &function{number: number, kind: pick(r, shadow, shadow, shadow, patchpoint, patchpoint, statepoint, statepoint, siteless), id: uint64(r.Uint32())}
	f.attribute = pick(r, "", "", `"frame-pointer"="all"`, `"frame-pointer"="non-leaf"`)
	if f.kind == statepoint {
		f.attribute += ` gc "statepoint-example"`
	}
	f.room = pick(r, 16, 20, 24, 32)
	if f.kind == statepoint && chance(r, 20) || f.kind == patchpoint && p.machine == "amd64" && chance(r, 20) {
		f.room = 0 // on arm64 LLVM does not compile the call of a symbol in a patchpoint
	}
	if f.kind == siteless {
		f.room, f.stub = 0, pick(r, p.stubs...)
	}
	f.calls = f.kind == shadow && chance(r, 20)
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	to := p.pointer
	put("%%local = alloca i64")
	put("store volatile i64 %%b, %s %%local", to("i64"))
	var words []string
	for n := range 2 + r.IntN(14) {
		from := "%b"
		if len(words) > 0 {
			from = pick(r, words...)
		}
		v := fmt.Sprintf("%%v%d", n)
		put("%s = %s i64 %s, %d", v, pick(r, "add", "mul", "xor", "sub"), from, int64(r.Uint64()>>r.IntN(60))|1)
		words = append(words, v)
	}
	if chance(r, 50) {
		put("%%noise = call i64 @noise(i64 %s)", pick(r, words...))
		words = append(words, "%noise")
	}
	for range 1 + r.IntN(16) {
		w := pick(r, words...)
		switch r.IntN(10) {
		case 0:
			f.live = append(f.live, operand{to("i64") + " %local", 8})
		case 1:
			f.live = append(f.live, operand{fmt.Sprintf("i64 %d", int64(r.Uint64()>>r.IntN(64))), 8})
		case 2:
			t := fmt.Sprintf("%%t%d", len(f.live))
			put("%s = trunc i64 %s to i32", t, w)
			f.live = append(f.live, operand{"i32 " + t, 4})
		default:
			f.live = append(f.live, operand{"i64 " + w, 8})
		}
	}
	bytes := to("i8")
	put("%%top = load %s, %s @logtop", bytes, to(bytes))
	put("%%log = getelementptr i8, %s %%top, i64 %d", bytes, entrySize)
	logged := func(operand string, n int) {
		put("%%at%d = getelementptr i8, %s %%log, i64 %d", n, bytes, 8*n)
		kind, _, _ := strings.Cut(operand, " ")
		put("%%in%d = bitcast %s %%at%d to %s", n, bytes, n, to(kind))
		put("store volatile %s, %s %%in%d", operand, to(kind), n)
	}
	logged(fmt.Sprintf("i64 %d", number), 0)
	for n, o := range f.live {
		logged(o.text, 1+n)
	}
	put("store volatile %s %%log, %s @logtop", bytes, to(bytes))
	if f.calls {
		put("call void @event()")
	}
	var operands []string
	for _, o := range f.live {
		operands = append(operands, o.text)
	}
	list := strings.Join(operands, ", ")
	event := "ptr @event"
	if p.version == 14 {
		event = "i8* bitcast (void ()* @event to i8*)"
	}
	switch f.kind {
	case shadow:
		put("call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 %d, %s)", f.id, f.room, list)
	case patchpoint:
		if f.room > 0 {
			put("%%pp = call i64 (i64, i32, %s, i32, ...) @llvm.experimental.patchpoint.i64(i64 %d, i32 %d, %s null, i32 0, %s)", bytes, f.id, f.room, bytes, list)
		} else {
			put("%%pp = call i64 (i64, i32, %s, i32, ...) @llvm.experimental.patchpoint.i64(i64 %d, i32 24, %s, i32 0, %s)", bytes, f.id, event, list)
		}
	case statepoint:
		put(`%%token = call token (i64, i32, %s, i32, i32, ...) %s(i64 %d, i32 %d, %s @event, i32 0, i32 0, i32 0, i32 0) [ "deopt"(%s) ]`, to("void ()"), p.statepoint(), f.id, f.room, p.callee(), list)
	default:
		put("call void @%s()", f.stub.name())
	}
	sum := "%b"
	for n, w := range words { // values that are needed after the site, where the code is longer than a stackmap shadow
		if chance(r, 70) {
			put("%%u%d = mul i64 %s, %d", n, sum, 3+2*r.IntN(100))
			put("%%s%d = xor i64 %%u%d, %s", n, n, w)
			sum = fmt.Sprintf("%%s%d", n)
		}
	}
	put("store volatile i64 %s, %s %%local", sum, to("i64"))
	put("store volatile i64 12345, %s %%local", to("i64"))
	put("store volatile %s %%top, %s @logtop", bytes, to(bytes))
	put("store volatile i64 54321, %s %%local", to("i64"))
	put("ret i64 %s", sum)
	f.text = b.String()
	return f
}

// IR returns the text of the module.
func (p *program) IR() string {
	var b strings.Builder
	triple := map[string]string{"amd64": "x86_64-pc-linux-gnu", "arm64": "aarch64-linux-gnu"}[p.machine]
	fmt.Fprintf(&b, "target triple = %q\n@logtop = external global %s\n", triple, p.pointer("i8"))
	for _, f := range p.funcs {
		fmt.Fprintf(&b, "define i64 @%s(i64 %%b) noinline uwtable %s {\nentry:\n%s}\n", f.name(), f.attribute, f.text)
	}
	for _, s := range p.stubs {
		fmt.Fprintf(&b, "declare void @%s()\n", s.name())
	}
	bytes := p.pointer("i8")
	b.WriteString("declare void @event()\ndeclare i64 @noise(i64)\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n")
	fmt.Fprintf(&b, "declare i64 @llvm.experimental.patchpoint.i64(i64, i32, %s, i32, ...)\n", bytes)
	fmt.Fprintf(&b, "declare token %s(i64, i32, %s, i32, i32, ...)\n", p.statepoint(), p.pointer("void ()"))
	return b.String()
}

// pointer returns the type of a pointer to a type. LLVM 14 does not support statepoints with opaque pointers.
func (p *program) pointer(to string) string {
	if p.version == 14 {
		return to + "*"
	}
	return "ptr"
}

// statepoint returns the name of the intrinsic.
func (p *program) statepoint() string {
	if p.version == 14 {
		return "@llvm.experimental.gc.statepoint.p0f_isVoidf"
	}
	return "@llvm.experimental.gc.statepoint.p0"
}

// callee returns the type of the function that a statepoint calls.
func (p *program) callee() string {
	if p.version == 14 {
		return "void ()*"
	}
	return "ptr elementtype(void ())"
}
