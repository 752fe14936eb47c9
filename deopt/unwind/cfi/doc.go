// Package cfi reads call frame information, which gives the places of the caller's registers for each code address.
//
// Its main type is [Table]: the unwind information of one image. [Table.Find] gives the [FDE] of an
// address, and [FDE.Rules] the [Row] that holds there: where the canonical frame address (CFA) is, and
// where the caller's registers are from there (DWARF 5 §6.4). The package reads .eh_frame, in the form of the Linux Standard Base, Core 5.0 §10.6,
// with its .eh_frame_hdr, and .debug_frame. [Compact] reads Apple's compact unwind into the same rows, and [StackSizes] reads the frame sizes that
// LLVM writes; these exist for images that are not processes here, and serve to check them. Package unwind applies the rows, and makes some of its
// own ([Row.SetRule], [RegisterPlus]).
//
// Tables read what a lookup needs: a binary search of .eh_frame_hdr, then one
// FDE and its CIE. Only a section without a usable header is walked whole, once.
//
// # Security
//
// Sections are hostile, as are the registers and the memory that an expression is run on. An entry
// longer than 1 MiB is refused, so are more than 128 register columns, 64 remembered states, 100,000
// instructions for a row, and 256 values on the stack of an expression; an expression may
// take 1,000 steps. What is not well formed is a [*FormatError] with its section and offset. CFI is
// believed once it is well formed: tables that lie consistently give wrong rows.
package cfi
