// Package dap serves debugging sessions to editors by the Debug Adapter Protocol (https://microsoft.github.io/debug-adapter-protocol/specification).
//
// Its main type is [Server]. An [Opener] opens the targets; a [session.Session] supplies the data that the server shows.
//
// # Security
//
// The connected client is trusted within the protocol: it can start programs. Messages are bounded in size, and only references that the server has
// issued are valid. An invalid request gets an error response and does not end the session. The server sends text of the target as JSON strings,
// which clients display.
package dap
