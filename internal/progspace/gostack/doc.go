// Package gostack follows the stacks of Go programs across the functions of Go's run time that switch stacks.
//
// Its main type is [Finder]. A goroutine that calls C, and JIT code through C, continues on the stack of its thread, and a Go function that C calls
// continues on the stack of the goroutine: see the comment at the start of runtime/cgocall.go in Go's sources. CFI does not describe these switches.
//
// The code of these functions determines where execution continues: after the call, their instructions restore the stack pointer and return. The
// package runs these few instructions over a copy-on-write view of the target's memory. So it depends neither on the release of Go nor on the layout
// of its structures. If a goroutine's stack was moved while C ran, the frame pointers that C's frames saved lead to the old stack, but the
// instructions lead to the new one.
//
// # Security
//
// The code is hostile. At most [maxSteps] instructions run, and an unknown instruction ends the walk.
package gostack
