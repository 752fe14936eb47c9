//go:build unix

package newfile

import (
	"os"
	"syscall"
)

// foreign reports whether another user owns a file.
func foreign(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) != os.Geteuid()
}
