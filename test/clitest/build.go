package clitest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"example.com/reframe/test/livetest"
)

// program is the path of the built program.
var program string

// Binary returns the path of the program, built like a release, in a directory that all users may read: some tests run the program as another user.
func Binary() string {
	dependOnSources()
	return program
}

// Main builds the program, runs the tests of a package with it, and returns their exit status. Each package's TestMain calls it.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reframe-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("JITDUMPDIR", dir) // MCJIT's perf listener writes here; dir is removed at the end (livetest's processes use other directories)
	program = filepath.Join(dir, "reframe")
	if err := build(dir, program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// dependOnSources makes the go command's cached results of these tests depend on the sources of the program, which the tests do not import. The go
// command repeats a test if a file of the module that the test has inspected changes (go help test).
var dependOnSources = sync.OnceFunc(func() {
	const files = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{end}}{{end}}`
	list, err := exec.Command("go", "list", "-deps", "-f", files, "example.com/reframe/cmd/reframe").Output()
	if err != nil {
		panic(fmt.Errorf("go list -deps: %w", err)) // unexpected: the program was built just before
	}
	for path := range strings.Lines(string(list)) {
		_, _ = os.Stat(strings.TrimSuffix(path, "\n")) // if the file has been removed since, the go command treats it as changed
	}
})

// build builds the program into the tests' cache and copies it to path. Packages that run at the same time wait for one build, and the go command
// does not link an up-to-date program again. A later build of changed sources does not change the copy.
func build(dir, path string) error {
	if err := os.Chmod(dir, 0o755); err != nil { // set it explicitly, so that it does not depend on the umask
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
	c := exec.Command("go", "build", "-trimpath", "-o", built, "example.com/reframe/cmd/reframe")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, out)
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}
