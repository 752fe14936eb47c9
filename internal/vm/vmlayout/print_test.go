package vmlayout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPrint requires that a layout's output is passed on with its line and record, also from another process, and that its amount is bounded.
func TestPrint(t *testing.T) {
	const text = "print('top')\ndef frames(site):\n  print(site.id, 'has', len(site.operands))\n  for n in range(site.id): print(n)\n  return frame('m', 1)\n\ndef method_name(m): return m\n"
	here, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	for name, l := range map[string]*Layout{"here": here, "elsewhere": elsewhere(t, text)} {
		var lines []string
		l.OnPrint(func(line string) { lines = append(lines, line) })
		_, err = l.Frames(&Site{Function: "f", Record: 1})
		require.NoError(t, err)
		require.Equal(t, []string{"a.star:1:6: top", "a.star:3:8: record 1 of @f: 1 has 0", "a.star:4:33: record 1 of @f: 0"}, lines, name)
		_, err = l.Frames(&Site{Function: "f", Record: 5000})
		require.NoError(t, err)
		require.Len(t, lines, 1000)
		require.True(t, strings.HasSuffix(lines[999], "(further output of the layout is left out)"))
	}
}

// TestDropPrints requires that dropped output is not passed on, and does not count against the bound of the output.
func TestDropPrints(t *testing.T) {
	const text = "def frames(site):\n  for n in range(site.id): print(n)\n  return frame('m', 1)\n"
	here, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	for name, l := range map[string]*Layout{"here": here, "elsewhere": elsewhere(t, text)} {
		var lines []string
		run := func(record uint64) {
			_, err := l.Frames(&Site{Function: "f", Record: record})
			require.NoError(t, err)
		}
		for _, record := range []uint64{600, 600, 2000} {
			l.HoldPrints()
			run(record)
			l.DropPrints()
		}
		l.HoldPrints()
		run(999)
		l.OnPrint(func(line string) { lines = append(lines, line) })
		require.Len(t, lines, 999, name)
		run(1000)
		require.Len(t, lines, 1000, name)
		require.Equal(t, "a.star:2:33: record 1000 of @f: 0 (further output of the layout is left out)", lines[999], name)
	}
}

// TestErrorsOfNames requires that the error of a function that names something has its line, also from another process.
func TestErrorsOfNames(t *testing.T) {
	const text = "def frames(site):\n  f = frame(5, 1)\n  f.local(0, virtual(1, 6))\n  return f\n\ndef method_name(m):\n  return read_string(m)\n\ndef class_name(c):\n  return c\n"
	here, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	for name, l := range map[string]*Layout{"here": here, "elsewhere": elsewhere(t, text)} {
		shape, err := l.Frames(&Site{Function: "f"})
		require.NoError(t, err)
		vm := shape.Read(&Source{Memory: memory{}, Static: memory{}})
		require.Equal(t, "the name of its method: a.star:7:21: read_string: 27 bytes at 0x5: not mapped", vm.Frames[0].Reason, name)
		require.Equal(t, "the name of its class: a.star:9:1: class_name returned a int; expected a text", vm.Objects[0].Reason, name)
		require.Equal(t, []string{"object 1: the name of its class: a.star:9:1: class_name returned a int; expected a text"}, texts(shape.Misfits(&Site{})), name)
	}
}
