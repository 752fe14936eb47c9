// Package protocheck tests an interpreter against doc/user/protocol.md. It sends the requests that reframe sends, requests that a later reframe may send,
// and the errors that occur in real targets, and reports each deviation from that document.
//
// Its main function is [Run].
//
// # Security
//
// The command is the user's and runs with the user's rights. Package protocol checks its messages; this package treats them as text.
package protocheck
