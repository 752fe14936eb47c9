// Package vmlayout makes frames of a user's virtual machine out of the operands of a stack map record, by layouts that are programs in
// Starlark (go.starlark.net; https://github.com/bazelbuild/starlark/blob/master/spec.md).
//
// Its main type is [Layout]. The self-describing parts of an encoding, such as tags, counts and keys, are constants of the record. So a layout's
// function frames(site) runs once for each record, reads its constants, and returns a [Shape], which has tokens in the places of values. At an
// exit, [Shape.Read] reads the tokens without parsing anything. Lint runs the same program over sites that never ran.
//
// # Security
//
// Layouts that the user gives are trusted like any script that the user runs; each call is bounded in steps. Starlark does not bound memory:
// layouts of targets run in a process that does. Records and memory come from targets and are hostile: the amount that is read of them is bounded.
package vmlayout
