// Package layout reads layout files (reframe.layout/v1), which say where an exit goes: which frame of which function resumes, with which
// live values in its variables.
//
// Its main type is [Layout]; [Parse] reads one, and says of a mistake where in the file it is.
//
// # Security
//
// Layout files come from the user. They are held against the modules and the record before they name anything.
package layout
