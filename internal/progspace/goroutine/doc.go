// Package goroutine reads the goroutines of a Go program with Delve as a library.
//
// Its main type is [Reader]. Delve knows the types of Go's run time from the debug information of the program. It does not attach to the process: it reads
// the memory and the registers of a captured target or a core through its interface proc.ProcessInternal, and cannot change them.
//
// # Security
//
// The program is hostile. An executable of more than [maxExecutable] bytes is not read, and a panic of Delve becomes an error. Delve also reads debug
// information in goroutines that it starts itself, where a panic would end this process.
package goroutine
