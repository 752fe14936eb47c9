// The runtime of the random programs of this package. Each thread has a block of memory at an address that the test knows. It holds
// random bytes that the program computes with, and its log: a frame for each active function, with the bits of its values.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The same numbers are in layout_test.go.
enum { block_size = 1 << 22, pool_at = 1024, pool_size = 6144, log_at = 8192 };
#ifdef __x86_64__
#define BLOCKS ((char *)0x1000000000)
#else
char truth_area[1 << 20] __attribute__((aligned(4096))); // of the only thread
#define BLOCKS truth_area
#endif

struct block {
	char *top;     // the log frame of the innermost function
	char *free;    // where the next one goes
	long tid;
	long depth;    // the number of active steps
	long left;     // the number of further recursive calls
	unsigned long random;
	jmp_buf *back; // where a function that deoptimizes returns to
};

typedef long root(struct block *);

static root **roots;
static long roots_n, deepest, fatal;

static unsigned long next(struct block *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return b->random >> 11;
}

static void fill(struct block *b)
{
	unsigned char *pool = (unsigned char *)b + pool_at;
	for (int k = 0; k < pool_size; k++)
		pool[k] = next(b) >> 7;
}

// settle empties the x87 stack, as calls require: LLVM leaves an x86_fp80 there that a stackmap or patchpoint has in a register,
// and so does a function that deoptimizes.
static inline void settle(void)
{
#ifdef __x86_64__
	__asm__ volatile("emms");
#endif
}

// enter calls a root. A function that deoptimizes leaves its frame in the log, and returns by truth_return.
__attribute__((noinline)) static void enter(struct block *b)
{
	char *top = b->top, *free = b->free;
	jmp_buf here, *back = b->back;
	b->back = &here;
	if (!setjmp(here))
		roots[next(b) % roots_n](b);
	b->back = back;
	b->top = top, b->free = free;
}

// __llvm_deoptimize ends by calling truth_return: no code follows its call.
__attribute__((noreturn)) void truth_return(struct block *b) { longjmp(*b->back, 1); }

// Sites call truth_step: it may call one of the roots, and it ends the program at the end of a run that must die.
__attribute__((noinline)) long truth_step(struct block *b)
{
	settle();
	if (fatal && b->depth >= deepest)
		*(volatile int *)0 = 0; // abort of a static library may have no unwind information
	if (b->depth < deepest && b->left > 0 && (fatal || next(b) % 8 < 5)) {
		b->depth++;
		b->left--;
		enter(b);
		b->depth--;
		settle();
	}
	return (long)next(b);
}

// truth_leaf returns a number and has no other effect.
__attribute__((noinline)) long truth_leaf(struct block *b)
{
	settle();
	return (long)next(b);
}

static long seed, steps;

static void *run(void *at)
{
	struct block *b = at;
	b->tid = syscall(SYS_gettid);
	b->random = 88172645463325252u + (unsigned long)seed * 2654435761u + (unsigned long)((char *)b - BLOCKS);
	for (int k = 0; k < 20; k++)
		next(b);
	b->left = steps;
	do {
		settle();
		fill(b);
		b->top = 0;
		b->free = (char *)b + log_at;
		b->depth = 0;
		enter(b);
	} while (b->left-- > 0);
	if (fatal) // no root has called deeply
		*(volatile int *)0 = 0;
	b->tid = 0;
	return 0;
}

int truth_run(root **table, long n, long threads, long s, long budget, long depth, long dies)
{
	roots = table, roots_n = n, seed = s, steps = budget, deepest = depth, fatal = dies;
#ifdef __x86_64__
	char *at = mmap(BLOCKS, block_size * threads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (at != BLOCKS)
		return 2;
#endif
	pthread_t others[16];
	for (long k = 1; k < threads; k++)
		if (pthread_create(&others[k], 0, run, BLOCKS + k * block_size))
			return 3;
	run(BLOCKS);
	for (long k = 1; k < threads; k++)
		pthread_join(others[k], 0);
	return 0;
}

// No exception is ever thrown.
int truth_personality(void) { abort(); }

#ifdef __x86_64__
// LLVM calls this to convert a float to a bfloat; libgcc 12 lacks it. Its arguments were all bfloats before.
__asm__(".globl __truncsfbf2\n.type __truncsfbf2,@function\n__truncsfbf2:\n.cfi_startproc\nmovd %xmm0,%eax\nshr $16,%eax\nmovd %eax,%xmm0\nret\n"
	".cfi_endproc\n.size __truncsfbf2,.-__truncsfbf2");
#endif
