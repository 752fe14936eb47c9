// Package replay runs record and replay, and reads damaged cores.
package replay
