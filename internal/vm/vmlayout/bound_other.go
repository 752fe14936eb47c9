//go:build !linux

package vmlayout

import "errors"

// boundMemory is for Linux, where cores and processes come from that have layouts in them.
func boundMemory() error {
	return errors.New("the memory of a target's layout cannot be bounded here; give it with --layout")
}
