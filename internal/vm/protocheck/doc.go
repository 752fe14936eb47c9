// Package protocheck tests an interpreter against doc/protocol.md: it sends the requests that reframe sends, those that a later reframe may send, and
// the errors that occur in real targets, and reports each deviation from that page.
//
// Its main function is [Run].
//
// # Security
//
// The command is the user's and runs with the user's rights. Package vmproto checks its messages against the protocol, and here they are text.
package protocheck
