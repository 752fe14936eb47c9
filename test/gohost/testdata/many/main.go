// The host starts the number of parked goroutines that its argument gives, and a thread that waits in C.
package main

/*
#include <unistd.h>

__attribute__((noinline)) static void finish(void) { write(1, "ready\n", 6); for (;;) pause(); }
*/
import "C"

import (
	"os"
	"strconv"
	"sync"
)

func receive(n int, c chan int, ready *sync.WaitGroup) int {
	if n > 0 {
		return receive(n-1, c, ready) + 1
	}
	ready.Done()
	return <-c
}

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	var ready sync.WaitGroup
	ready.Add(n)
	for i := range n {
		go receive(i%10, make(chan int), &ready)
	}
	ready.Wait()
	C.finish()
}
