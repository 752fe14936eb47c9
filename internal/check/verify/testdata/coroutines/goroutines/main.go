// Goroutines run code with sites on their own stacks, and yield to each other in the middle of that code. Go's scheduler switches between them, on
// one thread.
package main

/*
__attribute__((weak)) long work(long); // the linker is given its object last
static long (*hook)(long);
long pass(long i) { return hook(i); }
static unsigned long work_address(unsigned long pass) { hook = (long (*)(long))pass; return (unsigned long)work; }
*/
import "C"

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"coroutines/coro"
)

func main() {
	debug.SetGCPercent(-1) // the garbage collector cannot follow frames of C
	runtime.GOMAXPROCS(1)
	work := uintptr(C.work_address(C.ulong(coro.PassAddress())))
	var out [4]uintptr
	var all sync.WaitGroup
	for k := range out {
		all.Add(1)
		go func() {
			defer all.Done()
			out[k] = coro.Enter(work, uintptr(3+k))
		}()
	}
	all.Wait()
	for _, n := range out {
		fmt.Println(int(n))
	}
}
