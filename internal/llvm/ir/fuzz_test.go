package ir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse requires that no source causes a panic (the parser would return "internal error"), and that the time is proportional to the length.
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
	f.Add([]byte(attributesModule))
	f.Add([]byte(forks))
	f.Add([]byte(sourceModule))
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
			compareScans(t, m)
		}
	})
}

// compareScans requires that the quick search for the ends of bodies and nodes finds the same module as the careful search, which reads every byte.
// Only the careful search may reject text in metadata, because the quick one skips metadata.
func compareScans(t *testing.T, m *Module) {
	careful, err := parseModule(m.Name, m.src, false, m.opaque)
	if err != nil {
		return
	}
	require.Len(t, m.Funcs, len(careful.Funcs))
	for i, f := range careful.Funcs {
		other := m.Funcs[i]
		require.Equal(t, []any{f.Name, f.Line, f.body.pos, f.body.end, f.body.line, f.debug},
			[]any{other.Name, other.Line, other.body.pos, other.body.end, other.body.line, other.debug})
	}
	require.Len(t, m.Globals, len(careful.Globals))
	require.Len(t, m.TypeNames, len(careful.TypeNames))
	require.Equal(t, careful.typed, m.typed)
	careful.metadata.find(m.src, 0)
	m.metadata.find(m.src, 0)
	quick := map[metadataNode]bool{}
	for _, n := range m.metadata.nodes {
		quick[n] = true
	}
	for _, n := range careful.metadata.nodes { // a surplus bracket may hide nodes from the careful search
		require.True(t, quick[n], "!%d", n.number)
	}
}

// exercise calls all methods of a module.
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
		f.Source()
		if f.Declared() {
			continue
		}
		blocks, err := f.Body()
		if err != nil {
			continue
		}
		for _, in := range blocks[0].Instrs[:min(len(blocks[0].Instrs), 50)] {
			in.Source()
			in.Variables(in.Args)
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
