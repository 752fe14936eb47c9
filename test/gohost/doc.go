// Package gohost tests stacks of Go programs that call C and JIT code.
package gohost
