// tailcall: a process that sleeps in a function which was jumped to.
#include <cstdio>
#include <ctime>

namespace shop {

__attribute__((noipa)) long sleeps(long n)
{
	timespec day = {86400, 0};
	std::puts("ready");
	std::fflush(stdout);
	for (;;)
		nanosleep(&day, nullptr);
	return n;
}

__attribute__((noipa)) long leaves(long n) { return sleeps(n + 1); }

__attribute__((noipa)) long stays(long n) { return leaves(n) + 1; }

} // namespace shop

int main(int argc, char **) { return static_cast<int>(shop::stays(argc)); }
