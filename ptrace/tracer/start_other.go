//go:build !linux

package tracer

import "errors"

// Start returns an error: the tracer requires Linux on x86-64 or arm64.
func Start(bool) (*Conn, error) { return nil, errors.ErrUnsupported }
