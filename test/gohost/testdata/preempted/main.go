// Command preempted runs two goroutines on one processor. Neither of them waits: with GODEBUG=asyncpreemptoff=1 the run time preempts them in
// runtime.newstack.
package main

import "runtime"

//go:noinline
func step(n int) int {
	var room [1024]byte // so that the function checks the size of its stack
	room[n%len(room)]++
	return n + int(room[n%len(room)])
}

func spin() {
	for n := 0; ; n = step(n) & 1023 {
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	go spin()
	spin()
}
