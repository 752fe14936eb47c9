// Loads and stores: the primes below two million by a sieve, and a count of them.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
	int n = 2000000, count = 0;
	unsigned char *composite = calloc(n, 1);
	if (!composite)
		return 1;
	for (int i = 2; i < n; i++) {
		if (composite[i])
			continue;
		count++;
		for (int j = i + i; j < n; j += i)
			composite[j] = 1;
	}
	printf("%d\n", count);
	free(composite);
	return 0;
}
