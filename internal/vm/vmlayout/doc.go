// Package vmlayout makes frames of a user's virtual machine from the operands of a stack map record, by layouts that are Starlark programs
// (go.starlark.net; https://github.com/bazelbuild/starlark/blob/master/spec.md).
//
// Its main type is [Layout]. The self-describing parts of an encoding, such as tags, counts and keys, are constants of the record. So a layout's
// function frames(site) runs once for each record, reads its constants, and returns a [Shape], which has tokens in the places of values. At an exit,
// [Shape.Read] reads the tokens without running the layout. Lint runs the same program over sites of modules.
//
// # Security
//
// A layout that the user gives is trusted like any script that the user runs; each call is bounded in steps. Starlark does not bound memory: a layout
// from a target runs in its own process with bounded memory. Records and memory come from targets and are hostile: the amount of memory that is read
// is bounded.
package vmlayout
