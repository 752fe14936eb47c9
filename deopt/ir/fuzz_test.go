package ir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever the source, nothing panics (the parser would say "internal error"),
// and the time is in proportion to its length.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.ll")
	require.NoError(f, err)
	require.NotEmpty(f, seeds)
	for _, file := range append(seeds, programs(f)...) {
		src, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(src)
	}
	for _, b := range broken {
		f.Add([]byte(b.src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := Parse("fuzz.ll", src)
		if err == nil {
			err = m.Check()
		}
		if err != nil {
			require.NotContains(t, err.Error(), "internal error")
		}
		if m != nil {
			exercise(t, m)
		}
	})
}

// exercise asks a module for all it can be asked for.
func exercise(t *testing.T, m *Module) {
	for _, g := range m.Globals {
		m.Layout.Size(g.ValueType)
		m.Layout.Align(g.ValueType)
		if g.Init != nil {
			_ = g.Init.Ref()
		}
	}
	for _, f := range m.Funcs {
		if sites, err := f.Sites(); err == nil {
			for _, s := range sites {
				s.Result()
			}
		}
		if f.Declared() {
			continue
		}
		blocks, err := f.Body()
		if err != nil {
			continue
		}
		for _, b := range blocks[:min(len(blocks), 50)] {
			for i := 0; i <= len(b.Instrs); i += 1 + len(b.Instrs)/8 {
				if _, err := LiveAt(b, i); err != nil {
					require.NotEmpty(t, err.Error())
				}
			}
		}
	}
}
