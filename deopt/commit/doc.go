// Package commit makes a process what it would be had the native functions of a stack returned what the interpreter came to: the memory
// that they would have written, the result in its registers, the thread at its return address in the caller.
//
// Its main type is [Commit], which [Prepare] makes of a stack and which nothing is written of before [Commit.Write].
//
// # Security
//
// It writes to the process, and refuses where it is not certain what native code would have left: by CFI alone it finds where a thread goes on.
package commit
