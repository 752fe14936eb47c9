//go:build !linux

package ptrace

import (
	"os"
	"time"
)

// Here no process is looked at while it runs (needLive).
const nonblocking = 0

func ownerOf(os.FileInfo) (uid int, ok bool) { return -1, false }

func processStart(int) time.Time { return time.Time{} }
