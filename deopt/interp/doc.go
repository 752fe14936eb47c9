// Package interp is the reference interpreter: it runs LLVM IR from its text
// form, from the start of a function or from the middle of one.
//
// Its main type is [Interp], one module bound to one target. [Interp.Resume]
// resumes where compiled code left off; [Interp.Call] runs a function from
// its start. Loads see the live memory of the target through a copy-on-write
// view; stores stay in the view, so a run never changes the target.
//
// Every bit of a value is known or undefined, as in Memcheck: an undefined bit
// may travel through arithmetic and memory, and the run ends with an error when
// something would depend on it (a branch, an address, a byte that is printed).
// Poison is a value all of whose bits are undefined.
//
// # Address ranges
//
// The interpreter allocates its own memory in address ranges that no x86-64 process can map, because their addresses are not canonical:
//
//	0x4000_0000_0000_0000  heap: malloc, calloc, realloc, strdup
//	0x4800_0000_0000_0000  stack: alloca of calls that the interpreter makes
//	0x5000_0000_0000_0000  globals that have no address in the target
//
// constant globals of that kind: no store may change them
//
//	0x5800_0000_0000_0000  globals whose value cannot be known: any access fails
//	0x6000_0000_0000_0000  functions and block addresses: no access at all
//
// Modules whose pointers have 32 bits run without a target. Their ranges lie below 2 GiB, in the same order: at 0x0800_0000, 0x500c_0000,
// 0x6018_0000, 0x6c24_0000, 0x7830_0000 and 0x7c3c_0000.
//
// # The C library
//
// A function that the module only declares runs if [Options].Funcs or the built-in table defines it. The table covers what compiled code calls
// everywhere: memory, strings, numbers, <math.h>, setjmp, exceptions, sorting, and the streams of standard input, output and error, which behave as
// pipes do. Results are those of glibc on x86 in the "C" locale. [Options].Native runs every other function; without it, the run ends with an error
// that names the function. The environment is empty. The date is always 1970-01-01, clocks advance by a nanosecond a step, and no signal arrives. A
// program that aborts loses no output, as if its streams had no buffers.
//
// # Security
//
// Modules and targets are hostile. [Options] bounds steps, memory, call depth, output and the width of a value. An access outside of allocated
// memory is an error. No instruction runs on the real machine. A panic is a bug of this package, but the caller still receives it as an error.
package interp
