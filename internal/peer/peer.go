// Package peer finds the user at the other end of a TCP connection within this machine.
//
// Its main function is [SameUser].
//
// # Security
//
// The answer comes from the kernel's list of sockets, which the peer cannot write to. A connection that is not in the list is refused.
package peer

import "fmt"

// StrangerError is the error for a peer of another user.
type StrangerError struct {
	UID int // of the peer; -1: the kernel does not list its socket
}

// Error implements error.
func (e *StrangerError) Error() string {
	if e.UID < 0 {
		return "cannot determine the user of this connection; with --from-anywhere a token replaces the user"
	}
	return fmt.Sprintf("the connection belongs to user %d, not to the user who runs reframe; with --from-anywhere a token replaces the user", e.UID)
}
