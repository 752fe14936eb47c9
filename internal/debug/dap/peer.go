package dap

import "fmt"

// StrangerError is the error for a peer of another user.
type StrangerError struct {
	UID int // the peer's user; -1 if the kernel does not list its socket
}

// Error implements error.
func (e *StrangerError) Error() string {
	if e.UID < 0 {
		return "cannot determine the user of this connection; with --from-anywhere a token replaces the user"
	}
	return fmt.Sprintf("the connection belongs to user %d, not to the user who runs reframe; with --from-anywhere a token replaces the user", e.UID)
}
