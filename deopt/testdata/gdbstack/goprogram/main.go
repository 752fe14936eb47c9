// Command goprogram has goroutines in different states: blocked forever, in a system call, computing, and in a callback
// of the sort package. It prints "ready" when all have begun.
package main

import (
	"fmt"
	"os"
	"sort"
	"sync"
	"syscall"
)

//go:noinline
func down(n int, end func()) int {
	var space [7]int
	space[n%7] = n
	if n == 0 {
		end()
		return 0
	}
	return down(n-1, end) + space[n%7]
}

func spin() {
	x := uint64(1)
	for {
		x = x*6364136223846793005 + 1442695040888963407
		if x == 0 {
			return
		}
	}
}

func main() {
	var begun sync.WaitGroup
	begun.Add(4)
	never := make(chan int)
	go down(20, func() { begun.Done(); <-never })
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		panic(err)
	}
	go down(5, func() {
		begun.Done()
		_, err := syscall.Read(pipe[0], make([]byte, 1)) // blocks the thread, because the poller does not watch this descriptor
		panic(err)
	})
	go down(11, func() { begun.Done(); spin() })
	go func() {
		s := []int{3, 1, 2}
		sort.Slice(s, func(i, j int) bool { begun.Done(); syscall.Pause(); return s[i] < s[j] })
	}()
	begun.Wait()
	fmt.Println("ready")
	os.Stdout.Sync()
	<-never
}
