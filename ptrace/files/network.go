package files

import (
	"errors"
	"os"
	"runtime"
)

var errNetwork = errors.New("it is on another machine; give a local copy with --sysroot DIR")

// OpenNamed opens a regular file whose path a core contains. On Windows it does not open files of other machines ([OnNetwork]).
func OpenNamed(path string) (*os.File, error) {
	if runtime.GOOS == "windows" && OnNetwork(path) {
		return nil, errNetwork
	}
	return OpenRegular(path, 0)
}

// OnNetwork reports whether Windows would open a path on another machine or as a device: a path that begins with two separators (Microsoft, "File
// path formats on Windows systems"). Opening such a path sends the user's name and a proof of the password to that machine.
func OnNetwork(path string) bool {
	separator := func(n int) bool { return len(path) > n && (path[n] == '\\' || path[n] == '/') }
	return separator(0) && separator(1)
}
