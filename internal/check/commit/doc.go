// Package commit changes a process as if the native functions of a stack had returned the interpreter's results: the memory that they would have
// written, the result in its registers, the thread at its return address in the caller.
//
// Its main type is [Commit], which [Prepare] or [PrepareWith] makes of a stack; nothing is written before [Commit.Write].
//
// # Security
//
// It writes to the process, and refuses where it is not certain what native code would have left: it uses only CFI to find where a thread continues.
// The stores of a user's own interpreter are written unchanged; the interpreter must state that it did nothing else, which is not checked.
package commit
