//go:build !linux

package vmlayout

import "errors"

// boundMemory is supported only on Linux, as only its cores and processes contain layouts.
func boundMemory() error {
	return errors.New("the memory of a target's layout cannot be bounded here; give it with --layout")
}
