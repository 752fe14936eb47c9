// Package unwind finds the physical frames of a stopped thread, and reports the source of each.
//
// Its main type is [Unwinder]. It gets the [Code] that a pc lies in from a [Finder], and makes a [cfi.Row] of what is known of that code: where the
// canonical frame address is, and where the caller's registers are. Rows come, in this order, from
//
//   - call frame information (CFI), which package cfi reads; see [cfi.Table],
//   - for a signal trampoline without CFI, the registers that the kernel saved,
//   - the instructions of the function, from its start or on to where it returns (x86-64),
//   - the size that a stack map gives for its frame,
//   - a word on the stack after a call to the function, if its instructions from there on place its return
//     address at that word; or after a call of the function that owns the frame pointer, if that
//     function's calls push their return address there (x86-64),
//   - a call on the stack that leads to the function, or is in the function that owns the frame pointer,
//   - the link in the architecture's frames: a frame pointer or a back chain,
//   - the first word on the stack that is a return address, and from which CFI unwinds further.
//
// Rows from other sources than CFI may be wrong. A row is accepted if the stack agrees: its return address must come after a call. Frames from the
// last two sources are marked as guesses even then. Every register of a caller has a value or is unavailable with a reason, and the [End] reports
// whether the outermost frame was reached, or where and why the walk was cut short.
//
// The files amd64*.go read the instructions of x86-64; other architectures are unwound without that.
//
// The [Code] caches the results for a pc, and [Unwinder.Walk] takes over the outer frames of an earlier walk that have not changed.
//
// # Security
//
// Unwind information, code, registers and memory are hostile. The package reads at most 64 KiB of a function. It searches at most 32 KiB of a stack
// for a frame, tries 64 words of them, and scans at most 32 times. A walk has at most [Unwinder.Max] frames; each CFA must lie above the one
// before, except across a signal frame, and no signal frame is passed twice. Unreadable data gives an error or an unavailable register, never a
// zero. A return address must lie in executable memory.
//
// Well-formed CFI is trusted: tables that are consistent but wrong give wrong frames. Code is assumed to follow C's convention unless it is known
// to have another ([Code.NoneKept]): a virtual machine whose code preserves no registers may have changed those that are reported as unchanged.
package unwind
