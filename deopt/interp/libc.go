package interp

import (
	"bytes"
	"math"
)

// libc is what a module may declare and call without any native code: the C
// standard's functions (ISO C17, clause 7) with the results of glibc where C
// leaves them open.
var libc = map[string]Builtin{
	"malloc":  func(c *Invocation) (Value, error) { return c.allocate(0, -1, false) },
	"calloc":  func(c *Invocation) (Value, error) { return c.allocate(0, 1, true) },
	"realloc": realloc, "free": free,
	"memcpy": memmove, "memmove": memmove, "memset": memset, "memcmp": memcmp,
	"strlen": strlen, "strdup": strdup,
	"strcmp":  func(c *Invocation) (Value, error) { return c.compare(math.MaxUint64) },
	"strncmp": func(c *Invocation) (Value, error) { return c.limited(2, c.compare) },
	"strcpy":  func(c *Invocation) (Value, error) { return c.copyString(math.MaxUint64) },
	"strncpy": func(c *Invocation) (Value, error) { return c.limited(2, c.copyString) },
	"strcat":  strcat,
	"strchr":  func(c *Invocation) (Value, error) { return c.find(bytes.IndexByte) },
	"strrchr": func(c *Invocation) (Value, error) { return c.find(bytes.LastIndexByte) },
	"puts":    puts, "putchar": putchar,
	"printf": printf, "sprintf": sprintf, "snprintf": snprintf,
	"abs": absInt, "labs": absInt, "llabs": absInt,
	"atoi": parseDecimal, "atol": parseDecimal, "atoll": parseDecimal,
	"strtol": strtol, "strtoll": strtol,
	"exit": exit, "_exit": exit, "_Exit": exit,
	"abort": func(*Invocation) (Value, error) { return Value{}, troublef(KindAbort, "the program called abort") },
}

func init() {
	for name, f := range mathFuncs {
		b := f.builtin
		libc[name], libc[name+"f"] = b, b
	}
	for _, name := range []string{"fprintf", "vfprintf", "fputs", "fputc", "fwrite", "fflush"} {
		libc[name] = refuseStream
	}
}

// mathFuncs are those of <math.h>, each with its float form of the same name and
// an f. See floatFunc for how exact they are.
var mathFuncs = map[string]floatFunc{
	"sqrt": one(math.Sqrt), "cbrt": one(math.Cbrt), "sin": one(math.Sin), "cos": one(math.Cos), "tan": one(math.Tan),
	"asin": one(math.Asin), "acos": one(math.Acos), "atan": one(math.Atan), "atan2": two(math.Atan2),
	"sinh": one(math.Sinh), "cosh": one(math.Cosh), "tanh": one(math.Tanh),
	"exp": one(math.Exp), "exp2": one(math.Exp2), "log": one(math.Log), "log2": one(math.Log2), "log10": one(math.Log10),
	"pow": two(math.Pow), "fmod": two(math.Mod), "hypot": two(math.Hypot),
	"fabs": one(math.Abs), "floor": one(math.Floor), "ceil": one(math.Ceil), "trunc": one(math.Trunc), "round": one(math.Round),
	"rint": one(math.RoundToEven), "nearbyint": one(math.RoundToEven),
	"fmin": two(minNum), "fmax": two(maxNum), "copysign": two(math.Copysign),
}

func (x floatFunc) builtin(c *Invocation) (Value, error) {
	v := make([]float64, x.args)
	for k := range v {
		var err error
		if v[k], err = c.Float(k); err != nil {
			return Value{}, err
		}
	}
	return c.ReturnFloat(x.f(v))
}

func refuseStream(c *Invocation) (Value, error) {
	return Value{}, unsupported("a FILE belongs to the target's own C library; print with printf or puts", "@%s", c.Name)
}

// allocate is malloc and calloc: the size is an argument, or the product of two.
func (c *Invocation) allocate(size, count int, zero bool) (Value, error) {
	n, err := c.Uint(size)
	if err != nil {
		return Value{}, err
	}
	if count >= 0 {
		m, err := c.Uint(count)
		if err != nil {
			return Value{}, err
		}
		if m > 0 && n > math.MaxUint64/m {
			return c.Return(0) // C: the null pointer
		}
		n *= m
	}
	a, err := c.Alloc(n, zero)
	if err == nil {
		err = c.in.work(n)
	}
	if err != nil {
		return Value{}, err
	}
	return c.Return(uint64(a))
}

func free(c *Invocation) (Value, error) {
	a, err := c.Addr(0)
	if err != nil {
		return Value{}, err
	}
	return Value{}, c.in.heap.free(a)
}

func realloc(c *Invocation) (Value, error) {
	a, err := c.Addr(0)
	if err != nil {
		return Value{}, err
	}
	n, err := c.Uint(1)
	if err != nil {
		return Value{}, err
	}
	if a == 0 {
		return c.allocate(1, -1, false)
	}
	old, ok := c.in.heap.sizes[a]
	switch {
	case !own(a):
		return Value{}, unsupported("only the target's own allocator knows how large the block at that address is", "realloc of %v, memory of the target,", a)
	case !ok:
		return Value{}, c.in.heap.free(a) // the error that a wrong free is
	case n == 0:
		if err := c.in.heap.free(a); err != nil {
			return Value{}, err
		}
		return c.Return(0)
	}
	to, err := c.Alloc(n, false)
	if err == nil {
		err = c.in.work(n)
	}
	if err == nil {
		err = c.in.move(to, a, min(old, n))
	}
	if err == nil {
		err = c.in.heap.free(a)
	}
	if err != nil {
		return Value{}, err
	}
	return c.Return(uint64(to))
}

func puts(c *Invocation) (Value, error) {
	s, err := c.text(0, math.MaxUint64)
	if err != nil {
		return Value{}, err
	}
	if err := c.Print(append(s, '\n')); err != nil {
		return Value{}, err
	}
	return c.Return(uint64(len(s)) + 1) // C: not negative; glibc: the bytes written
}

func putchar(c *Invocation) (Value, error) {
	b, err := c.Uint(0)
	if err != nil {
		return Value{}, err
	}
	if err := c.Print([]byte{byte(b)}); err != nil {
		return Value{}, err
	}
	return c.Return(b & 0xff)
}

func absInt(c *Invocation) (Value, error) {
	v, err := c.Int(0)
	if err != nil {
		return Value{}, err
	}
	return c.Return(uint64(max(v, -v)))
}

func exit(c *Invocation) (Value, error) {
	code, err := c.Int(0)
	if err != nil {
		return Value{}, err
	}
	return Value{}, &exited{int(code)}
}
