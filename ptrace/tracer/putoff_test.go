//go:build linux

package tracer

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestValid requires that a postponed stop signal is dropped if SIGCONT arrived after it, and that SIGCONT is dropped if a stop signal arrived after
// it.
func TestValid(t *testing.T) {
	const usr, stop, cont = unix.SIGUSR1, unix.SIGTSTP, unix.SIGCONT
	type signals = []unix.Signal
	for _, c := range []struct{ waited, since, want signals }{
		{signals{usr, stop}, nil, signals{usr, stop}},
		{signals{stop}, signals{cont}, nil},
		{signals{usr, stop, usr}, signals{usr, cont}, signals{usr, usr}},
		{signals{stop, cont}, nil, signals{cont}},
		{signals{cont, stop}, nil, signals{stop}},
		{signals{cont}, signals{unix.SIGSTOP}, nil},
		{signals{cont}, signals{unix.SIGTTIN}, nil},
		{signals{cont, usr}, signals{unix.SIGTTOU}, signals{usr}},
		{signals{cont}, signals{cont, usr}, signals{cont}},
		{signals{stop}, signals{stop}, signals{stop}},
	} {
		var list []sigInfo
		for _, s := range c.waited {
			list = append(list, sigInfo{Signo: int32(s)})
		}
		var got signals
		for _, info := range valid(list, func() (mask uint64) {
			for _, s := range c.since {
				mask |= 1 << (s - 1)
			}
			return mask
		}) {
			got = append(got, unix.Signal(info.Signo))
		}
		require.Equal(t, c.want, got, "%v, since then %v", c.waited, c.since)
	}
}
