//go:build !(linux && amd64)

package demo

import (
	"context"
	"fmt"
	"runtime"
)

// Start fails: the target is a program for Linux on x86-64.
func Start() (*Process, error) { return nil, errElsewhere() }

// StartVM fails for the same reason as [Start].
func StartVM() (*Process, error) { return nil, errElsewhere() }

func (k *Kept) start(context.Context) error { return errElsewhere() }

func errElsewhere() error {
	return fmt.Errorf("demo: the target runs on Linux on amd64, and this reframe is built for %s/%s", runtime.GOOS, runtime.GOARCH)
}
