// The host calls code that it has written to memory, without C. The code waits in a system call.
package main

//go:debug asyncpreemptoff=1

import (
	"fmt"
	"syscall"
	"unsafe"
)

//go:noinline
func call(f func()) { f() }

//go:noinline
func worker(f func(), done chan bool) {
	call(f)
	done <- true
}

func main() {
	code, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	// push %rbp; mov %rsp,%rbp; 1: mov $34,%eax (pause); syscall; test %eax,%eax; js 1b; pop %rbp; ret
	copy(code, "\x55\x48\x89\xe5\xb8\x22\x00\x00\x00\x0f\x05\x85\xc0\x78\xf5\x5d\xc3")
	entry := unsafe.Pointer(&code[0])
	value := unsafe.Pointer(&entry) // a func is a pointer to a structure that begins with the address of its code
	done := make(chan bool)
	fmt.Println("ready")
	go worker(*(*func())(unsafe.Pointer(&value)), done)
	<-done
}
