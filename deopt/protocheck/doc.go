// Package protocheck holds an interpreter against doc/protocol.md: it asks it what reframe asks, what a later reframe may ask, and what goes wrong in
// real targets, and says what it did otherwise than the page says. Its main function is [Run].
//
// # Security
//
// The command is the user's and is started as he would. What it says is held against the protocol by package vmproto, and is text here.
package protocheck
