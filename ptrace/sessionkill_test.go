package ptrace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
	"reframe/ptrace/guard"
)

// What the modes of sites.c print with a count of 2000.
var sitesOutput = map[string]string{
	"plain":   "ready\nplain 5999000\n",
	"threads": "ready\nthreads 1535984000\n",
	"fork":    "ready\nfork 6011800\n",
	"vfork":   "ready\nvfork 6002584\n",
	"exec":    "ready\nfirst half 5999000\nready\nplain 5999000\n",
	"signals": "ready\nsignals 5999000\n",
	"fault":   "ready\nfault 11998000\n",
	"end":     "ready\nleft 5999000\n",
	"come":    "ready\ncome 12287872000\n",
}

// eventually reads a file until it holds what is wanted.
func eventually(t *testing.T, read func() string, want string, about ...any) {
	t.Helper()
	for deadline := time.Now().Add(livetest.Patience); read() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			require.Equal(t, want, read(), about...)
		}
	}
}

// A program that is let go in the middle, wherever its threads stand, finishes as if nobody had watched.
func TestSessionDetach(t *testing.T) {
	path, site, faulty := sitesProgram(t, stepped)
	random := rand.New(rand.NewPCG(6, 1))
	for mode, want := range sitesOutput {
		for range 3 {
			after := 1 + random.IntN(2500)
			s, output := launch(t, path, mode, "2000")
			require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: after%2 == 0}, Breakpoint{Addr: faulty}))
			for range after {
				e, err := s.Next(context.Background())
				require.NoError(t, err)
				if e.Kind == Ended {
					break
				}
			}
			require.NoError(t, s.Detach())
			eventually(t, output, want, mode, after)
		}
	}
}

// TestSessionWatcher is no test by itself: it is the one who is killed by TestSessionKilled.
func TestSessionWatcher(t *testing.T) {
	command, site := os.Getenv("WATCHED"), os.Getenv("WATCHED_SITE")
	if command == "" {
		return
	}
	s, err := Launch(context.Background(), strings.Fields(command))
	require.NoError(t, err)
	var b Breakpoint
	_, err = fmt.Sscan(site, (*uint64)(&b.Addr))
	require.NoError(t, err)
	require.NoError(t, s.Insert(b))
	for {
		if e, err := s.Next(context.Background()); err != nil || e.Kind == Ended {
			return
		}
	}
}

// A program whose watcher is killed finishes as if nobody had watched.
func TestSessionKilled(t *testing.T) {
	path, site, _ := sitesProgram(t, stepped)
	random := rand.New(rand.NewPCG(6, 2))
	for mode, want := range sitesOutput {
		for range 3 {
			file := filepath.Join(t.TempDir(), "output")
			out, err := os.Create(file)
			require.NoError(t, err)
			cmd := exec.Command(os.Args[0], "-test.run", "^TestSessionWatcher$")
			cmd.Env = append(os.Environ(), "WATCHED="+path+" "+mode+" 2000", fmt.Sprintf("WATCHED_SITE=%d", uint64(site)))
			cmd.Stdout = out
			require.NoError(t, cmd.Start())
			out.Close()
			read := func() string {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				return strings.TrimSuffix(string(b), "PASS\n") // of a watcher that was faster
			}
			for read() == "" {
				time.Sleep(time.Millisecond) // and again, however slow it starts
			}
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // any moment, fast or slow
			require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
			_ = cmd.Wait() // killed, or done before
			eventually(t, read, want, mode)
		}
	}
}

// A guard that is killed leaves a process that runs, and bytes that are put back by whoever still can.
func TestSessionGuardKilled(t *testing.T) {
	path, _, faulty := sitesProgram(t)
	// The breakpoint is where the program does not come in this mode, so that it outlives the moment without a guard.
	s, output := launch(t, path, "plain", "2000000000")
	require.NoError(t, s.Insert(Breakpoint{Addr: faulty}))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond) // in which nothing happens, fast or slow
	defer cancel()
	_, err := s.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	code := func() byte {
		b, err := readAll(live(s.PID()), faulty, 1)
		require.NoError(t, err)
		return b[0]
	}
	require.Equal(t, guard.Trap[0], code())
	require.NoError(t, syscall.Kill(s.guard.PID(), syscall.SIGKILL))
	_, err = s.Next(context.Background())
	require.ErrorIs(t, err, guard.ErrKilled)
	require.ErrorContains(t, s.Detach(), "the guard process was killed: what lies under 1 breakpoints was put back")
	require.NotEqual(t, guard.Trap[0], code())
	eventually(t, output, "ready\nplain 5999999999000000000\n")
}
