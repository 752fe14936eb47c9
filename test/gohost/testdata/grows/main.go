// Command grows calls itself until the stack of its goroutine must grow.
package main

//go:noinline
func deep(n int) int {
	var room [1024]byte
	room[n%len(room)] = byte(n)
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1) + int(room[n%len(room)])
}

func main() { println(deep(1000)) }
