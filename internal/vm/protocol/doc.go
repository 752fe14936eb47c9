// Package protocol hands frames of a virtual machine to the VM's own interpreter, a program that speaks the protocol of doc/protocol.md: JSON-RPC 2.0
// (https://www.jsonrpc.org/specification), one message a line, over its standard input and output.
//
// Its main type is [Child], the program while it runs. [Child.Resume] hands it the frames of one moment and serves its requests from a [Host]: memory
// by a copy-on-write [Overlay], addresses of symbols, room for what the program allocates.
//
// # Security
//
// The command is the user's own and has the user's rights. Its messages are not trusted: lines, requests, allocations and output are bounded, and a
// violation of the protocol ends the program, with its process group. Memory comes from targets and is passed on unchanged.
package protocol
