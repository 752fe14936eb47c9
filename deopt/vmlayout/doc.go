// Package vmlayout makes frames of a user's virtual machine out of the operands of a stack map record, by layouts that are programs in
// Starlark (go.starlark.net; https://github.com/bazelbuild/starlark/blob/master/spec.md).
//
// Its main type is [Layout]. What an encoding says of itself, tags, counts and keys, are constants of the record: so a layout's function
// frames(site) runs once for each record, sees its constants, and returns a [Shape], which has tokens where the values go. At an exit
// [Shape.Read] reads the tokens and nothing is parsed any more. Lint runs the same program over sites that never ran.
//
// # Security
//
// Layouts that the user gives are trusted as any script is that the user runs; each call is bounded in steps. Starlark does not bound memory: layouts of
// targets run in a process that does. Records and memory come from targets and are hostile: what is read of them is bounded.
package vmlayout
