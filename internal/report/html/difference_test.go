package html

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/report/explain"
)

// TestMarks requires that only bytes that differ are marked.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		left, right string
		want        []Mark
	}{
		{"4b00000000000000", "2104000000000000", []Mark{{"4b00", true}, {"000000000000", false}}},
		{"0011223344", "0011003344", []Mark{{"0011", false}, {"22", true}, {"3344", false}}},
		{"??00", "0100", []Mark{{"??", true}, {"00", false}}},
		{"75", "1057", []Mark{{"75", true}}},
		{"same", "same", []Mark{{"same", false}}},
		{"", "1", []Mark{{"", true}}},
	} {
		require.Equal(t, c.want, marks(c.left, c.right), c.left)
	}
}

// TestMemoryRows requires a row for each word of memory, with its address and its earlier content.
func TestMemoryRows(t *testing.T) {
	d := &Difference{}
	d.memory("memory", &verify.MemoryDifference{Address: "0x1000", Near: "last+0x8", Size: 40, Before: "0000000000000000 1111111111111111", Interpreter: "0100000000000000 1111111111111111", Native: "0000000000000000 1111111111111112"})
	require.Equal(t, []Table{{Title: "memory: 40 bytes at 0x1000, last+0x8", Left: "interpreter", Right: "native code", More: 3, Rows: []Compared{
		{What: "0x1000", Left: []Mark{{"01", true}, {"00000000000000", false}}, Right: []Mark{{"00", true}, {"00000000000000", false}}, Note: "before: 0000000000000000"},
		{What: "0x1008", Left: []Mark{{"11111111111111", false}, {"11", true}}, Right: []Mark{{"11111111111111", false}, {"12", true}}, Note: "before: 1111111111111111"},
	}}}, d.Tables)
}

// TestLargeDifference requires that the page and the index of differences of any size stay under the size limit, and report the omitted parts.
func TestLargeDifference(t *testing.T) {
	d := &Difference{Report: strings.Repeat("<line>\n", 100000)}
	for range 100000 {
		d.Interpreter.Tail = append(d.Interpreter.Tail, strings.Repeat("<&>", 200))
	}
	var slots []verify.SlotDifference
	for n := range 1000 {
		slots = append(slots, verify.SlotDifference{Slot: fmt.Sprintf("%%%d", n), Exit: strings.Repeat("0<", 500), Baseline: strings.Repeat("1<", 500)})
	}
	for range 200 {
		d.slots("values", "exit", "baseline", slots, false)
	}
	d.shorten(maxReport, maxTail)
	p := &Page{Title: "x", Explanation: &explain.Explanation{}, limits: roomy, Difference: d}
	var out bytes.Buffer
	require.NoError(t, p.Write(&out))
	require.LessOrEqual(t, out.Len(), MaxSize)
	require.Contains(t, out.String(), "more places that differ")
	require.Contains(t, out.String(), "and 9")
	require.NotContains(t, out.String(), "<line>")

	b, err := NewBook(filepath.Join(t.TempDir(), "new", "pages"), false)
	require.NoError(t, err)
	for range maxPages {
		b.Pages = append(b.Pages, Chapter{Title: strings.Repeat("<", 5000), What: strings.Repeat("\"", 5000), Left: strings.Repeat("&", 5000)})
	}
	require.NoError(t, b.Finish("summary"))
	text, err := os.ReadFile(filepath.Join(b.dir, "index.html"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), MaxSize)
	require.Contains(t, string(text), fmt.Sprintf("and %d more differences", b.More))
	require.Equal(t, maxPages, b.More+len(b.Pages))
	_, err = NewBook(b.dir, false)
	require.ErrorIs(t, err, os.ErrExist)
	_, err = NewBook(b.dir, true)
	require.NoError(t, err)
}

// TestCollected requires that a value shows its role for the collector, and that a derived pointer links to its base.
func TestCollected(t *testing.T) {
	for want, g := range map[string]*frame.GC{
		"": nil, "no gc pair: the record does not list it for the collector": {}, "gc pair: it is its own base": {Pair: true},
		"gc pair: its base is value 7; derived: 0x10000 + 24": {Pair: true, Base: new(7), Object: "0x10000", Offset: "24"},
	} {
		v := Value{Value: &explain.Value{}}
		v.GC = g
		require.Equal(t, want, v.Collected())
	}
}
