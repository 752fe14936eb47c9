// Package ir reads the text form of LLVM IR, as clang, opt and llvm-dis of LLVM
// 14 to 22 print it, with typed or with opaque pointers.
//
// Its main type is [Module]: [Parse] makes one, and [ParseFile] of a file, which may be
// bitcode where llvm-dis is installed. They find of each function body only where it
// ends; [Func.Body] parses a body when it is first asked for, so that a module of a
// hundred thousand lines costs what is looked at. On it stand [Func.Sites], which says
// what operand of a call is what location of its stack map record, [LiveAt], which says
// what must be known to run on from a place, [Instr.Source], which says what line of
// the source a place comes from, and [Instr.Variables], which says what variables of the
// source the values are there.
//
// Read, and not kept, is what changes no result: metadata other than !dbg and what debug records refer to,
// attributes other than those of [ParamAttrs], comdats, visibility, orderings of atomics,
// use-list orders, module summaries.
//
// A calling convention, attribute, flag, linkage or kind of metadata that is not known, such as a fork's, is no error where
// it stands at the place of one: [Module.Warnings] lists such words. A convention is kept by its name, the others are not.
//
// A [Module] may be used by several goroutines at once.
//
// # Security
//
// The source is hostile. What is allocated is bounded by its length: splats,
// types and nesting have bounds of their own, because a short text can stand for
// much. Every error is an [*Error] with line and column, or names the function.
// Bitcode is read by llvm-dis, which LLVM does not make for hostile input: what it writes
// and how long it runs are bounded; its memory is too, on Linux.
package ir
