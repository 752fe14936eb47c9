package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAdd requires that each exported name of a folder is counted once, and that tests are not part of the product.
func TestAdd(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package p\n\nconst A, b = 1, 2\n\nvar C int\n\ntype D[T any] struct{ E int }\n\nfunc (d *D[T]) F() {}\n\nfunc (d D[T]) g() {}\n",
		// the same function for another platform
		"a_windows.go": "package p\n\nfunc H() {}\n",
		"a_linux.go":   "package p\n\nfunc H() {}\n\ntype i int\n\nfunc (i) J() {}\n",
		"a_test.go":    "package p\n\nvar K int\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	var c counts
	exported, err := c.add(dir)
	require.NoError(t, err)
	require.Equal(t, 5, exported, "A, C, D, D.F, H")
	require.Equal(t, counts{files: 3, lines: 11 + 3 + 7, testLines: 3}, c)
}
