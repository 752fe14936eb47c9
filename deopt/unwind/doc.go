// Package unwind finds the physical frames of a stopped thread: by call frame
// information (CFI, DWARF 5 §6.4, in the form that .eh_frame has in the Linux
// Standard Base, Core 5.0 §10.6), and by frame pointers for code that has none.
//
// Its main type is [Unwinder]. It asks a [Finder] for the [Table] of the image
// that a pc lies in, takes the one FDE and the one row that hold there, and
// computes the caller's registers. Every frame says which rule found it, every
// register is there or is unavailable with a reason, and the [End] says whether
// the outermost frame was reached or where and why the walk was cut short.
//
// Tables read what a lookup needs: a binary search of .eh_frame_hdr, then one
// FDE and its CIE. Only a section without a usable header is walked whole, once.
//
// # Security
//
// Sections, registers and memory are hostile. An entry longer than 1 MiB is
// refused, so are more than 128 register columns, 64 remembered states and 256
// values on the stack of an expression; an expression may take 10,000 steps. A
// walk has at most [Unwinder.Max] frames; each CFA must lie above the one
// before, except across a signal frame, and no signal frame is passed twice.
// What cannot be read is an error or an unavailable register, never a zero. A
// return address must lie in executable memory.
//
// CFI is believed once it is well formed: tables that lie consistently give
// wrong frames. So does code that breaks the calling convention.
package unwind
