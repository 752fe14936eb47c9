//go:build !linux

package guard

import "errors"

// Start fails: what the guard does takes Linux on x86-64 or arm64.
func Start(bool) (*Conn, error) { return nil, errors.ErrUnsupported }
