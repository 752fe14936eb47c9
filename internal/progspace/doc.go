// Package progspace holds all code of a target, like gdb's program space: the objects that a JIT registered, modules, and stack maps that only a scan
// of memory found. Each object has its symbols, stack maps and unwind information.
//
// Its main type is [Space]. It finds the [Objfile] of an address, names the address, and compares code with the compiled code ([Original]). If there
// is no stack map, [WhyNoMaps] lists possible reasons.
//
// # Security
//
// Images are hostile and are read through packages that bound their work. An object is read once, when a stack points into it.
package progspace
