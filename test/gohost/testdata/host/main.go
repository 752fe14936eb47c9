// The host calls C, which calls Go again. Its argument selects how. The innermost function prints the stack and the number of its goroutine according
// to Go's run time, and then waits in C.
package main

/*
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

extern void goCallback(int);
extern void goInner(int);

#define OPAQUE __asm__ volatile("" ::: "memory")
#define NOINLINE static __attribute__((noinline))

NOINLINE void finish(void) { OPAQUE; write(1, "ready\n", 6); for (;;) pause(); }
NOINLINE int recurse(int n) { int r = 1; if (n == 0) goCallback(7); else r = recurse(n - 1) + n; OPAQUE; return r; }
NOINLINE int second(int n) { goInner(n); OPAQUE; return n + 1; }
NOINLINE void *body(void *p) { goCallback(1); OPAQUE; return p; }
NOINLINE void thread(void) { pthread_t t; pthread_create(&t, 0, body, 0); pthread_join(t, 0); }
NOINLINE void handle(int s) { finish(); OPAQUE; }
NOINLINE void interrupted(void) {
	struct sigaction a = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR2, &a, 0);
	raise(SIGUSR2);
	OPAQUE;
}
*/
import "C"

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
)

var called = make(chan bool)

//export goCallback
func goCallback(n C.int) {
	switch os.Args[1] {
	case "grown":
		grow(1000) // moves the stack of the goroutine
		C.second(3)
	case "parked": // this thread waits in Go's scheduler, above the frames of C
		called <- true
		select {}
	case "nested":
		C.second(3)
	default:
		report("main._Cfunc_finish")
		C.finish()
	}
}

//export goInner
func goInner(n C.int) {
	report("main._Cfunc_finish")
	C.finish()
}

func grow(n int) int {
	var a [64]byte
	a[n%64] = byte(n)
	if n == 0 {
		return int(a[0])
	}
	return grow(n-1) + int(a[n%64])
}

// report prints the functions on the stack of the caller, which then calls the C function named innermost.
func report(innermost string) {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	names := []string{"runtime.cgocall", innermost}
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		names = append(names, f.Function)
	}
	fmt.Println(strings.Join(names, " "))
	header := make([]byte, 64)
	header = header[:runtime.Stack(header, false)]
	fmt.Println(strings.Fields(string(header))[1]) // the header is: goroutine N [running]:
}

func recovered() {
	defer func() {
		recover()
		C.recurse(2)
	}()
	panic("lost")
}

func worker(done chan bool) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("request", "42")))
	switch os.Args[1] {
	case "thread":
		C.thread()
	case "panic":
		recovered()
	case "signal":
		report("main._Cfunc_interrupted")
		C.interrupted()
	default:
		C.recurse(3)
	}
	done <- true
}

func main() {
	done := make(chan bool)
	go worker(done)
	if os.Args[1] == "parked" {
		<-called
		C.finish()
	}
	<-done
}
