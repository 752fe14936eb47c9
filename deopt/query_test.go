package deopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/progspace"
	"reframe/ptrace"
)

// A search that did not get to the end does not say that there is nothing.
func TestSearchThatWasCut(t *testing.T) {
	why := progspace.WhyNoMaps(&ptrace.Target{Scanned: true, ScanCut: true})
	require.Contains(t, why, "too large to be searched to the end")
	require.Contains(t, why, "the host must register what it compiles")
	require.NotContains(t, why, "memory holds no")
}
