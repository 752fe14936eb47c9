// Package dap is a debugging session in an editor: a server of the Debug Adapter Protocol (https://microsoft.github.io/debug-adapter-protocol/specification)
// over package session.
//
// Its main type is [Server]. How a target comes to be, it is given as an [Opener]; all that it shows a [session.Session] says.
//
// # Security
//
// Whoever is connected is trusted as far as the protocol goes: he can start programs. Messages are bounded, references are held against those that were
// given out, and what is wrong with a request is an answer and no end. What the target says travels as JSON strings, which clients show.
package dap
