// Package commit changes a process as if the native functions of a stack had returned the interpreter's results: the memory that they would have
// written, the result in its registers, the thread at its return address in the caller.
//
// Its main type is [Commit]. [Prepare] or [PrepareWith] makes one of a stack; nothing is written before [Commit.Write].
//
// # Security
//
// The package writes to the process. It returns an error if it is not certain what native code would have left: only CFI determines where a thread
// continues. The stores of a user's own interpreter are written unchanged. The interpreter must state that it had no other effects, which is not
// checked.
package commit
