// Package ir reads the text form of LLVM IR, as clang, opt and llvm-dis of LLVM 14 to 22 print it, with typed or with opaque pointers.
//
// Its main type is [Module]: [Parse] makes one from text, and [ParseFile] from a file, which may be bitcode where llvm-dis is installed. They only
// find where each function body ends; [Func.Body] parses a body when it is first asked for, so that the cost of a module of a hundred thousand lines
// depends on the functions that are used. Four functions use the bodies: [Func.Sites] maps the operands of a call to the locations of its stack map
// record, [LiveAt] returns the values that are required to resume at a place, [Instr.Source] returns the source line that a place comes from, and
// [Instr.Variables] returns the variables of the source that have given values there.
//
// The parser reads and drops what changes no result: metadata other than !dbg and what debug records refer to, attributes other than those of
// [ParamAttrs], comdats, visibility, orderings of atomics, use-list orders, module summaries.
//
// An unknown calling convention, attribute, flag, linkage or kind of metadata, such as a fork's, is no error where one may occur: [Module.Warnings]
// lists such words. A convention is kept by its name, the others are not.
//
// A [Module] may be used by several goroutines at once.
//
// # Security
//
// The source is hostile. Its length bounds what is allocated: splats, types and nesting have bounds of their own, because a short text can expand to
// a large object. Every error is an [*Error] with line and column, or names the function. llvm-dis reads bitcode, and LLVM does not make it for
// hostile input: its output and its running time are bounded; its memory is too, on Linux.
package ir
