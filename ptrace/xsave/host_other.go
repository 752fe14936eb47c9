//go:build !amd64

package xsave

// Host says that this processor keeps no such area.
func Host() Layout { return Layout{} }
