package truth_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// The kinds of sites. anyReg is a patchpoint with the anyregcc convention, invoke is a statepoint that is invoked, and bundle is a call with a deopt
// bundle.
const (
	stackMap   = "stackmap"
	patchPoint = "patchpoint"
	anyReg     = "anyregcc"
	statepoint = "statepoint"
	invoke     = "invoke"
	bundle     = "bundle"
	deoptimize = "deoptimize"
)

// A program is a random module with its flags and the way to run it. It is stored as data, so that the shrinker can remove parts.
type program struct {
	Seed    int64
	Version int    // release of LLVM
	Machine string // Go's name of the architecture
	How     string // aot, or one of lli's ways: mcjit, orc
	Flags   []string
	Links   []string // flags of the linker, for aot
	Threads int
	Steps   int // number of steps of each thread
	Depth   int
	Dies    bool // it calls abort at its deepest stack
	Tame    bool // it uses only types and flags that every release compiles
	Funcs   []*function
}

type function struct {
	Number     int
	CC         string // calling convention and a space, or ""
	Returns    *typ
	Attributes []string
	GC, Pers   bool
	Width      int // bits of the widest vector register
	Params     []*value
	Steps      []*step
	Result     *value
	root       bool // the runtime calls it
}

// A value is computed by a function, or is a constant.
type value struct {
	Name  string // with its sigil, or the constant's text
	Type  *typ
	Undef bool // it is undef or poison
	Const bool
	step  *step
}

func (v *value) ref(version int) string { return v.Type.in(version) + " " + v.Name }

// A step is a sequence of instructions in a function's body.
type step struct {
	Lines []string // @FROM@ stands for the block that the last jump left
	Gives []*value
	Uses  []*value
	Site  *site
	Calls int    // the number of the called function plus one; 0: none
	Loop  int    // 1 at the beginning of a loop, -1 at its end
	Late  *value // a value that is used only here, which keeps it alive
}

// A site is a site with its operands.
type site struct {
	Kind   string
	Number int64 // its number in the log
	ID     uint64
	Known  bool // the record has the id
	Live   []*value
	GC     []*value // operands of the gc-live bundle
	Early  []bool   // for each of Live: the value is logged where it is computed
	Before []string // text between the log and the site
	Line   string   // text of the site, in which LIVE and GC stand for the operands
	After  []string
	Relocs []*value // values that follow the site as relocations of GC
	Leaves string   // the form of a deoptimize exit
	Tagged bool     // the deoptimize call has an attribute with the id
	Level  []int    // for each of Live: its frame in the record; nil if the record has one frame
	Inner  []*inlined
	Bits   *value // the random value that decides whether a deoptimize exit is taken
	Exit   *exit  // nil if no layout describes the site
	at     []int  // offset of each operand in the function's log frame
	gcAt   []int
}

// Offsets in a thread's block, as in testdata/runtime.c.
const (
	blocks    = 0x1000000000
	blockSize = 1 << 22
	poolAt    = 1024
	poolSize  = 6144
	logAt     = 8192
)

// sites iterates over the sites of all functions.
func (p *program) sites() iter.Seq[*site] {
	return func(yield func(*site) bool) {
		for _, f := range p.Funcs {
			for _, s := range f.Steps {
				if s.Site != nil && !yield(s.Site) {
					return
				}
			}
		}
	}
}

// frameHead is the size of the head of a log frame, which holds the number of the site and the address of the caller's frame.
const frameHead = 16

// layOut assigns a place in the log frame to each operand of each site, and returns the size of the log frame.
func (f *function) layOut() int {
	at := frameHead
	place := func(v *value) int {
		here := at
		at += (v.Type.size() + 15) &^ 15
		return here
	}
	for _, s := range f.Steps {
		if s.Site == nil {
			continue
		}
		s.Site.at, s.Site.gcAt = nil, nil
		for _, v := range s.Site.Live {
			s.Site.at = append(s.Site.at, place(v))
		}
		for _, v := range s.Site.GC {
			s.Site.gcAt = append(s.Site.gcAt, place(v))
		}
	}
	return at
}

// A writer writes the IR of a function.
type writer struct {
	*program
	text  strings.Builder
	temps int
	block string // the current block
	from  string // the block that the last jump left
}

func (w *writer) put(format string, args ...any) { fmt.Fprintf(&w.text, "  "+format+"\n", args...) }

func (w *writer) temp() string { w.temps++; return fmt.Sprintf("%%t%d", w.temps) }

// at returns the address at an offset from a pointer to bytes.
func (w *writer) at(base string, offset int) string {
	t, p := w.temp(), ptr.in(w.Version)
	w.put("%s = getelementptr i8, %s %s, i64 %d", t, p, base, offset)
	return t
}

// store writes the store of a value of any type to an address.
func (w *writer) store(t *typ, v, to string) {
	if t == half || t == bfloat { // some machines convert these types
		bits := w.temp()
		w.put("%s = bitcast %s %s to i16", bits, t.in(w.Version), v)
		t, v = intType(16), bits
	}
	text := t.in(w.Version)
	if w.Version == 14 {
		cast := w.temp()
		w.put("%s = bitcast i8* %s to %s*", cast, to, text)
		w.put("store volatile %s %s, %s* %s, align 1", text, v, text, cast)
		return
	}
	w.put("store volatile %s %s, ptr %s, align 1", text, v, to)
}

// log writes the store of a value to its place in the log frame.
func (w *writer) log(v *value, at int) {
	if !v.Undef {
		w.store(v.Type, v.Name, w.at("%base", at))
	}
}

// IR returns the text of the program.
func (p *program) IR() string {
	var out strings.Builder
	out.WriteString(p.heading())
	seen := map[string]bool{}
	for _, f := range p.Funcs {
		for _, d := range p.declarations(f) {
			if !seen[d] {
				seen[d] = true
				out.WriteString(d + "\n")
			}
		}
	}
	var roots []string
	rootType := "i64 (ptr)*"
	if p.Version > 14 {
		rootType = "ptr"
	}
	for _, f := range p.Funcs {
		out.WriteString(p.body(f))
		for _, s := range f.Steps {
			if s.Site != nil {
				out.WriteString(p.inner(f, s.Site))
			}
			if s.Site != nil && s.Site.Exit != nil {
				out.WriteString(p.resumes(f, s.Site))
			}
		}
		if f.root {
			roots = append(roots, fmt.Sprintf("%s @f%d", rootType, f.Number))
		}
	}
	text := fmt.Sprintf(`@roots = constant [%d x %s] [%s]
define i64 @__llvm_deoptimize(ptr %%t) uwtable noinline {
  %%r = call i64 @truth_step(ptr %%t)
  call void @truth_return(ptr %%t)
  unreachable
}
define i32 @main() uwtable {
  %%r = call i32 @truth_run(ptr ROOTS, i64 %d, i64 %d, i64 %d, i64 %d, i64 %d, i64 %d)
  ret i32 %%r
}
declare i32 @truth_run(ptr, i64, i64, i64, i64, i64, i64)
declare i64 @truth_step(ptr)
declare i64 @truth_leaf(ptr)
declare void @truth_return(ptr)
declare i32 @truth_personality(...)
`, len(roots), rootType, strings.Join(roots, ", "), len(roots), p.Threads, p.Seed&0xffffff, p.Steps, p.Depth, map[bool]int{true: 1}[p.Dies])
	at := "@roots"
	if p.Version == 14 {
		at = fmt.Sprintf("bitcast ([%d x %s]* @roots to ptr)", len(roots), rootType)
	}
	text = strings.ReplaceAll(text, "ptr ROOTS", "ptr "+at)
	if p.Version == 14 {
		text = typed(text)
	}
	out.WriteString(text)
	return out.String()
}

// machines holds the triples of the machines, and the data layouts of clang 19.
var machines = map[string]struct{ triple, layout string }{
	"amd64":   {"x86_64-pc-linux-gnu", "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"},
	"arm64":   {"aarch64-linux-gnu", "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128"},
	"ppc64le": {"powerpc64le-linux-gnu", "e-m:e-i64:64-n32:64-S128-v256:256:256-v512:512:512"},
	"riscv64": {"riscv64-linux-gnu", "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128"},
	"s390x":   {"s390x-linux-gnu", "E-m:e-i1:8:16-i8:8:16-i64:64-f128:64-v128:64-a:8:16-n32:64"},
}

// layout returns the data layout of the program's machine, as llc of its release requires it.
func (p *program) layout() string {
	l := machines[p.Machine].layout
	switch {
	case p.Machine == "amd64" && p.Version < 18:
		l = strings.Replace(l, "-i128:128", "", 1)
	case p.Machine == "arm64" && p.Version > 16:
		l += "-Fn32"
	case p.Machine == "ppc64le" && p.Version > 14:
		l = strings.Replace(l, "e-m:e", "e-m:e-Fn32", 1)
	case p.Machine == "riscv64" && p.Version < 16:
		l = strings.Replace(l, "-n32:64", "-n64", 1)
	case p.Machine == "s390x" && p.Version < 18:
		l = strings.Replace(l, "-i8:8:16", "-i8:8:16", 1)
	}
	return l
}

func (p *program) heading() string {
	text := fmt.Sprintf("target datalayout = %q\ntarget triple = %q\n", p.layout(), machines[p.Machine].triple) +
		"declare void @llvm.experimental.stackmap(i64, i32, ...)\n" +
		"declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)\n" +
		"declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)\n" +
		"declare i64 @llvm.experimental.deoptimize.i64(...)\n" +
		"declare i32 @llvm.experimental.deoptimize.i32(...)\n" +
		"declare double @llvm.experimental.deoptimize.f64(...)\n" +
		"declare void @llvm.experimental.guard(i1, ...)\n" +
		"declare i1 @llvm.experimental.widenable.condition()\n"
	if p.Version == 14 {
		return typed(text)
	}
	return text
}

// signature returns the text of a function's type.
func (p *program) signature(f *function) string {
	list := []string{ptr.in(p.Version)}
	for _, v := range f.Params {
		list = append(list, v.Type.in(p.Version))
	}
	return fmt.Sprintf("%s (%s)", f.Returns.in(p.Version), strings.Join(list, ", "))
}

// declarations returns the declarations of intrinsics whose names contain types, for calls of a function.
func (p *program) declarations(f *function) []string {
	list := []string{
		fmt.Sprintf("declare %s @llvm.experimental.gc.relocate.%s(token, i32, i32)", gcptr.in(p.Version), p.suffix(gcptr)),
	}
	for _, c := range []*function{f, {Returns: i64}} { // the second is the runtime's function
		target := "ptr"
		if p.Version == 14 {
			target = p.signature(c) + "*"
		}
		list = append(list,
			fmt.Sprintf("declare token @llvm.experimental.gc.statepoint.%s(i64, i32, %s, i32, i32, ...)", p.statepointSuffix(c), target),
			fmt.Sprintf("declare %s @llvm.experimental.gc.result.%s(token)", c.Returns.in(p.Version), p.suffix(c.Returns)))
	}
	return list
}

// statepointSuffix returns the suffix of the name of a statepoint of a function.
func (p *program) statepointSuffix(f *function) string {
	if p.Version > 14 {
		return "p0"
	}
	name := "p0f_" + p.suffix(f.Returns) + p.suffix(ptr)
	for _, v := range f.Params {
		name += p.suffix(v.Type)
	}
	return name + "f"
}

// suffix returns the spelling of a type in names of intrinsics.
func (p *program) suffix(t *typ) string {
	switch {
	case t.kind == floating:
		return map[*typ]string{float: "f32", double: "f64"}[t]
	case t.kind == vector:
		return fmt.Sprintf("v%d%s", t.n, p.suffix(t.elem))
	case t.kind == pointer:
		name := "p0"
		if t == gcptr {
			name = "p1"
		}
		if p.Version == 14 {
			name += "i8"
		}
		return name
	}
	return t.text
}

// body returns the text of one function.
func (p *program) body(f *function) string {
	w := &writer{program: p}
	size := f.layOut()
	var params strings.Builder
	for _, v := range f.Params {
		params.WriteString(", " + v.ref(p.Version))
	}
	attributes := strings.Join(f.Attributes, " ")
	if f.GC {
		attributes += ` gc "statepoint-example"`
	}
	if f.Pers {
		if p.Version == 14 {
			attributes += " personality i32 (...)* @truth_personality"
		} else {
			attributes += " personality ptr @truth_personality"
		}
	}
	pt := ptr.in(p.Version)
	fmt.Fprintf(&w.text, "define %s%s @f%d(%s %%t%s) %s {\nentry:\n", f.CC, f.Returns.in(p.Version), f.Number, pt, params.String(), attributes)
	w.block = "entry"
	// The log frame of this function starts after the caller's.
	if p.Version == 14 {
		w.put("%%tp = bitcast i8* %%t to i8**")
		w.put("%%prev = load volatile i8*, i8** %%tp")
		w.put("%%fp = getelementptr i8*, i8** %%tp, i64 1")
		w.put("%%base = load volatile i8*, i8** %%fp")
	} else {
		w.put("%%prev = load volatile ptr, ptr %%t")
		w.put("%%fp = getelementptr ptr, ptr %%t, i64 1")
		w.put("%%base = load volatile ptr, ptr %%fp")
	}
	w.store(i64, "0", "%base")
	w.store(ptr, "%prev", w.at("%base", 8))
	w.own(size)
	early := map[*value][]int{}
	for _, s := range f.Steps {
		if s.Site != nil {
			for k, v := range s.Site.Live {
				if s.Site.Early[k] && !v.Const {
					early[v] = append(early[v], s.Site.at[k])
				}
			}
		}
	}
	logEarly := func(list []*value) {
		for _, v := range list {
			for _, at := range early[v] {
				w.log(v, at)
			}
		}
	}
	logEarly(f.Params)
	for _, s := range f.Steps {
		w.step(s, size)
		logEarly(s.Gives)
	}
	w.store(ptr, "%prev", "%t")
	w.store(ptr, "%base", w.at("%t", 8))
	w.put("ret %s", f.Result.ref(p.Version))
	w.text.WriteString("}\n")
	return w.text.String()
}

// own makes the function's log frame the current one of its thread.
func (w *writer) own(size int) {
	w.store(ptr, "%base", "%t")
	w.store(ptr, w.at("%base", size), w.at("%t", 8))
}

// load64 writes the load of eight bytes from the thread's block.
func (w *writer) load64(name string, from int) {
	at := w.at("%t", from)
	if w.Version == 14 {
		cast := w.temp()
		w.put("%s = bitcast i8* %s to i64*", cast, at)
		w.put("%s = load volatile i64, i64* %s, align 1", name, cast)
		return
	}
	w.put("%s = load volatile i64, ptr %s, align 1", name, at)
}

// line writes a line of a step.
func (w *writer) line(l string) {
	if strings.HasPrefix(l, "br ") {
		w.from = w.block
	}
	l = strings.ReplaceAll(l, "@FROM@", w.from)
	if before, label, ok := strings.Cut(l, "@LATCH:"); ok { // this block is the latch of the loop that begins at the label
		name, _, _ := strings.Cut(label, "@")
		text := strings.ReplaceAll(w.text.String(), "@LATCH-"+name+"@", w.block)
		w.text.Reset()
		w.text.WriteString(text)
		l = before
	}
	if strings.HasSuffix(l, ":") {
		w.text.WriteString(l + "\n")
		w.block = strings.TrimSuffix(l, ":")
	} else if l != "" {
		w.put("%s", l)
	}
}

// step writes one step.
func (w *writer) step(s *step, size int) {
	line := w.line
	for _, l := range s.Lines {
		line(l)
	}
	if s.Late != nil {
		w.store(s.Late.Type, s.Late.Name, w.at("%t", 64))
	}
	x := s.Site
	if x == nil {
		return
	}
	for k, v := range x.Live {
		if x.levelOf(k) == 0 && (!x.Early[k] || v.Const) {
			w.log(v, x.at[k])
		}
	}
	for k, v := range x.GC {
		w.log(v, x.gcAt[k])
	}
	w.store(i64, fmt.Sprint(x.Number), "%base")
	if len(x.Inner) > 0 {
		line(x.callInner(w.program, 0, fmt.Sprintf("%%in%d", x.Number&0xffff)))
		return
	}
	if x.Kind == deoptimize {
		before, l, after := x.leaving(w.program, i64, x.Bits.Name, fmt.Sprintf(".%d", x.Number&0xffff), refs(x.Live, w.Version))
		for _, l := range slices.Concat(before, []string{l}, after) {
			line(l)
		}
		return
	}
	for _, l := range x.Before {
		line(l)
	}
	l := strings.Replace(x.Line, "LIVE", refs(x.Live, w.Version), 1)
	l = strings.Replace(l, ", LIVE", "", 1)
	if len(x.Live) == 0 && (x.Kind == stackMap || x.Kind == patchPoint || x.Kind == anyReg) {
		l = strings.Replace(l, ", )", ")", 1)
	}
	line(strings.Replace(l, "GC", refs(x.GC, w.Version), 1))
	for _, l := range x.After {
		line(l)
	}
	if x.Kind != stackMap && x.Kind != anyReg {
		w.own(size)
	}
}
