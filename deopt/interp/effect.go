package interp

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// Effect classifies a C library function by how a call in a run may differ from the same call in the process. A larger effect means that less can be
// compared.
type Effect int

const (
	// EffectNone: the result depends only on arguments and memory, and the call changes nothing else.
	EffectNone Effect = iota
	// EffectMemory: as EffectNone, but the call stores to memory to which its arguments point.
	EffectMemory
	// EffectMath: as EffectNone, but in the process the last place of the result may differ, and errno may have been set.
	EffectMath
	// EffectState: the call depends on or changes state outside of its arguments: variables and addresses of the C library, the time, the environment.
	EffectState
	// EffectOutside: the call has effects outside of the process, or ends it. Unknown functions also have this effect.
	EffectOutside
	// EffectNative: native code ran the call, through [Options].Native.
	EffectNative
)

func (e Effect) String() string {
	return [...]string{"none", "memory", "math", "state", "outside", "native"}[e]
}

// EffectOf returns the effect of a built-in function, and EffectOutside for any other name. A single call may have a larger effect: see [Called].
func EffectOf(name string) Effect {
	if e, ok := effects[name]; ok {
		return e
	}
	return EffectOutside
}

var effects = effectTable()

// effectNames lists the functions by effect. A name with an asterisk also stands for the function of float, whose name ends in f.
var effectNames = map[Effect]string{
	// atoi and the related functions have undefined behavior for a number out of range (C17 7.22.1).
	EffectNone: `memcmp bcmp memchr rawmemchr memrchr memmem strlen strnlen strcmp strcoll strncmp strcasecmp strncasecmp
		strchr index strrchr rindex strchrnul strspn strcspn strpbrk strstr strcasestr bsearch
		isupper islower isalpha isdigit isxdigit isspace isprint isgraph isblank iscntrl ispunct isalnum tolower toupper isascii toascii
		__ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc __ctype_get_mb_cur_max
		abs labs llabs imaxabs div ldiv lldiv imaxdiv atof atoi atol atoll difftime
		fabs* floor* ceil* trunc* round* rint* nearbyint* roundeven* fmin* fmax* copysign* nan nanf
		isnan* isinf* finite* signbit* __isnan* __isinf* __finite* __signbit*`,

	EffectMemory: `memcpy memmove mempcpy __mempcpy memccpy memset explicit_bzero bzero bcopy
		strcpy stpcpy strncpy stpncpy strcat strncat strlcpy strlcat strxfrm strtok_r __strtok_r strsep
		__memcpy_chk __memmove_chk __mempcpy_chk __memset_chk __explicit_bzero_chk
		__strcpy_chk __stpcpy_chk __strncpy_chk __stpncpy_chk __strcat_chk __strncat_chk
		strtol strtoll strtoimax strtoul strtoull strtoumax strtoq strtouq strtod strtof strtold
		__isoc23_strtol __isoc23_strtoll __isoc23_strtoimax __isoc23_strtoul __isoc23_strtoull __isoc23_strtoumax
		__strtol_internal __strtoul_internal __strtod_internal __xpg_strerror_r qsort qsort_r frexp* modf*
		sprintf snprintf vsprintf vsnprintf __sprintf_chk __snprintf_chk __vsprintf_chk __vsnprintf_chk`,

	EffectMath: `sqrt* cbrt* sin* cos* tan* asin* acos* atan* atan2* sinh* cosh* tanh* asinh acosh atanh asinhf acoshf atanhf
		exp* exp2* exp10* expm1* log* log2* log10* log1p* logb* pow* fmod* remainder* drem* hypot* fdim* fma*
		ldexp* scalbn* scalbln* ilogb* lround* llround* lrint* llrint* nextafter nextafterf
		llvm.exp llvm.exp2 llvm.exp10 llvm.log llvm.log2 llvm.log10 llvm.pow llvm.powi llvm.sin llvm.cos llvm.tan llvm.sincos
		llvm.asin llvm.acos llvm.atan llvm.atan2 llvm.sinh llvm.cosh llvm.tanh llvm.fmuladd`,

	// setjmp stores registers; a C++ guard has state besides the byte that marks it as initialized.
	EffectState: `malloc calloc realloc reallocarray aligned_alloc memalign valloc posix_memalign malloc_usable_size free
		strdup __strdup strndup asprintf vasprintf __asprintf_chk __vasprintf_chk strtok
		time clock clock_gettime gettimeofday setlocale localeconv strerror strerror_r __errno_location
		getenv secure_getenv getpid pthread_self pthread_mutex_lock pthread_mutex_unlock
		atexit __cxa_atexit __cxa_guard_acquire __cxa_guard_release __cxa_guard_abort
		setjmp _setjmp sigsetjmp __sigsetjmp longjmp _longjmp siglongjmp __longjmp_chk feof feof_unlocked ferror ferror_unlocked fileno isatty`,

	EffectOutside: `exit _exit _Exit quick_exit abort __assert_fail __stack_chk_fail __chk_fail __cxa_pure_virtual
		_ZSt9terminatev _ZSt10unexpectedv __cxa_call_terminate __cxa_call_unexpected
		signal __sysv_signal puts puts_unlocked perror putchar putchar_unlocked fflush fflush_unlocked fclose write
		setvbuf setbuf setbuffer setlinebuf fseek ftell lseek lseek64
		clearerr clearerr_unlocked close fputs fputs_unlocked fwrite fwrite_unlocked fputc putc fputc_unlocked putc_unlocked _IO_putc __overflow
		ungetc _IO_ungetc read __read_chk fgetc getc _IO_getc __uflow fgetc_unlocked getc_unlocked
		getchar getchar_unlocked fgets fgets_unlocked __fgets_chk fread fread_unlocked __fread_chk
		printf vprintf fprintf vfprintf dprintf vdprintf __printf_chk __vprintf_chk __fprintf_chk __vfprintf_chk __dprintf_chk __vdprintf_chk`,
}

func effectTable() map[string]Effect {
	table := map[string]Effect{}
	for effect, names := range effectNames {
		for _, name := range strings.Fields(names) {
			base, all := strings.CutSuffix(name, "*")
			table[base] = effect
			if all {
				table[base+"f"] = effect
			}
		}
	}
	return table
}

// Add the C++ functions in init: their code refers to this table, so a reference to them in its initializer would be a cycle.
func init() {
	for _, table := range []map[string]Builtin{exceptionFuncs, cxxFuncs} {
		for name := range table {
			if _, ok := effects[name]; !ok {
				effects[name] = EffectState
			}
		}
	}
}

// noted is an intrinsic that computes a function of <math.h>. It counts the calls in [Result.Called].
type noted struct {
	floatIntrinsic
	name string
}

func (x noted) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	run, err := x.floatIntrinsic.decode(d, i, args, out)
	if err != nil {
		return nil, err
	}
	n := &note{name: x.name}
	return func(fr *frame) error {
		n.count(fr.in)
		return run(fr)
	}, nil
}

// note counts the runs of one call instruction of such an intrinsic.
type note struct {
	name string
	f    *external
	of   *Execution // the execution to whose list f belongs
}

func (n *note) count(in *Interp) {
	if r := &in.run; r.of != n.of || n.f == nil {
		if n.f = r.called.byName[n.name]; n.f == nil {
			n.f = r.called.add(n.name, EffectMath, nil)
		}
		n.of = r.of
	}
	n.f.Count++
}

// short wraps a fast path so that it also counts the run.
func (n *note) short(in *Interp, f shortWay) shortWay {
	return func(a, b, c uint64) (uint64, bool) {
		r, ok := f(a, b, c)
		if ok {
			n.count(in)
		}
		return r, ok
	}
}
