package ir

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestQuickScanIsCertainOfWhatLLVMPrints requires that the quick search succeeds on LLVM's output.
func TestQuickScanIsCertainOfWhatLLVMPrints(t *testing.T) {
	src := opt(t, 19, filepath.Join("testdata", "common.ll"))
	m, err := parseModule("printed.ll", src, true, false)
	require.NoError(t, err)
	certain := 0
	for _, f := range m.Funcs {
		if f.Declared() {
			continue
		}
		if past, _ := quickBody(src, f.body.pos-1, len(src), true); past >= 0 {
			require.Equal(t, f.body.end+1, past)
			certain++
		}
	}
	require.Greater(t, certain, 5)
}

// TestQuickScanFindsWhatTheCarefulOneFinds inserts special bytes into valid modules. If both searches accept the text, they must find the same.
func TestQuickScanFindsWhatTheCarefulOneFinds(t *testing.T) {
	common, err := os.ReadFile(filepath.Join("testdata", "common.ll"))
	require.NoError(t, err)
	debug, err := os.ReadFile(filepath.Join("testdata", "debug.ll"))
	require.NoError(t, err)
	const strewn = "\n\n{}\"\";!@*=)("
	random := rand.New(rand.NewSource(1))
	taken := 0
	for _, src := range []string{string(common), string(debug), sourceModule, attributesModule} {
		for range 1000 {
			text := []byte(src)
			for range 1 + random.Intn(3) {
				at, c := random.Intn(len(text)), strewn[random.Intn(len(strewn))]
				if random.Intn(2) == 0 {
					text[at] = c
				} else {
					text = append(text[:at], append([]byte{c}, text[at:]...)...)
				}
			}
			if m, err := parseModule("strewn.ll", string(text), true, false); err == nil {
				compareScans(t, m)
				taken++
			}
		}
	}
	require.Greater(t, taken, 1000)
}

// TestQuickScanIsLinear requires that the quick search takes linear time.
func TestQuickScanIsLinear(t *testing.T) {
	livetest.Slow(t)
	const n = 200_000
	for name, line := range map[string]string{
		"bodies that end in their line": "define void @f%d() {\n ret void }\n",
		"brackets in comments":          "define void @f%d() {\n ret void } ; {\n",
		"nodes without spaces":          "!%d=!{}\n",
		"nodes and globals":             "!%d = !{}\n@g%[1]d = global i8 0\n",
	} {
		var src strings.Builder
		for i := range n {
			fmt.Fprintf(&src, line, i)
		}
		m, err := Parse(name, []byte(src.String()))
		require.NoError(t, err, name)
		require.Equal(t, n, len(m.Funcs)+max(len(m.Globals), len(m.metadata.nodes)), name)
	}
}
