//go:build !amd64

package xsave

// Host returns the zero layout: this machine's processor has no XSAVE area.
func Host() Layout { return Layout{} }
