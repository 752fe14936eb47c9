// Package ir parses the text of LLVM IR as printed by clang, opt and llvm-dis of LLVM 14 to 22, with typed or with opaque pointers.
//
// Its main type is [Module]. [Parse] parses text and [ParseFile] a file, which may be bitcode if llvm-dis is installed. They find only where each function
// body ends; [Func.Body] parses a body on first use. So the cost of a large module depends on the functions that are used. Four functions use bodies:
// [Func.Sites] maps the operands of a call to the locations of its stack map record, [LiveAt] returns the values that are required to resume at an
// instruction, [Instr.Source] returns the source line of an instruction, and [Instr.Variables] returns the source variables that values hold.
//
// The parser drops what does not affect results: metadata other than !dbg and the nodes of debug records, attributes other than those of [ParamAttrs],
// comdats, visibility, atomic orderings, use-list orders and module summaries.
//
// An unknown calling convention, attribute, flag, linkage or kind of metadata, such as a fork's, is not an error in a position where one may occur:
// [Module.Warnings] lists such words. Unknown conventions are kept by name; other words are ignored.
//
// A [Module] is safe for concurrent use.
//
// # Security
//
// The source is hostile. Its length limits allocations. Splats, types and nesting have separate limits, because a short text can expand to a large object.
// Every error is an [*Error] with line and column, or names the function. Bitcode is read by llvm-dis, which is not made for hostile input, so its output
// and its running time are limited, and on Linux its memory.
package ir
