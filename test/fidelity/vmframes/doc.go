// Package vmframes compares the frames of a virtual machine that a trace reports with the log of the machine's plain interpreter: random programs of
// examples/tinyvm, each exit of their compiled code, and mutants of the layout and of the compiler. The package contains only tests. It has no main
// type; its main functions compare a run with its log. The compiled programs are this repository's own and are trusted.
package vmframes
