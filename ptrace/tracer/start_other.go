//go:build !linux

package tracer

import "errors"

// Start fails: what the tracer does takes Linux on x86-64 or arm64.
func Start(bool) (*Conn, error) { return nil, errors.ErrUnsupported }
