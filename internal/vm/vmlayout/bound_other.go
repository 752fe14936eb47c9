//go:build !linux

package vmlayout

import "errors"

// boundMemory is supported only on Linux, because only Linux cores and processes contain layouts.
func boundMemory() error {
	return errors.New("cannot bound the memory of a layout from the target on this system; give the layout with --layout")
}
