// Package protocol passes frames of a virtual machine to the VM's own interpreter, a program that speaks the protocol of doc/user/protocol.md: JSON-RPC
// 2.0 (https://www.jsonrpc.org/specification), one message per line, over its standard input and output.
//
// Its main type is [Child], a running interpreter. [Child.Resume] sends it the frames of one moment and serves its requests from a [Host]: memory by
// a copy-on-write [Overlay], addresses of symbols, and memory for allocations.
//
// # Security
//
// The command is the user's own and has the user's rights. Its messages are not trusted: lines, requests, allocations and output are bounded, and a
// violation of the protocol ends the program and its process group. Memory comes from targets and is passed on unchanged.
package protocol
