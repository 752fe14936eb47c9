// Throws through a statepoint that is invoked. The landing pad waits in pause; what it has of the object is printed here.
#include <cstdio>
#include <unistd.h>

extern "C" long work(void *object, long n);
extern "C" void thrower() { throw 1; }
extern "C" long waits(long n) {
	std::puts("ready");
	std::fflush(stdout);
	pause();
	return n;
}

static long object[8] = {5, 6, 7};

int main() {
	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	std::printf("object %p\n", static_cast<void *>(object));
	try {
		work(object, 2);
	} catch (int) {
	}
}
