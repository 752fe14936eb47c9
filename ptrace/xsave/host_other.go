//go:build !amd64

package xsave

// Host returns the zero layout: this processor has no such area.
func Host() Layout { return Layout{} }
