// Package session is a debugging session at an exit: the interpreter goes on from the rebuilt frames by instructions, forwards and backwards, while the
// process or core stands as it is.
//
// Its main type is [Run].
//
// # Security
//
// The target is hostile, and read through package deopt. What the interpreter stores stays in its own copy.
package session
