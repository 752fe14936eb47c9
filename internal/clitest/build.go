package clitest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"reframe/internal/livetest"
)

// Binary is the path of the program, built as a release is, in a directory that all users may read: some tests run it as another user.
var Binary string

// Main builds the program, runs the tests of a package with it, and returns their exit status. Each package's TestMain calls it.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reframe-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("JITDUMPDIR", dir) // where MCJIT's perf listener writes what is gone with it (livetest's processes have their own)
	Binary = filepath.Join(dir, "reframe")
	if err := build(dir, Binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds the program into the cache of the tests and copies it. Packages that run at the same time wait for one build, and the go command links
// nothing again that is up to date. A later build, of changed sources, does not change the copy.
func build(dir, program string) error {
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask is
		return err
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	cache := filepath.Join(livetest.CacheRoot(), fmt.Sprintf("%x", sha256.Sum256(root))[:32])
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	built := filepath.Join(cache, "reframe")
	c := exec.Command("go", "build", "-o", built, "reframe/cmd/reframe")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, out)
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	if err := os.WriteFile(program, content, 0o755); err != nil {
		return err
	}
	return os.Chmod(program, 0o755)
}
