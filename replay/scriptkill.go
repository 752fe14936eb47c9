package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// kill kills a process if its initial environment, at the given path of /proc/PID/environ, contains a variable. It opens the process before it reads
// the file, so that it cannot kill a later process with the same number.
func kill(path, variable string) (is bool) {
	pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
	if err != nil || pid == os.Getpid() {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	text, err := os.ReadFile(path) // empty if the process has ended
	if err != nil || !slices.ContainsFunc(bytes.Split(text, []byte{0}), func(v []byte) bool { return string(v) == variable }) {
		return false
	}
	_ = p.Kill() // an error means that the process has ended
	return true
}
