//go:build linux

package tracer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestUntimedFutex requires that waits without a timeout are recognized in the kernel's reports of threads that waited in glibc 2.36. The numbers of
// the system calls, which depend on the architecture, are replaced.
func TestUntimedFutex(t *testing.T) {
	for text, want := range map[string]struct {
		at             uint64
		private, waits bool
	}{
		fmt.Sprint(unix.SYS_FUTEX, " 0x5581a0c04068 0x189 0x0 0x0 0x0 0xffffffff 0x7f1fd97fada0 0x7f1fe088fe96\n"):            {0x5581a0c04068, true, true},  // pthread_cond_wait
		fmt.Sprint(unix.SYS_FUTEX, " 0x5581a0c04040 0x80 0x2 0x0 0x0 0x0 0x7f1fd97fad50 0x7f1fe0892f20\n"):                    {0x5581a0c04040, true, true},  // pthread_mutex_lock
		fmt.Sprint(unix.SYS_FUTEX, " 0x5581a0c04068 0x189 0x0 0x7ffd0a 0x0 0xffffffff 0x7f1fd97fada0 0x7f1fe088fe96\n"):       {0x5581a0c04068, true, false}, // pthread_cond_timedwait
		fmt.Sprint(unix.SYS_FUTEX, " 0x7f1fd97fb910 0x109 0x1a2b 0x0 0x0 0xffffffff 0x7ffd0aa51230 0x7f1fe088fe96\n"):         {0x7f1fd97fb910, false, true}, // pthread_join
		fmt.Sprint(unix.SYS_FUTEX, " 0x5581a0c04068 0x10000000000189 0x0 0x0 0x0 0xffffffff 0x7f1fd97fada0 0x7f1fe088fe96\n"): {0x5581a0c04068, true, true},  // an int has 32 bits
		// The call wakes other threads.
		fmt.Sprint(unix.SYS_FUTEX, " 0x5581a0c04068 0x81 0x1 0x0 0x0 0x0 0x7f1fd97fada0 0x7f1fe088fe96\n"): {},
		fmt.Sprint(unix.SYS_NANOSLEEP, " 0x189 0x189 0x0 0x0 0x0 0x0 0x7f1fd97fada0 0x7f1fe088fe96\n"):     {},
		fmt.Sprint(unix.SYS_FUTEX, " 0x189 x 0x0 0x0\n"):                                                   {}, "running\n": {}, "-1 0x7f1fd97fada0 0x7f1fe088fe96\n": {}, "": {},
	} {
		at, private, waits := untimedFutex(text)
		require.Equal(t, want, struct {
			at             uint64
			private, waits bool
		}{at, private, waits}, text)
	}
}
