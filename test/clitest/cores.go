package clitest

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// KernelCore writes a core with the kernel, or with gdb if the kernel may not write one.
func KernelCore(t *testing.T, p *livetest.Process) string {
	t.Helper()
	if path, can := livetest.KernelCore(t, p); can {
		return path
	}
	return livetest.Gcore(t, p)
}

// CoreAtExit returns a core of a process that is at the exit of deoptimize.ll, in LLVM 19's MCJIT.
func CoreAtExit(t *testing.T) string {
	t.Helper()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	path := filepath.Join(t.TempDir(), "exit.core")
	r := Run(t, "record", "-p", PID(p), "-o", path, "--ir", p.IR, "--layout", DeoptimizeLayout(t))
	require.Equal(t, 0, r.Code, r.Stderr)
	return path
}

// ReplayNames returns the flags that name the values in frames of deoptimize.ll.
func ReplayNames(t *testing.T) []string {
	t.Helper()
	return []string{"--ir", livetest.IR(t, 19, "deoptimize.ll"), "--layout", DeoptimizeLayout(t)}
}

// RecordedCore runs record on a process or a core, and returns the path of the new core.
func RecordedCore(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "exit.core")
	r := Run(t, append([]string{"record", "-o", path}, flags...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	return path
}

// SysrootOf returns a directory with the files that a core names, at their paths on the machine where it was written.
func SysrootOf(t *testing.T, core string) string {
	t.Helper()
	target, err := ptrace.OpenCore(core, ptrace.CoreOptions{})
	require.NoError(t, err)
	defer target.Close()
	root := t.TempDir()
	for _, m := range target.Modules {
		if m.Image == nil || !strings.HasPrefix(m.Path, "/") {
			continue
		}
		to := filepath.Join(root, m.Path)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		RunTool(t, "cp", "--reflink=auto", m.Path, to)
	}
	return root
}

// BuildID returns the build ID of a file, in hexadecimal digits.
func BuildID(t *testing.T, path string) string {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	section := f.Section(".note.gnu.build-id")
	require.NotNil(t, section)
	note, err := section.Data()
	require.NoError(t, err)
	return fmt.Sprintf("%x", note[16:])
}
