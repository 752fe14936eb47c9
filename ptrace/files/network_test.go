package files

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnNetwork(t *testing.T) {
	for path, want := range map[string]bool{
		`\\host\share\file`: true, `//host/share/file`: true, `\/host/share`: true, `/\host\share`: true, `\\?\UNC\host\share`: true, `\\.\pipe\name`: true, `\\`: true,
		`/usr/lib/file`: false, `C:\file`: false, `file`: false, `\file`: false, "/": false, "": false, `a//b`: false,
	} {
		require.Equal(t, want, OnNetwork(path), path)
	}
}
