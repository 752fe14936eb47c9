package regex_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/interp/internal/regex"
	"reframe/internal/livetest"
)

var unbounded = regex.Budget{Steps: func(int) error { return nil }, Bytes: func(int) error { return nil }}

// answer is a line of pairs.c without its question.
func answer(flags, match, want, from int, pattern, subject []byte) string {
	p, _, err := regex.Compile(pattern, regex.Flags(flags), unbounded)
	var code regex.Error
	switch {
	case errors.As(err, &code):
		return fmt.Sprint(-int(code))
	case err != nil:
		return err.Error()
	}
	spans, found, err := p.Match(subject, from, want, regex.MatchFlags(match&3), unbounded)
	text := fmt.Sprint(p.Groups)
	switch {
	case err != nil: // glibc does not come to an end
		return text + " hangs"
	case !found:
		return text + " no"
	case flags&int(regex.NoSub) != 0:
		return text
	}
	for k := range want {
		s := regex.Span{From: -1, To: -1}
		if k < len(spans) {
			s = spans[k]
		}
		text += fmt.Sprintf(" %d,%d", s.From, s.To)
	}
	return text
}

// Random expressions and subjects, with all flags, are compiled, refused and matched as by the C library of this machine.
func TestRandomExpressionsAreAsInGlibc(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pairs")
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	built, err := exec.CommandContext(ctx, "gcc", "-O1", "-o", program, "testdata/pairs.c").CombinedOutput()
	require.NoError(t, err, "%s", built)
	seeds, count := 1, 0
	if os.Getenv("FIDELITY") == "all" {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { count += sameAsGlibc(t, program, seed) })
	}
	t.Logf("%d pairs", count)
	require.Greater(t, count, 5000*seeds)
}

// sameAsGlibc asks the program for thousands of answers, and returns how many.
func sameAsGlibc(t *testing.T, program string, seed int) int {
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, fmt.Sprint(seed), "3000").Output()
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(out))
	count := 0
	for lines.Scan() {
		var flags, match, want, from int
		var pattern, subject string
		words := strings.SplitN(lines.Text(), " ", 7)
		_, err := fmt.Sscan(strings.Join(words[:6], " "), &flags, &match, &want, &from, &pattern, &subject)
		require.NoError(t, err)
		p, err := hex.DecodeString(pattern[1:])
		require.NoError(t, err)
		s, err := hex.DecodeString(subject[1:])
		require.NoError(t, err)
		count++
		require.Equal(t, words[6], answer(flags, match, want, from, p, s), "pair %d: flags %d, %d; %d spans from %d of %q in %q", count, flags, match, want, from, p, s)
	}
	require.NoError(t, lines.Err())
	require.NotZero(t, count)
	return count
}

// FuzzExpressions requires that arbitrary expressions end within a budget and never panic.
func FuzzExpressions(f *testing.F) {
	for _, e := range []string{"a", "(a|b*){2,3}$", "[[:alpha:]-z]", "\\(^*a\\|\\)\\{,3\\}", "((((^)*\\<)*\\b)*$)*", "[[.", "\\", "a{1", "(^.|)+a"} {
		f.Add([]byte(e), []byte("ab\nA z"), uint8(1))
	}
	errSpent := errors.New("spent")
	f.Fuzz(func(t *testing.T, pattern, subject []byte, flags uint8) {
		left := 1 << 20
		spend := func(n int) error {
			if left -= n; left < 0 {
				return errSpent
			}
			return nil
		}
		budget := regex.Budget{Steps: spend, Bytes: spend}
		p, _, err := regex.Compile(pattern, regex.Flags(flags&15), budget)
		if err != nil {
			return
		}
		spans, found, err := p.Match(subject, 0, p.Groups+1, regex.MatchFlags(flags>>4&3), budget)
		if err != nil || !found {
			return
		}
		for _, s := range spans {
			require.True(t, s.From >= -1 && s.From <= len(subject) && s.To >= -1 && s.To <= len(subject), "%v", spans)
		}
	})
}
