//go:build !linux

package dap

import "net"

// PeersKnown reports whether this system reports the user of a connection.
const PeersKnown = false

// SameUser returns an error for every connection, because this system does not report the user.
func SameUser(*net.TCPConn) error { return &StrangerError{-1} }
