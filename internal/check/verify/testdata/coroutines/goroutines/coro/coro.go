// Package coro calls C functions on the stacks of goroutines.
package coro

import "runtime"

// Enter calls a C function on the stack of the goroutine, which has 64 KiB for the function.
func Enter(fn, arg uintptr) uintptr

// PassAddress returns the address of a C function that yields to other goroutines.
func PassAddress() uintptr

func passed(i uintptr) uintptr {
	runtime.Gosched()
	return i * 7
}
