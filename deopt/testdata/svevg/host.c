// @f (f.ll) keeps a vector of SVE on its stack while it calls stop, which aborts, or waits if WAITS is defined.
#include <stdlib.h>
#include <unistd.h>

long entry(void);

void stop(void)
{
#ifdef WAITS
	for (;;)
		pause();
#endif
	abort();
}

int main(void) { return entry(); }
