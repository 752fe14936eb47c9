// Calls tick every millisecond until its standard input ends.
#include <poll.h>
#include <unistd.h>

volatile unsigned long ticks;

__attribute__((noinline)) void tick(void) { ticks++; }

int main(void) {
	struct pollfd input = {0, POLLIN, 0};
	do
		tick();
	while (poll(&input, 1, 1) <= 0);
	tick();
	return 7;
}
