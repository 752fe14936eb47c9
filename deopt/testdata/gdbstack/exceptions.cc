// Threads in different parts of a C++ exception's life: the search for a handler, a destructor on the way to it, the
// handler itself, a second exception inside that, and the end of the program for want of a handler. The main thread
// waits in a virtual call. Prints "ready" when all are there. Built with -rdynamic.
#include <atomic>
#include <cstdio>
#include <dlfcn.h>
#include <exception>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<unsigned> there;
static thread_local bool searched; // the search for a handler is to stop here

[[noreturn]] static void stand()
{
	there++;
	for (;;)
		pause();
}

// What libgcc's unwinder asks for the unwind information of each frame since glibc 2.35; this one is found first.
extern "C" int _dl_find_object(void *pc, dl_find_object *result) noexcept
{
	static const auto next = reinterpret_cast<decltype(&_dl_find_object)>(dlsym(RTLD_NEXT, "_dl_find_object"));
	if (searched)
		stand();
	return next(pc, result);
}

struct Guard {
	std::string name;
	bool stands;
	Guard(std::string n, bool s) : name(std::move(n)), stands(s) {}
	~Guard()
	{
		if (stands)
			stand();
	}
};

struct Error : std::exception {
	long detail;
	explicit Error(long d) : detail(d) {}
};

__attribute__((noinline)) static long throws(long n)
{
	Guard guard("level " + std::to_string(n), false);
	if (n == 0)
		throw Error(n);
	return throws(n - 1) + guard.name.size();
}

__attribute__((noinline)) static void in_cleanup()
{
	Guard guard("outer", true);
	throws(3);
}

static void searching()
{
	searched = true;
	throws(4);
}

static void cleanup()
{
	try {
		in_cleanup();
	} catch (const Error &) {
	}
}

static void handler()
{
	try {
		throws(5);
	} catch (const Error &e) {
		if (e.detail == 0)
			stand();
	}
}

static void uncaught_by() noexcept
{
	throws(2);
}

static void uncaught()
{
	uncaught_by();
}

static void nested()
{
	try {
		throws(1);
	} catch (const std::exception &) {
		cleanup();
	}
}

struct Base {
	virtual ~Base() = default;
	virtual void wait() = 0;
};

struct Waits : Base {
	void wait() override
	{
		for (;;)
			pause();
	}
};

int main()
{
	std::set_terminate(stand);
	std::vector<std::thread> threads;
	for (auto way : {searching, cleanup, handler, uncaught, nested})
		threads.emplace_back(way);
	while (there < threads.size())
		usleep(1000);
	puts("ready");
	fflush(stdout);
	Base *base = new Waits;
	base->wait();
}
