package interp

import (
	"fmt"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// This file holds the part of libstdc++ that the interpreter provides as IR, in a module of its own. The part consists of the exceptions of
// <exception>, <new>, <typeinfo>, <functional>, <memory> and <stdexcept>, with their type_infos, vtables and throwing functions, and of the
// type_infos of fundamental types. A name resolves to this module if no module of the program defines it.

// stdException describes one exception class of the standard library.
type stdException struct {
	name string
	base string // name of the base class, "" for std::exception
	what string // the text that what() returns; "" if the class inherits what()
}

var stdExceptions = []stdException{
	{"exception", "", "std::exception"},
	{"bad_exception", "exception", "std::bad_exception"},
	{"bad_alloc", "exception", "std::bad_alloc"},
	{"bad_array_new_length", "bad_alloc", "std::bad_array_new_length"},
	{"bad_cast", "exception", "std::bad_cast"},
	{"bad_typeid", "exception", "std::bad_typeid"},
	{"bad_function_call", "exception", "bad_function_call"},
	{"bad_weak_ptr", "exception", "bad_weak_ptr"},
	// Objects of these two classes hold a text.
	{"logic_error", "exception", ""},
	{"runtime_error", "exception", ""},
	{"domain_error", "logic_error", ""},
	{"invalid_argument", "logic_error", ""},
	{"length_error", "logic_error", ""},
	{"out_of_range", "logic_error", ""},
	{"range_error", "runtime_error", ""},
	{"overflow_error", "runtime_error", ""},
	{"underflow_error", "runtime_error", ""},
}

// stdThrows are the functions that throw a standard exception, with or without a text.
var stdThrows = map[string]string{
	"_ZSt17__throw_bad_allocv": "bad_alloc", "_ZSt28__throw_bad_array_new_lengthv": "bad_array_new_length", "_ZSt16__throw_bad_castv": "bad_cast",
	"_ZSt18__throw_bad_typeidv": "bad_typeid", "_ZSt21__throw_bad_exceptionv": "bad_exception", "_ZSt25__throw_bad_function_callv": "bad_function_call",
	"__cxa_bad_cast": "bad_cast", "__cxa_bad_typeid": "bad_typeid", "__cxa_throw_bad_array_new_length": "bad_array_new_length", "__cxa_throw_bad_array_length": "bad_array_new_length",
	"_ZSt19__throw_logic_errorPKc": "logic_error", "_ZSt20__throw_domain_errorPKc": "domain_error", "_ZSt24__throw_invalid_argumentPKc": "invalid_argument",
	"_ZSt20__throw_length_errorPKc": "length_error", "_ZSt20__throw_out_of_rangePKc": "out_of_range", "_ZSt21__throw_runtime_errorPKc": "runtime_error",
	"_ZSt19__throw_range_errorPKc": "range_error", "_ZSt22__throw_overflow_errorPKc": "overflow_error", "_ZSt23__throw_underflow_errorPKc": "underflow_error",
}

// fundamentals lists the fundamental types, by their mangled names. For each type, libstdc++ has the type_infos of T, of T* and of const T* (Itanium
// C++ ABI 2.9.2).
const fundamentals = "v b w c h a s t i j l m x y f d e n o g Dn Ds Di Du"

const runtimeHead = `
declare ptr @malloc(iW)
declare void @free(ptr)
declare iW @strlen(ptr)
declare ptr @memcpy(ptr, ptr, iW)
declare i32 @vsnprintf(ptr, iW, ptr, ptr)
declare ptr @__cxa_allocate_exception(iW)
declare void @__cxa_throw(ptr, ptr, ptr)
declare void @_ZdlPv(ptr)
declare void @llvm.va_start(ptr)
declare void @llvm.va_end(ptr)
declare void @_ZNSt15__exception_ptr13exception_ptrD1Ev(ptr)

; A text that exceptions share: its length, its capacity and how many have it besides the first one, then the text, which is pointed to.
%rep = type { iW, iW, i32 }

define internal ptr @text(ptr %s, iW %n) {
  %room = add iW %n, 1
  %head = ptrtoint ptr getelementptr (%rep, ptr null, i32 1) to iW
  %size = add iW %room, %head
  %r = call ptr @malloc(iW %size)
  %none = icmp eq ptr %r, null
  br i1 %none, label %full, label %made
full:
  call void @_ZSt17__throw_bad_allocv()
  unreachable
made:
  store iW %n, ptr %r
  %c = getelementptr %rep, ptr %r, i32 0, i32 1
  store iW %n, ptr %c
  %u = getelementptr %rep, ptr %r, i32 0, i32 2
  store i32 0, ptr %u
  %t = getelementptr %rep, ptr %r, i32 1
  %x = call ptr @memcpy(ptr %t, ptr %s, iW %n)
  %e = getelementptr i8, ptr %t, iW %n
  store i8 0, ptr %e
  ret ptr %t
}

define internal void @keep(ptr %t) {
  %r = getelementptr %rep, ptr %t, i32 -1, i32 2
  %n = load i32, ptr %r
  %m = add i32 %n, 1
  store i32 %m, ptr %r
  ret void
}

define internal void @drop(ptr %t) {
  %r = getelementptr %rep, ptr %t, i32 -1
  %u = getelementptr %rep, ptr %r, i32 0, i32 2
  %n = load i32, ptr %u
  %m = sub i32 %n, 1
  store i32 %m, ptr %u
  %last = icmp sle i32 %n, 0
  br i1 %last, label %go, label %stay
go:
  call void @free(ptr %r)
  ret void
stay:
  ret void
}

define void @_ZSt24__throw_out_of_range_fmtPKcz(ptr %format, ...) {
  %l = call iW @strlen(ptr %format)
  %n = add iW %l, 512
  %text = alloca i8, iW %n
  %list = alloca [4 x i64], align 16
  call void @llvm.va_start(ptr %list)
  %r = call i32 @vsnprintf(ptr %text, iW %n, ptr %format, ptr %list)
  call void @llvm.va_end(ptr %list)
  call void @_ZSt20__throw_out_of_rangePKc(ptr %text)
  unreachable
}

define void @_ZSt20__throw_out_of_rangev() {
  call void @_ZSt20__throw_out_of_rangePKc(ptr @empty)
  unreachable
}

@empty = internal constant [1 x i8] zeroinitializer

define zeroext i1 @_ZNKSt9type_infoeqERKS_(ptr %this, ptr %other) {
  %a = getelementptr { ptr, ptr }, ptr %this, i32 0, i32 1
  %b = getelementptr { ptr, ptr }, ptr %other, i32 0, i32 1
  %x = load ptr, ptr %a
  %y = load ptr, ptr %b
  %same = icmp eq ptr %x, %y
  br i1 %same, label %yes, label %look
look:
  %c = load i8, ptr %x
  %own = icmp eq i8 %c, 42
  br i1 %own, label %no, label %names
names:
  %o = call i32 @strcmp(ptr %x, ptr %y)
  %e = icmp eq i32 %o, 0
  ret i1 %e
yes:
  ret i1 true
no:
  ret i1 false
}
declare i32 @strcmp(ptr, ptr)
`

// nestedException is the IR of std::nested_exception, whose objects hold the vtable pointer and an exception_ptr.
const nestedException = `
@_ZTSSt16nested_exception = constant [21 x i8] c"St16nested_exception\00"
@_ZTISt16nested_exception = constant { ptr, ptr } { ptr getelementptr (ptr, ptr @_ZTVN10__cxxabiv117__class_type_infoE, i32 2), ptr @_ZTSSt16nested_exception }
@_ZTVSt16nested_exception = constant [4 x ptr] [ptr null, ptr @_ZTISt16nested_exception, ptr @_ZNSt16nested_exceptionD1Ev, ptr @_ZNSt16nested_exceptionD0Ev]
define void @_ZNSt16nested_exceptionD2Ev(ptr %this) {
  %p = getelementptr ptr, ptr %this, i32 1
  call void @_ZNSt15__exception_ptr13exception_ptrD1Ev(ptr %p)
  ret void
}
define void @_ZNSt16nested_exceptionD1Ev(ptr %this) {
  call void @_ZNSt16nested_exceptionD2Ev(ptr %this)
  ret void
}
define void @_ZNSt16nested_exceptionD0Ev(ptr %this) {
  call void @_ZNSt16nested_exceptionD2Ev(ptr %this)
  call void @_ZdlPv(ptr %this)
  ret void
}
`

// runtimeText returns the text of the libstdc++ module for pointers of this many bits.
func runtimeText(bits int) string {
	var b strings.Builder
	b.WriteString(runtimeHead)
	for name := range typeTables {
		fmt.Fprintf(&b, "@%s = constant [8 x ptr] zeroinitializer\n", name)
	}
	b.WriteString(nestedException)
	for _, t := range strings.Fields(fundamentals) {
		info(&b, t, "_ZTVN10__cxxabiv123__fundamental_type_infoE", "")
		info(&b, "P"+t, "_ZTVN10__cxxabiv119__pointer_type_infoE", "i32 0, ptr @_ZTI"+t)
		info(&b, "PK"+t, "_ZTVN10__cxxabiv119__pointer_type_infoE", "i32 1, ptr @_ZTI"+t)
	}
	for _, x := range stdExceptions {
		x.write(&b)
	}
	for name, class := range stdThrows {
		writeThrow(&b, name, class)
	}
	return strings.ReplaceAll(b.String(), "iW", fmt.Sprintf("i%d", bits))
}

// info writes the type_info of name, whose vtable is table. rest lists the members after the pointer to the name.
func info(b *strings.Builder, name, table, rest string) {
	types := "ptr, ptr"
	for _, f := range strings.Split(rest, ", ") {
		if t, _, ok := strings.Cut(f, " "); ok {
			types += ", " + t
		}
	}
	if rest != "" {
		rest = ", " + rest
	}
	fmt.Fprintf(b, "@_ZTS%s = constant [%d x i8] c\"%s\\00\"\n", name, len(name)+1, name)
	fmt.Fprintf(b, "@_ZTI%s = constant { %s } { ptr getelementptr (ptr, ptr @%s, i32 2), ptr @_ZTS%s%s }\n", name, types, table, name, rest)
}

// mangled returns the mangled name of a class in namespace std.
func mangled(class string) string { return fmt.Sprintf("St%d%s", len(class), class) }

// root returns the name of the class that defines what() for x.
func (x stdException) root() string {
	for x.what == "" && x.base != "exception" {
		x = classOf(x.base)
	}
	return x.name
}

// hasText reports whether objects of the class hold a text.
func (x stdException) hasText() bool { return classOf(x.root()).what == "" }

func classOf(name string) stdException {
	for _, x := range stdExceptions {
		if x.name == name {
			return x
		}
	}
	return stdException{}
}

func (x stdException) write(b *strings.Builder) {
	m, own := mangled(x.name), x.hasText() && x.base == "exception"
	if x.base == "" {
		info(b, m, "_ZTVN10__cxxabiv117__class_type_infoE", "")
	} else {
		info(b, m, "_ZTVN10__cxxabiv120__si_class_type_infoE", "ptr @_ZTI"+mangled(x.base))
	}
	fmt.Fprintf(b, "@_ZTV%[1]s = constant [5 x ptr] [ptr null, ptr @_ZTI%[1]s, ptr @_ZN%[1]sD1Ev, ptr @_ZN%[1]sD0Ev, ptr @_ZNK%[2]s4whatEv]\n", m, mangled(x.root()))
	switch {
	case own:
		fmt.Fprintf(b, "define ptr @_ZNK%s4whatEv(ptr %%this) {\n  %%p = getelementptr ptr, ptr %%this, i32 1\n  %%t = load ptr, ptr %%p\n  ret ptr %%t\n}\n", m)
	case x.what != "":
		fmt.Fprintf(b, "@what.%s = internal constant [%d x i8] c\"%s\\00\"\n", x.name, len(x.what)+1, x.what)
		fmt.Fprintf(b, "define ptr @_ZNK%s4whatEv(ptr %%this) {\n  ret ptr @what.%s\n}\n", m, x.name)
	}
	// Destructors: base object, complete object, and deleting.
	drop := ""
	switch {
	case own:
		drop = "  %p = getelementptr ptr, ptr %this, i32 1\n  %t = load ptr, ptr %p\n  call void @drop(ptr %t)\n"
	case x.hasText():
		drop = fmt.Sprintf("  call void @_ZN%sD2Ev(ptr %%this)\n", mangled(x.base))
	}
	fmt.Fprintf(b, "define void @_ZN%sD2Ev(ptr %%this) {\n%s  ret void\n}\n", m, drop)
	fmt.Fprintf(b, "define void @_ZN%[1]sD1Ev(ptr %%this) {\n  call void @_ZN%[1]sD2Ev(ptr %%this)\n  ret void\n}\n", m)
	fmt.Fprintf(b, "define void @_ZN%[1]sD0Ev(ptr %%this) {\n  call void @_ZN%[1]sD2Ev(ptr %%this)\n  call void @_ZdlPv(ptr %%this)\n  ret void\n}\n", m)
	if !x.hasText() {
		return
	}
	for _, c := range []string{"C1", "C2"} {
		table := fmt.Sprintf("  store ptr getelementptr (ptr, ptr @_ZTV%s, i32 2), ptr %%this\n", m)
		if !own {
			for _, from := range []string{"EPKc", "ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"} {
				fmt.Fprintf(b, "define void @_ZN%[1]s%[2]s%[3]s(ptr %%this, ptr %%s) {\n  call void @_ZN%[4]sC2%[3]s(ptr %%this, ptr %%s)\n%[5]s  ret void\n}\n", m, c, from, mangled(x.base), table)
			}
			continue
		}
		const put = "  %p = getelementptr ptr, ptr %this, i32 1\n  store ptr %t, ptr %p\n  ret void\n}\n"
		fmt.Fprintf(b, "define void @_ZN%s%sEPKc(ptr %%this, ptr %%s) {\n%s  %%n = call iW @strlen(ptr %%s)\n  %%t = call ptr @text(ptr %%s, iW %%n)\n%s", m, c, table, put)
		fmt.Fprintf(b, "define void @_ZN%s%sERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(ptr %%this, ptr %%string) {\n%s  %%s = load ptr, ptr %%string\n"+
			"  %%l = getelementptr { ptr, iW }, ptr %%string, i32 0, i32 1\n  %%n = load iW, ptr %%l\n  %%t = call ptr @text(ptr %%s, iW %%n)\n%s", m, c, table, put)
		// A moved-from exception keeps its text, because a move shares the text as a copy does.
		for _, from := range []string{"ERKS_", "EOS_"} {
			fmt.Fprintf(b, "define void @_ZN%s%s%s(ptr %%this, ptr %%other) {\n%s  %%o = getelementptr ptr, ptr %%other, i32 1\n  %%t = load ptr, ptr %%o\n  call void @keep(ptr %%t)\n%s", m, c, from, table, put)
		}
	}
	if own {
		for _, from := range []string{"ERKS_", "EOS_"} {
			fmt.Fprintf(b, "define ptr @_ZN%sa%s(ptr %%this, ptr %%other) {\n  %%o = getelementptr ptr, ptr %%other, i32 1\n  %%t = load ptr, ptr %%o\n  call void @keep(ptr %%t)\n"+
				"  %%p = getelementptr ptr, ptr %%this, i32 1\n  %%old = load ptr, ptr %%p\n  store ptr %%t, ptr %%p\n  call void @drop(ptr %%old)\n  ret ptr %%this\n}\n", m, "S"+from)
		}
	}
}

func writeThrow(b *strings.Builder, name, class string) {
	m := mangled(class)
	object := "  %x = call ptr @__cxa_allocate_exception(iW ptrtoint (ptr getelementptr ({ ptr, ptr }, ptr null, i32 1) to iW))\n"
	params, fill := "", fmt.Sprintf("  store ptr getelementptr (ptr, ptr @_ZTV%s, i32 2), ptr %%x\n", m)
	if strings.HasSuffix(name, "PKc") {
		params, fill = "ptr %s", fmt.Sprintf("  call void @_ZN%sC1EPKc(ptr %%x, ptr %%s)\n", m)
	}
	fmt.Fprintf(b, "define void @%s(%s) {\n%s%s  call void @__cxa_throw(ptr %%x, ptr @_ZTI%s, ptr @_ZN%sD1Ev)\n  unreachable\n}\n", name, params, object, fill, m, m)
}

// runtimeModule parses runtimeText once, with the program's data layout.
func (in *Interp) runtimeModule() (*ir.Module, error) {
	if in.runtime == nil {
		text := fmt.Sprintf("target datalayout = %q\ntarget triple = %q\n", in.layout.Text, in.mods[0].Triple) + runtimeText(8*in.layout.PointerBytes(0))
		m, err := ir.Parse("libstdc++", []byte(text))
		if err != nil {
			return nil, &trouble{KindInternal, err}
		}
		in.runtime = m
	}
	return in.runtime, nil
}

// runtimeValue returns the definition of a name in the module of runtimeModule, or nil.
func (in *Interp) runtimeValue(name string) (ir.Value, error) {
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "__cxa_") || libc[name] != nil || in.opt.Funcs[name] != nil {
		return nil, nil
	}
	m, err := in.runtimeModule()
	if err != nil {
		return nil, err
	}
	v := m.Lookup(name)
	if linkage, defines := definition(v); !defines || local(linkage) {
		return nil, nil
	}
	return v, nil
}

// runtimeAddr returns the address of a name of the module of runtimeModule. If the target defines the name, it returns the target's address.
func (in *Interp) runtimeAddr(name string) (machine.Addr, error) {
	v, err := in.runtimeValue(name)
	if err != nil {
		return 0, err
	}
	if v == nil {
		return 0, troublef(KindInternal, "%s is missing from the interpreter's part of libstdc++", name)
	}
	return in.names.of(v)
}
