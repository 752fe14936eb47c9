package vmlayout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// inMemory lists the functions of vmtables.ll. For each function, a layout reads the encoding that vmtables.c writes.
var inMemory = []string{"ftl", "hotspot", "v8", "yk"}

// tableLayouts reads their layouts, which must be short.
func tableLayouts(t *testing.T) (all []*vmlayout.Layout) {
	t.Helper()
	for _, name := range inMemory {
		l, err := vmlayout.Read(livetest.Testdata(t, "programs", "vm"+name+".star"))
		require.NoError(t, err)
		require.Less(t, strings.Count(string(l.Text), "\n"), 100)
		all = append(all, l)
	}
	return all
}

// TestTables compares frames with the log of the program that wrote them. The layouts read the frames from side tables, compressed streams,
// translation arrays and exit tables in memory. The seeds choose the frames, the values and the objects, which both frames share.
func TestTables(t *testing.T) {
	livetest.Slow(t)
	layouts := tableLayouts(t)
	seeds, values := 6, 0
	if livetest.Whole() {
		seeds = 60
	}
	for _, version := range []int{14, 19, 22} {
		for _, how := range livetest.ShareOf([]string{"aot", "mcjit", "orc"}, "tables", version) {
			t.Run(fmt.Sprintf("%s %d", how, version), func(t *testing.T) {
				for seed := range seeds {
					p := livetest.Tables(t, version, how, seed)
					o := frametest.Known(t, p)
					o.VMs = layouts
					v := frametest.Look(t, p, true, o)
					for _, function := range inMemory {
						var want strings.Builder
						for line := range strings.Lines(p.Output()) {
							if text, is := strings.CutPrefix(line, function+" "); is {
								want.WriteString(text)
								values++
							}
						}
						f := frametest.One(t, v, function)
						require.NotNil(t, f.VM, function)
						require.Equal(t, lines(strings.ReplaceAll(want.String(), "\r", "")), lines(told(f.VM)), "%s, seed %d", function, seed)
					}
					p.Kill()
				}
			})
		}
	}
	require.Greater(t, values, 500)
	t.Logf("%d lines of the programs' logs", values)
}
