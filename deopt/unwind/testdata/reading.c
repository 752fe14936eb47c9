/* Code to be read: every kind of frame that compilers make. Stepped through instruction by
   instruction, so that it calls nothing of a library and is short. Compiled with the flags
   that TestEveryInstruction names; with -DLLVM it also calls what is in reading.ll. */
#include <stdarg.h>

typedef long (*function)(long);

#define OWN __attribute__((noinline, noclone, noipa))

static volatile long sink;

OWN long leaf(long a, long b) { return a * 3 + b; }

/* Locals in the red zone, where a leaf may keep them without moving the stack pointer. */
OWN long red_zone(long a)
{
	volatile long kept[8];
	kept[a & 7] = a;
	return kept[(a + 1) & 7 ^ 1] + kept[a & 7];
}

OWN long many(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	return leaf(a + b + c, d) + leaf(e + f, g) + h - i;
}

OWN long calls_many(long a)
{
	long x = leaf(a, 1);
	long r = many(a, 2, 3, 4, 5, 6, 7, 8, x);
	return r + many(x, r, a, 4, 5, 6, 7, 8, 9);
}

/* More values live across calls than there are registers that callees keep. */
OWN long all_registers(long a, long b, long c, long d, long e, long f)
{
	long g = leaf(a, b), h = leaf(b, c), i = leaf(c, d), j = leaf(d, e), k = leaf(e, f);
	sink = g;
	return leaf(g, h) + leaf(i, j) + k + a + b + c + d + e + f + g + h + i;
}

OWN long runtime_size(long n)
{
	volatile char *p = __builtin_alloca(n * 16 + 8);
	p[0] = (char)n;
	p[n] = 2;
	return leaf(p[0], p[n]) + n;
}

OWN long run_twice(long n)
{
	long r = 0;
	for (long i = 1; i < 3; i++) {
		volatile long a[n + i];
		a[i] = n;
		r += leaf(a[i], i);
	}
	return r;
}

OWN long realigned(long n)
{
	_Alignas(64) volatile long big[16];
	big[n & 15] = n;
	long r = leaf(big[n & 15], n);
	return r + leaf(r, big[n & 15]);
}

/* Realigned, with an argument on the stack: the frame pointer is not enough. */
OWN long realigned_many(long a, long b, long c, long d, long e, long f, long g, long n)
{
	_Alignas(64) volatile long big[16];
	volatile char *p = __builtin_alloca(n + 16);
	big[n & 15] = g;
	p[n] = 1;
	return leaf(big[n & 15], p[n]) + a + b + c + d + e + f + g;
}

/* Large enough to be probed page by page, in a row and in a loop. */
OWN long probed(long n)
{
	volatile char big[9000];
	big[n] = 1;
	return leaf(big[n], n);
}

OWN long probed_in_loop(long n)
{
	volatile char big[70000];
	big[n] = 1;
	return leaf(big[n], n);
}

/* Returns early before anything is saved, where the compiler wraps only what needs it. */
OWN long early(long a, long b)
{
	if (a < 2)
		return b;
	long r = leaf(a, b);
	if (r < 0)
		return a;
	for (long i = 0; i < 2; i++)
		r += leaf(r, i) ^ a;
	return r + b;
}

OWN long table(long n, long a)
{
	switch (n) {
	case 0: return leaf(a, 1);
	case 1: return a + 5;
	case 2: return leaf(a, 7) * leaf(a, 2);
	case 3: sink = a; return 3;
	case 4: return leaf(leaf(a, 3), 3);
	case 5: return a ^ 0x55;
	case 6: return leaf(a, 6) - 6;
	}
	return -1;
}

OWN long tail(long a) { return leaf(a + 1, a); }

OWN long tail_after(long a, function f)
{
	long r = leaf(a, 2);
	return f(r + a);
}

OWN long variadic(long n, ...)
{
	va_list list;
	va_start(list, n);
	long r = 0;
	for (long i = 0; i < n; i++)
		r += leaf(va_arg(list, long), i);
	va_end(list);
	return r;
}

OWN double floats(double a, double b, long n)
{
	double r = a * b + (double)leaf(n, n);
	return r + (double)leaf((long)r, n);
}

OWN long deep(long n)
{
	if (n == 0)
		return 1;
	return deep(n - 1) * n + leaf(n, n);
}

/* Instructions that write registers which they do not name. */
OWN long unnamed(unsigned long a, unsigned long b)
{
	unsigned __int128 p = (unsigned __int128)a * b;
	long text[4] = {0};
	long *to = text;
	long n = 4, lo, hi, c, d;
	__asm__ volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(a) : "memory");
	__asm__ volatile("cpuid" : "=a"(lo), "=b"(hi), "=c"(c), "=d"(d) : "a"(0), "c"(0));
	__asm__ volatile("xchg %0, %1\n\txadd %1, %0\n\tlock cmpxchg %1, %2" : "+r"(a), "+r"(b), "+m"(text[1]) : : "rax", "memory");
	return (long)(p >> 64) + (long)((unsigned long)p / (b | 1)) + text[2] + n;
}

static __attribute__((noreturn)) OWN void finish(long status)
{
	__asm__ volatile("syscall" : : "a"(231), "D"(status) : "rcx", "r11", "memory"); /* exit_group */
	__builtin_unreachable();
}

/* One of its two ways calls a function that does not return, with nothing behind the call. */
OWN long gives_up(long a, long b)
{
	if (a > b)
		finish(leaf(a, b) & 0);
	return leaf(b, a) + b;
}

/* Never comes back. */
static __attribute__((noreturn)) OWN void never(long a)
{
	sink = leaf(a, 1);
	gives_up(a, -1);
	finish(1);
}

#ifdef LLVM
long llvm_all(long);
#endif

/* All that does. */
OWN void all(void)
{
	sink = leaf(1, 2) + red_zone(3) + calls_many(4) + all_registers(1, 2, 3, 4, 5, 6);
	sink += runtime_size(3) + run_twice(2) + realigned(5) + realigned_many(1, 2, 3, 4, 5, 6, 7, 8);
	sink += probed(6) + probed_in_loop(7) + early(1, 5) + early(5, 2);
	for (long i = 0; i < 8; i++)
		sink += table(i, sink);
	sink += tail(3) + tail_after(5, tail) + variadic(3, 10L, 20L, 30L) + deep(3);
	sink += (long)floats(1.5, 2.5, 3) + unnamed(1ul << 62, 12) + gives_up(1, 2);
#ifdef LLVM
	sink += llvm_all(sink & 7);
#endif
}

int main(void)
{
	register long b __asm__("rbx") = 0xb0;
	register long c __asm__("r12") = 0xc0;
	register long d __asm__("r13") = 0xd0;
	register long e __asm__("r14") = 0xe0;
	register long f __asm__("r15") = 0xf0;
	__asm__ volatile("" : "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	all();
	never(3);
	__asm__ volatile("" : : "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
	return 0;
}
