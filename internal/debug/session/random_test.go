package session_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestBothOfRandomPrograms requires that both sides take the same path through each activation, and return the same results, in random programs with
// stackmaps of all live values in each block. The test is slow.
func TestBothOfRandomPrograms(t *testing.T) {
	livetest.Slow(t)
	total, said := 0, 0
	for _, p := range []struct {
		frametest.Everywhere
		code string
	}{
		{frametest.Compiled(3, 19, "-O0", 19), "-O0"}, {frametest.Compiled(7, 19, "-O1", 22), "-O1"}, {frametest.Compiled(9, 19, "-O2", 22), "-O3"},
		{frametest.Compiled(15, 19, "-O1", 22), "-O2"}, {frametest.Compiled(59, 14, "-O0", 16), "-O2"},
	} {
		t.Run(p.String()+" "+p.code, func(t *testing.T) {
			program, m := p.WithSites(t, livetest.Csmith(t, p.Seed), p.code)
			pairs, returned, reasons := 0, 0, map[string]int{}
			for skip := 0; skip < livetest.Times(150, 3000); skip += 1 + skip {
				s := begin(t, program, m)
				_, err := s.Break(session.Breakpoint{ExitFilter: trace.ExitFilter{Function: frametest.Pattern(names.Loose, "^func_")}})
				require.NoError(t, err)
				stop := session.Stop{}
				for n := 0; n <= skip && stop.Why != session.Ended; n++ {
					stop, err = s.Continue(t.Context())
					require.NoError(t, err)
				}
				for n := 0; n < livetest.Times(60, 600) && stop.Why != session.Ended; n++ {
					if _, err := s.Resume(); err != nil { // some sites do not record all values that the interpreter needs
						stop, err = s.Continue(t.Context())
						require.NoError(t, err)
						continue
					}
					p, err := s.Both(t.Context())
					require.NoError(t, err)
					require.False(t, p.Differs, "%+v", s.Diff())
					pairs++
					if reasons[p.Why]++; p.Returned {
						returned++
					}
					if p.Returned || p.Why != "" {
						stop, err = s.Continue(t.Context())
						require.NoError(t, err)
					}
				}
			}
			total, said = total+pairs, said+reasons[""]
			t.Logf("%d pairs, %d of them returns", pairs, returned)
			for _, why := range slices.Sorted(maps.Keys(reasons)) {
				t.Logf("%6d %s", reasons[why], why)
			}
		})
	}
	require.Greater(t, total, 500)
	require.Greater(t, said, total*9/10)
}

// begin starts a session with a program.
func begin(t *testing.T, command []string, m *ir.Module) *session.Session {
	t.Helper()
	p, err := ptrace.LaunchWith(context.Background(), command, ptrace.LaunchOptions{Stdout: "/dev/null"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill(false)) })
	return session.OfProcess(p, session.Config{Options: deopt.Options{Modules: []*ir.Module{m}}, Warn: func(text string) { t.Log(text) }})
}

var (
	operation  = regexp.MustCompile(`= (add|sub|mul|xor|or|and)( nsw| nuw)* (i\d+) `)
	comparison = regexp.MustCompile(`= icmp (eq|ne|slt|sge|ult|uge|sgt|sle) `)
	instead    = map[string]string{"add": "sub", "sub": "add", "mul": "add", "xor": "or", "or": "and", "and": "or",
		"eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "ult": "uge", "uge": "ult", "sgt": "sle", "sle": "sgt"}
)

// A randomMutant is a line of a function with another operation or comparison.
type randomMutant struct {
	function string
	line     int // from 0
	text     string
}

// randomMutants lists the mutants of a program's functions, always in the same order.
func randomMutants(lines []string) (list []randomMutant) {
	function := ""
	for n, line := range lines {
		if strings.HasPrefix(line, "define") {
			_, function, _ = strings.Cut(line, "@")
			function, _, _ = strings.Cut(function, "(")
		}
		if !strings.HasPrefix(function, "func_") {
			continue
		}
		if m := operation.FindStringSubmatch(line); m != nil {
			list = append(list, randomMutant{function, n, strings.Replace(line, m[0], "= "+instead[m[1]]+" "+m[3]+" ", 1)})
		} else if m := comparison.FindStringSubmatch(line); m != nil {
			list = append(list, randomMutant{function, n, strings.Replace(line, m[0], "= icmp "+instead[m[1]]+" ", 1)})
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	return list
}

// TestBisectOfRandomPrograms requires that Bisect names the changed instruction of a random program whose module has another operation or comparison
// than the compiled one. The test is slow.
func TestBisectOfRandomPrograms(t *testing.T) {
	livetest.Slow(t)
	counts := map[string]int{}
	for _, p := range []struct {
		frametest.Everywhere
		code string
	}{
		{frametest.Compiled(7, 19, "-O1", 22), "-O1"}, {frametest.Compiled(9, 19, "-O2", 22), "-O3"}, {frametest.Compiled(15, 19, "-O1", 22), "-O2"},
	} {
		source := livetest.Csmith(t, p.Seed)
		program, _ := p.WithSites(t, source, p.code)
		text, err := os.ReadFile(filepath.Join(filepath.Dir(source), "p.ll"))
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		all := randomMutants(lines)
		for _, c := range all[:min(len(all), livetest.Times(12, len(all)))] {
			t.Run(fmt.Sprintf("%v %s line %d", p, p.code, c.line+1), func(t *testing.T) {
				changed := slices.Clone(lines)
				changed[c.line] = c.text
				m, err := ir.Parse("p.ll", []byte(strings.Join(changed, "\n")))
				require.NoError(t, err)
				s := begin(t, program, m)
				_, err = s.Break(session.Breakpoint{ExitFilter: trace.ExitFilter{Function: frametest.Pattern(names.Exact, c.function)}})
				require.NoError(t, err)
				stop, err := s.Continue(t.Context())
				require.NoError(t, err)
				if stop.Why == session.Ended {
					counts["it never runs"]++
					return
				}
				got, err := s.Bisect(t.Context())
				require.NoError(t, err)
				if got.Why != "" {
					t.Log(got.Why)
					counts["it cannot be told"]++
					return
				}
				counts[got.By.String()]++
				if got.By != session.Agreed {
					require.Contains(t, texts(got.Suspects...), strings.TrimSpace(c.text), "%v: %v", got.By, texts(got.Instr))
					counts["parted"]++
				}
			})
		}
	}
	t.Log(counts)
	require.Greater(t, counts["parted"], 8)
}
