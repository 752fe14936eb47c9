// Package layout reads layout files (reframe.layout/v1), which define the target of an exit: which frame of which function resumes, with which live
// values in its variables.
//
// Its main type is [Layout]; [Parse] reads one, and its errors have a place in the file.
//
// # Security
//
// Layout files come from the user. They are checked against the modules and the record before they name anything.
package layout
