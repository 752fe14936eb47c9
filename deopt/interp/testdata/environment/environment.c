// Calls the functions of environment.ll in a floating-point environment. The arguments are the control registers. Standard input has a
// line for each call, with the number of the function and three operands. The program prints the results.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTIONS(X) \
	X(add64) X(sub64) X(mul64) X(div64) X(sqrt64) X(fma64) X(muladd64) X(less64) X(equal64) X(min64) X(max64) X(rint64) \
	X(trunc32) X(ext64) X(sint64) X(uint64) X(toint) X(lrint64) X(vec64) X(add32) X(mul32) X(div32) X(sqrt32) X(sint32) X(dyn64) X(get)
#define LONG(X) X(xadd) X(xsub) X(xmul) X(xdiv) X(xsqrt) X(xexp) X(xtrunc) X(xuint) X(xsmall)
#define DECLARE(f) uint64_t f(uint64_t, uint64_t, uint64_t);
#define NAME(f) f,
FUNCTIONS(DECLARE)
#ifdef __x86_64__
LONG(DECLARE)
static uint64_t (*const table[])(uint64_t, uint64_t, uint64_t) = {FUNCTIONS(NAME) LONG(NAME)};
#else
static uint64_t (*const table[])(uint64_t, uint64_t, uint64_t) = {FUNCTIONS(NAME)};
#endif

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	uint64_t first = strtoull(argv[1], 0, 16), second = strtoull(argv[2], 0, 16);
	uint64_t f, a, b, c;
	while (scanf("%lu %lx %lx %lx", &f, &a, &b, &c) == 4) {
		uint64_t r;
#ifdef __x86_64__
		uint32_t old, new = first;
		uint16_t oldx, newx = second;
		__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(old), "=m"(oldx));
		__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"(new), "m"(newx));
		r = table[f](a, b, c);
		__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"(old), "m"(oldx));
#else
		uint64_t old;
		(void)second;
		__asm__ volatile("mrs %0, fpcr" : "=r"(old));
		__asm__ volatile("msr fpcr, %0" : : "r"(first));
		r = table[f](a, b, c);
		__asm__ volatile("msr fpcr, %0" : : "r"(old));
#endif
		printf("%lx\n", r);
	}
	return 0;
}
