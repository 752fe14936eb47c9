package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWarningsWithoutReader requires that unread warnings take bounded memory. When a reader starts to read, each warning must be written or counted
// as left out: as text beside other output, and as objects in JSON that goes to standard error.
func TestWarningsWithoutReader(t *testing.T) {
	const warnings = 50_000
	for name, json := range map[string]bool{"text": false, "JSON on standard error": true} {
		t.Run(name, func(t *testing.T) {
			from, to, err := os.Pipe()
			require.NoError(t, err)
			defer from.Close()
			a, out := &app{stderr: to, json: json}, to
			if !json {
				out, err = os.Create(os.DevNull)
				require.NoError(t, err)
				defer out.Close()
			}
			w := newExitWriter(a, out, func(error) {})
			for n := range warnings {
				w.warn(fmt.Sprintf("this is warning %d of many, and each one has some words", n))
			}
			require.LessOrEqual(t, w.words.size(), maxQueued)
			closed := make(chan error, 1)
			go func() {
				closed <- w.close()
				to.Close()
			}()
			content, err := io.ReadAll(from)
			require.NoError(t, err)
			require.NoError(t, <-closed)
			written, left := strings.Count(string(content), "this is warning"), 0
			for _, m := range regexp.MustCompile(`(\d+) warnings? dropped: the reader of the output was too slow`).FindAllStringSubmatch(string(content), -1) {
				n, err := strconv.Atoi(m[1])
				require.NoError(t, err)
				left += n
			}
			require.Positive(t, left)
			require.Equal(t, warnings, written+left)
		})
	}
}
