// Package arm64 runs the verbs on arm64 in emulation, on cores of other machines, and on other hosts.
package arm64
