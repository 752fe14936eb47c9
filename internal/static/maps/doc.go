// Package maps lists the stack maps of a file, an archive, a process or a core, explains each location of a record, and checks LLVM's guarantees
// about stack maps ([Maps.Check]).
//
// Its main type is [Maps], with an [Image] for each section; [OfFile] and [OfTarget] make one. A [Reading] explains a record.
//
// # Security
//
// Files and targets are hostile. Sections are parsed by package stackmap, which bounds what they may claim; code is walked once per function.
package maps
