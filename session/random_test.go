package session_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt"
	"reframe/deopt/frametest"
	"reframe/deopt/ir"
	"reframe/deopt/names"
	"reframe/deopt/trace"
	"reframe/internal/livetest"
	"reframe/ptrace"
	"reframe/session"
)

// In random programs, with all live values recorded in each block, both go the same way through activations of whichever functions, and come to the same. It is slow.
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
					if _, err := s.Resume(); err != nil { // not at each site all is handed over that the interpreter needs
						stop, err = s.Continue(t.Context())
						require.NoError(t, err)
						continue
					}
					p, err := s.Both(t.Context())
					require.NoError(t, err)
					require.False(t, p.Parted, "%+v", s.Diff())
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

// begin begins a session with a program.
func begin(t *testing.T, command []string, m *ir.Module) *session.Session {
	t.Helper()
	p, err := ptrace.LaunchWith(context.Background(), command, ptrace.LaunchOptions{Stdout: "/dev/null"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill(false)) })
	return session.OfProcess(p, session.Config{Options: deopt.Options{Modules: []*ir.Module{m}}, Warn: func(text string) { t.Log(text) }})
}
