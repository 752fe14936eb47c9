// Package commit makes a process what it would be had the native functions of a stack returned what the interpreter came to: the memory
// that they would have written, the result in its registers, the thread at its return address in the caller.
//
// Its main type is [Commit], which [Prepare] or [PrepareWith] makes of a stack and which nothing is written of before [Commit.Write].
//
// # Security
//
// It writes to the process, and refuses where it is not certain what native code would have left: by CFI alone it finds where a thread goes on. What a user's own
// interpreter has stored is written as it is; that it did nothing else is asked of it, and believed.
package commit
