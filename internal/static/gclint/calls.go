package gclint

import (
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

const leafAttribute = "gc-leaf-function"

func isStatepoint(in *ir.Instr) bool { return isIntrinsic(in, "llvm.experimental.gc.statepoint") }

func isRelocate(in *ir.Instr) bool { return isIntrinsic(in, "llvm.experimental.gc.relocate") }

// isIntrinsic reports whether an instruction calls an intrinsic, with any suffix of types.
func isIntrinsic(in *ir.Instr, names ...string) bool {
	if in.Call == nil {
		return false
	}
	f, ok := in.Call.Callee.(*ir.Func)
	if !ok || !strings.HasPrefix(f.Name, "llvm.") {
		return false
	}
	for _, name := range names {
		if f.Name == name || strings.HasPrefix(f.Name, name+".") {
			return true
		}
	}
	return false
}

// calleeOf returns the function that a call runs, also if a statepoint wraps the call. It looks through casts of pointers. It returns nil if the
// module does not name the function.
func calleeOf(in *ir.Instr) *ir.Func {
	v := in.Call.Callee
	if isStatepoint(in) && len(in.Args) > 2 {
		v = in.Args[2]
	}
	for {
		switch c := v.(type) {
		case *ir.Func:
			return c
		case *ir.Const:
			switch {
			case c.Kind == ir.ConstRef:
				v = c.Target
			case c.Kind == ir.ConstExpr && (c.Op == ir.OpBitCast || c.Op == ir.OpAddrSpaceCast):
				v = c.Elems[0]
			default:
				return nil
			}
		default:
			return nil
		}
	}
}

// calleeName returns the name of a call's callee, for messages.
func calleeName(in *ir.Instr) string {
	if f := calleeOf(in); f != nil {
		return f.Ref()
	}
	if isStatepoint(in) && len(in.Args) > 2 {
		return in.Args[2].Ref()
	}
	if _, assembly := in.Call.Callee.(*ir.InlineAsm); assembly {
		return "assembly"
	}
	return in.Call.Callee.Ref()
}

// mayCollect reports whether a call may run the collector: it is a statepoint, or rewrite-statepoints-for-gc would make it one. That pass excludes
// calls with the attribute gc-leaf-function and of functions with it, calls of intrinsics except llvm.experimental.deoptimize and the two that copy
// references (llvm.memcpy and llvm.memmove.element.unordered.atomic), and the functions of the C library that LLVM knows (callsGCLeafFunction in LLVM's
// Local.cpp). Assembly is excluded because its text does not show calls.
func mayCollect(in *ir.Instr) bool {
	if in.Call == nil {
		return false
	}
	if _, marked := in.Call.Attrs[leafAttribute]; marked {
		return false
	}
	if _, assembly := in.Call.Callee.(*ir.InlineAsm); assembly {
		return false
	}
	f := calleeOf(in)
	switch {
	case isStatepoint(in), f == nil:
		return true
	case f.HasStringAttribute(leafAttribute):
		return false
	case strings.HasPrefix(f.Name, "llvm."):
		return isIntrinsic(in, "llvm.experimental.deoptimize", "llvm.memcpy.element.unordered.atomic", "llvm.memmove.element.unordered.atomic")
	}
	return !library[f.Name] || !f.Declared() || ownTypes(in.Call.Sig)
}

// ownTypes reports whether a function's type has a pointer with another address space than 0. No function of the C library has one: it is a function of
// the virtual machine with the same name.
func ownTypes(sig *ir.Type) bool {
	own := func(t *ir.Type) bool { return t.Kind == ir.PointerKind && t.AddrSpace != 0 }
	return own(sig.Elem) || slices.ContainsFunc(sig.Fields, own)
}

// library holds functions of the C and C++ libraries that LLVM knows (TargetLibraryInfo.def). LLVM treats calls of them as leaves.
var library = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(`
		abs labs llabs ffs ffsl ffsll isascii isdigit toascii
		acos acosf acosl acosh acoshf acoshl asin asinf asinl asinh asinhf asinhl atan atanf atanl atan2 atan2f atan2l atanh atanhf atanhl
		cbrt cbrtf cbrtl ceil ceilf ceill copysign copysignf copysignl cos cosf cosl cosh coshf coshl erf erff erfl exp expf expl exp10 exp10f exp10l
		exp2 exp2f exp2l expm1 expm1f expm1l fabs fabsf fabsl fdim fdimf fdiml floor floorf floorl fmax fmaxf fmaxl fmin fminf fminl fmod fmodf fmodl
		frexp frexpf frexpl hypot hypotf hypotl ilogb ilogbf ilogbl ldexp ldexpf ldexpl log logf logl log10 log10f log10l log1p log1pf log1pl
		log2 log2f log2l logb logbf logbl modf modff modfl nan nanf nanl nearbyint nearbyintf nearbyintl pow powf powl remainder remainderf remainderl
		rint rintf rintl round roundf roundl roundeven roundevenf roundevenl scalbn scalbnf scalbnl sin sinf sinl sincos sincosf sincosl
		sinh sinhf sinhl sqrt sqrtf sqrtl tan tanf tanl tanh tanhf tanhl tgamma tgammaf tgammal trunc truncf truncl
		memccpy memchr memcmp memcpy memmove mempcpy memrchr memset bcmp bcopy bzero
		stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strlcat strlcpy strlen strncasecmp strncat strncmp strncpy strndup
		strnlen strpbrk strrchr strspn strstr strtod strtof strtok strtok_r strtol strtold strtoll strtoul strtoull strxfrm wcslen
		atof atoi atol atoll malloc calloc realloc reallocf free aligned_alloc memalign posix_memalign valloc
		access chmod chown close closedir creat ctermid execl execle execlp execv execve execvP execvp execvpe exit abort abort_msg fclose fdopen feof
		ferror fflush fgetc fgetpos fgets fileno flockfile fopen fopen64 fork fprintf fputc fputs fread fscanf fseek fseeko fsetpos fstat ftell ftello
		ftrylockfile funlockfile fwrite getc getchar getenv getitimer getlogin_r getpwnam gets gettimeofday htonl htons lchown lstat mkdir mktime
		ntohl ntohs open opendir pclose perror popen pread printf putc putchar puts pwrite qsort read readlink realpath remove rename rewind rmdir
		scanf setbuf setitimer setvbuf snprintf sprintf sscanf stat statvfs symlink system times tmpfile umask uname ungetc unlink unsetenv utime utimes
		vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf write
		_Znwj _Znwm _Znaj _Znam _ZdlPv _ZdaPv _ZdlPvj _ZdlPvm _ZdaPvj _ZdaPvm _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t
		__cxa_atexit __cxa_guard_abort __cxa_guard_acquire __cxa_guard_release __cxa_throw
		__memcpy_chk __memmove_chk __memset_chk __strcpy_chk __strcat_chk __strlen_chk __sprintf_chk __snprintf_chk`) {
		m[name] = true
	}
	return m
}()

// collects is the certainty that a function can run the collector.
type collects uint8

const (
	never    collects = iota
	perhaps           // it calls a function that the module does not define or does not name
	contains          // it has a safepoint, or calls such a function
)

// reason is the call by which a function can collect.
type reason struct {
	sure collects
	call *ir.Instr
}

// canCollect returns the defined functions of a module that can collect, each with a call by which it can. Calls that are marked as leaves do not
// count: the marks are checked separately.
func canCollect(m *ir.Module) (map[*ir.Func]reason, error) {
	found := map[*ir.Func]reason{}
	type edge struct {
		caller *ir.Func
		call   *ir.Instr
	}
	callers := map[*ir.Func][]edge{}
	var work []*ir.Func
	note := func(f *ir.Func, r reason) {
		if r.sure > found[f].sure {
			found[f] = r
			work = append(work, f)
		}
	}
	for _, f := range m.Funcs {
		if f.Declared() {
			continue
		}
		blocks, err := f.Body()
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			for _, in := range b.Instrs {
				switch callee := calledFunc(in); {
				case !mayCollect(in):
				case isStatepoint(in):
					note(f, reason{contains, in})
				case callee == nil || callee.Declared():
					note(f, reason{perhaps, in})
				default:
					callers[callee] = append(callers[callee], edge{f, in})
				}
			}
		}
	}
	for len(work) > 0 {
		f := work[len(work)-1]
		work = work[:len(work)-1]
		for _, e := range callers[f] {
			note(e.caller, reason{found[f].sure, e.call})
		}
	}
	return found, nil
}

func calledFunc(in *ir.Instr) *ir.Func {
	if in.Call == nil {
		return nil
	}
	return calleeOf(in)
}
