// Package layout reads layout files (reframe.layout/v1), which define where an exit resumes: the function of the frame, and the live values in its
// variables.
//
// Its main type is [Layout]; [Parse] reads one. Errors give their position in the file.
//
// # Security
//
// Layout files come from the user. They are checked against the modules and the record before they name anything.
package layout
