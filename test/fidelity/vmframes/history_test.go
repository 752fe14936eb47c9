package vmframes_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/tinyvmtest"
)

// logLimit bounds the number of lines in the log of a run. A longer run counts as endless.
const logLimit = 300_000

// A history is a run of a whole program in tinyvm's plain interpreter.
type history struct {
	tinyvmtest.Result
	log     string           // path of the log
	lines   []string         // lines of the printed output
	keys    []tinyvmtest.Key // keys of the arrivals in the log, in chronological order
	at      map[tinyvmtest.Key]int
	printed []int // number of printed lines before each arrival and before the end of the program
}

// historyOf runs a program in the plain interpreter.
func historyOf(t *testing.T, llvm int, file string) *history {
	t.Helper()
	h := &history{at: map[tinyvmtest.Key]int{}}
	h.Result, h.log = interpreted(t, llvm, file)
	h.lines = strings.SplitAfter(strings.TrimSuffix(h.Output, "\n"), "\n")
	h.lines[len(h.lines)-1] += "\n"
	prints, n := printing(t, file), 0
	tinyvmtest.ReadLog(t, h.log, func(k tinyvmtest.Key) bool {
		h.at[k] = len(h.keys)
		h.keys, h.printed = append(h.keys, k), append(h.printed, n)
		if prints[place{k.Method, k.Position}] {
			n++
		}
		return false
	})
	h.printed = append(h.printed, n)
	require.NotEmpty(t, h.keys, h.Errors)
	require.Less(t, len(h.keys), logLimit)
	require.Len(t, h.at, len(h.keys), "a key has one arrival")
	require.Len(t, h.lines, n+1, "each print makes a line, and the end of the program another one")
	return h
}

// A place is a position in a method of a program.
type place struct {
	method   string
	position int
}

// printing returns the places at which a program prints.
func printing(t *testing.T, file string) map[place]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	all, at := map[place]bool{}, place{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, ";")
		switch words := strings.Fields(line); {
		case len(words) == 0 || words[0] == "class" || strings.HasSuffix(words[0], ":"):
		case words[0] == "method":
			at = place{method: words[1]}
		default:
			all[at] = words[0] == "print"
			at.position++
		}
	}
	return all
}

// back returns the first arrival after from with fewer frames, or -1 if the program ended before one.
func (h *history) back(from, frames int) int {
	n := slices.IndexFunc(h.keys[from:], func(k tinyvmtest.Key) bool { return k.Depth < frames })
	if n < 0 {
		return -1
	}
	return from + n
}

// span returns the arrivals at which a passage begins and ends. An arrival is -1 if the program ended before it.
func (h *history) span(p *passage) (from, to int, err error) {
	if p.stopped {
		return -1, -1, nil
	}
	from, ok := h.at[p.key]
	if !ok {
		return 0, 0, fmt.Errorf("the interpreter never came to %+v", p.key)
	}
	return from, h.back(from, p.depth), nil
}

// arrivals reads from the log the arrivals at which passages start and end, and the last arrival.
func (h *history) arrivals(t *testing.T, passages []*passage) map[tinyvmtest.Key]tinyvmtest.Arrival {
	t.Helper()
	wanted := map[tinyvmtest.Key]bool{h.keys[len(h.keys)-1]: true}
	for _, p := range passages {
		if from, to, err := h.span(p); err == nil && from >= 0 {
			wanted[h.keys[from]] = true
			if to >= 0 {
				wanted[h.keys[to]] = true
			}
		}
	}
	all := map[tinyvmtest.Key]tinyvmtest.Arrival{}
	for _, a := range tinyvmtest.ReadLog(t, h.log, func(k tinyvmtest.Key) bool { return wanted[k] }) {
		all[a.Key()] = a
	}
	require.Subset(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(wanted)))
	return all
}

// stoppedBy returns the reason why the program was stopped, or "" if it ended normally.
func (h *history) stoppedBy() string {
	why, stopped := strings.CutPrefix(h.lines[len(h.lines)-1], "stopped: ")
	if !stopped {
		return ""
	}
	return strings.TrimSuffix(why, "\n")
}
