// Integer arithmetic in registers: a generator of pseudo-random numbers and a
// running sum, with a branch that is taken half of the time.
#include <stdint.h>
#include <stdio.h>

int main(void) {
	uint64_t x = 88172645463325252u, sum = 0;
	for (uint64_t i = 0; i < 4000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x & 1)
			sum += x % 1000 + i;
		else
			sum ^= x * 31;
	}
	printf("%lu\n", (unsigned long)sum);
	return 0;
}
