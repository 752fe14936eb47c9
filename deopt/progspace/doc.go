// Package progspace is all code that a target has, as gdb's program space is: the objects that a JIT registered, modules, and maps that were found
// in memory alone, each with its symbols, its stack maps and its unwind information.
//
// Its main type is [Space], which finds the [Objfile] of an address, names it, and holds code against what it was ([Original]). Where nothing has a stack map, [WhyNoMaps] says what that may come of.
//
// # Security
//
// Images are hostile and are read through packages that bound what they do. An object is read when a stack points into it, and once.
package progspace
