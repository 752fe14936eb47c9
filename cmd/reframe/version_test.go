package main_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	r := reframe(t, "--version")
	require.Zero(t, r.code)
	require.Regexp(t, `^reframe version \S+, `+runtime.Version()+`, `+runtime.GOOS+`/`+runtime.GOARCH+`\n$`, r.stdout)
}
