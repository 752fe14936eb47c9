package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// kill ends the process of a /proc/PID/environ if that holds a variable. It opens the process before it reads the file, so that it cannot end
// another process with the same number.
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
