package main_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	r := clitest.Run(t, "--version")
	require.Zero(t, r.Code)
	require.Regexp(t, `^reframe version \S+, `+runtime.Version()+`, `+runtime.GOOS+`/`+runtime.GOARCH+`\n$`, r.Stdout)
}
