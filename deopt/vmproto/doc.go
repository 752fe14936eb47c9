// Package vmproto hands frames of a virtual machine to the VM's own interpreter, a program that speaks the protocol of doc/protocol.md: JSON-RPC 2.0
// (https://www.jsonrpc.org/specification), one message a line, over its standard input and output.
//
// Its main type is [Child], the program while it runs. [Child.Resume] hands it the frames of one moment and serves what it asks for from a [Host]:
// memory by a copy-on-write [Overlay], addresses of symbols, room for what the program allocates.
//
// # Security
//
// The command is the user's own and may do what the user may. What it says is not trusted: lines, requests, allocations and output are bounded, and
// whatever breaks the protocol ends the program, with its process group. Memory comes from targets and is passed on as it is.
package vmproto
