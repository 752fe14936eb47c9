// Package cfi reads call frame information, which gives the places of the caller's registers for each code address.
//
// Its main type is [Table]: the unwind information of one image. [Table.Find] returns the [FDE] of an address, and [FDE.Rules] the [Row] for that
// address. A row gives the canonical frame address (CFA), and the places of the caller's registers relative to it (DWARF 5 §6.4). The package reads
// .eh_frame in the form of the Linux Standard Base, Core 5.0 §10.6, with its .eh_frame_hdr, and .debug_frame. [Compact] reads Apple's compact unwind
// into the same rows, and [StackSizes] reads the frame sizes that LLVM writes; both are used only to check image files. Package unwind applies the
// rows, and makes some of its own ([Row.SetRule], [RegisterPlus]).
//
// A lookup reads only what it needs: a binary search of .eh_frame_hdr, then one FDE and its CIE. A section without a usable header is walked once, as
// a whole.
//
// # Security
//
// Sections are hostile, as are the registers and the memory that an expression uses. The package rejects an entry longer than 1 MiB, more than 128
// register columns, 64 remembered states, 100,000 instructions for a row, and 256 values on the stack of an expression. An expression may take 1,000
// steps. Malformed input gives a [*FormatError] with its section and offset. Well-formed CFI is trusted: tables that are consistent but false give
// wrong rows.
package cfi
