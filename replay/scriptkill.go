package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// kill ends the process of a /proc/PID/environ if it holds a variable. The process is taken hold of before it is looked at, so
// that it is no other one of the same number.
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
	text, err := os.ReadFile(path) // of one that has ended it is empty
	if err != nil || !slices.ContainsFunc(bytes.Split(text, []byte{0}), func(v []byte) bool { return string(v) == variable }) {
		return false
	}
	_ = p.Kill() // an error means that it has ended
	return true
}
