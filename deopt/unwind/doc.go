// Package unwind finds the physical frames of a stopped thread, and the rule by which each was found.
//
// Its main type is [Unwinder]. It gets the [Code] at a pc from a [Finder], and makes a [cfi.Row] of the data for that code: the places of the
// canonical frame address and of the caller's registers. It tries these sources of rows, in this order:
//
//   - call frame information (CFI), which package cfi reads; see [cfi.Table],
//   - for a signal trampoline without CFI, the registers that the kernel saved,
//   - the instructions of the function, from its start (x86-64, arm64) or from the pc to its returns (x86-64),
//   - the frame size in a stack map,
//   - if the link register is lost, the only call that leads to the function and agrees with the stack (arm64),
//   - a word on the stack after a call to the function, if the function's instructions place its return
//     address at that word (x86-64),
//   - a word on the stack after a call in the function that owns the frame pointer, if that function's
//     calls push their return address there (x86-64),
//   - the link in the architecture's frames: a frame pointer or a back chain,
//   - the first word on the stack that is a return address and from which CFI unwinds further.
//
// Rows from other sources than CFI may be wrong. They are accepted only if the stack agrees: the return address must follow a call. Even then, frames
// from the last two sources are marked as guesses. Every register of a caller has a value or is unavailable with a reason. The [End] tells whether
// the outermost frame was reached, or where and why the walk was cut short.
//
// The files amd64*.go and arm64*.go read instructions; other architectures are unwound without that.
//
// The [Code] caches the results for a pc, and [Unwinder.Walk] reuses the outer frames of an earlier walk that have not changed.
//
// # Security
//
// Unwind information, code, registers and memory are hostile. The package reads at most 64 KiB of a function. It searches at most 32 KiB of a stack
// for a frame, tries 64 words of them, and scans at most 32 times. A walk has at most [Unwinder.Max] frames. Each CFA must be above the one before,
// except across a signal frame, and no signal frame may occur twice. Unreadable data gives an error or an unavailable register, never a zero. A
// return address must be in executable memory.
//
// Well-formed CFI is trusted: tables that are consistent but wrong give wrong frames. Code is assumed to follow C's convention unless another one is
// known ([Code.NoneKept]): a virtual machine whose code preserves no registers may have changed registers that are reported as unchanged.
package unwind
