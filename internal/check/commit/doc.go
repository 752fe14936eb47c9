// Package commit changes a process as if the native functions of a stack had returned the interpreter's results: the memory that they would have
// written, the result in its registers, the thread at its return address in the caller.
//
// Its main type is [Commit]. [Prepare] or [PrepareWith] makes one of a stack; nothing is written before [Commit.Write].
//
// # Security
//
// The package writes to the process. It returns an error if the state that native code would have left is uncertain. Only CFI determines the place at
// which a thread continues. The package writes the stores of a user's own interpreter unchanged. The interpreter must state that it had no other
// effects; the package does not check this.
package commit
