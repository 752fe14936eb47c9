// Package maps lists the stack maps of a file, an archive, a process or a core, tells the meaning of each location of a record, and checks the
// promises of LLVM about them ([Maps.Check]).
//
// Its main type is [Maps], with an [Image] for each section; [OfFile] and [OfTarget] make one. A [Reading] is the meaning of a record.
//
// # Security
//
// Files and targets are hostile. Sections are parsed by package stackmap, which bounds what they may claim; code is walked once per function.
package maps
