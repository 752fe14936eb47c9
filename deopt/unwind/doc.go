// Package unwind finds the physical frames of a stopped thread, and says of each how.
//
// Its main type is [Unwinder]. It asks a [Finder] for the [Code] that a pc lies in. Whatever
// is known of that becomes a [cfi.Row]: where the canonical frame address is, and where the
// caller's registers are. Rows come, in this order, from
//
//   - call frame information (CFI), which package cfi reads; see [cfi.Table],
//   - for a signal trampoline that has none, what the kernel is known to have saved,
//   - the instructions of the function, from its start or on to where it returns (x86-64),
//   - the size that a stack map gives for its frame,
//   - a word on the stack behind a call to the function, when its instructions from there on say that
//     its return address is just there; or behind a call of the function whose frame pointer is
//     still in the register, when that makes its calls just there (x86-64),
//   - a call on the stack that leads to the function, or is in the one whose frame pointer is still there,
//   - the link that the architecture's frames have: a frame pointer or a back chain,
//   - the first word on the stack that is a return address, and from which CFI leads on.
//
// Those after CFI are opinions. One is believed where the stack agrees: what it takes for the
// return address has to come after a call. The last two are marked as guesses even then.
// Every register of a caller is there or is unavailable with a reason, and the [End] says
// whether the outermost frame was reached, or where and why the walk was cut short.
//
// The files amd64*.go are about the instructions of x86-64; elsewhere what they tell is done without.
//
// What was worked out for a pc is kept in its [Code], and [Unwinder.Walk] takes over the
// outer frames of an earlier walk that have not changed.
//
// # Security
//
// Unwind information, code, registers and memory are hostile. Of a function
// at most 64 KiB are read, and at most 32 KiB of a stack are looked through for a frame, of which
// 64 words are tried, and 32 times in all. A
// walk has at most [Unwinder.Max] frames; each CFA must lie above the one
// before, except across a signal frame, and no signal frame is passed twice.
// What cannot be read is an error or an unavailable register, never a zero. A
// return address must lie in executable memory.
//
// CFI is believed once it is well formed: tables that lie consistently give
// wrong frames. Code is taken to follow C's convention where it is not known to have another
// ([Code.NoneKept]): a virtual machine whose code keeps no registers may have changed those that
// are said to be as they were.
package unwind
