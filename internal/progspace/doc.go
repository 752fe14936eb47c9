// Package progspace holds all code of a target, like the program space of gdb: the objects that a JIT registered, modules, and maps that were only
// found in memory, each with its symbols, its stack maps and its unwind information.
//
// Its main type is [Space], which finds the [Objfile] of an address, names it, and compares code with its original ([Original]). If nothing has a
// stack map, [WhyNoMaps] lists possible reasons.
//
// # Security
//
// Images are hostile and are read through packages that bound their work. An object is read when a stack points into it, and once.
package progspace
