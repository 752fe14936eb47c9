package ptrace

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/test/livetest"
)

// refusing is the control of a debugger that refuses to remove breakpoints at even addresses.
type refusing struct{ holder.Control }

var errRefused = errors.New("refused")

func (refusing) Remove(a machine.Addr) error {
	if a%2 == 0 {
		return errRefused
	}
	return nil
}

func (refusing) Disconnect() error { return nil }

// TestKillAfterEndOfHeldProcess requires that Kill does not kill the local process with the same number, if the session's process, which is on
// another machine, has ended.
func TestKillAfterEndOfHeldProcess(t *testing.T) {
	livetest.NeedsTools(t)
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	d := &debugger{control: refusing{}, ended: true}
	s := newSession(c.Process.Pid, d)
	s.held, s.ended = d, true
	require.NoError(t, s.Kill(false))
	require.NoError(t, in.Close())
	require.NoError(t, c.Wait())
}

// TestRemoveTriesAll requires that, if the debugger cannot remove one breakpoint, the others are still removed, and that the session still knows the
// breakpoint.
func TestRemoveTriesAll(t *testing.T) {
	d := &debugger{control: refusing{}, breakpoints: map[machine.Addr]*heldBreakpoint{2: {}, 3: {}, 4: {}, 5: {}}}
	require.ErrorIs(t, d.remove([]uint64{2, 3, 4, 5}), errRefused)
	require.Len(t, d.breakpoints, 2)
	require.Contains(t, d.breakpoints, machine.Addr(2))
	require.Contains(t, d.breakpoints, machine.Addr(4))
}
