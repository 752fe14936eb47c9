package fidelity_test

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// llvmTests lists the modules of LLVM 19's tests under the directory below, with paths relative to it. scripts/sources.sh fetches them.
func llvmTests(t *testing.T, below string) (dir string, files []string) {
	t.Helper()
	dir = livetest.DebianSource(t, "llvm-tests-19")
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, below), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(path, ".ll") {
			files = append(files, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return dir, files
}

// inParallel calls do for each file, for several files at a time.
func inParallel(files []string, do func(file string)) {
	var all sync.WaitGroup
	next := make(chan string)
	for range runtime.NumCPU() {
		all.Go(func() {
			for file := range next {
				do(file)
			}
		})
	}
	for _, file := range files {
		next <- file
	}
	close(next)
	all.Wait()
}

// TestModulesOfLLVMsTestsAreRead requires that the IR reader reads each module of LLVM 19's tests that llvm-as 19 accepts. llvm-as is run on those
// that the reader rejects.
func TestModulesOfLLVMsTestsAreRead(t *testing.T) {
	livetest.OnlyWhole(t)
	dir, files := llvmTests(t, "")
	require.Greater(t, len(files), 30000)
	as := livetest.LLVM(t, 19, "llvm-as")
	var mu sync.Mutex
	read, refused := 0, map[string]string{}
	inParallel(files, func(file string) {
		path := filepath.Join(dir, file)
		_, err := ir.ParseFile(path)
		accepted := false
		if err != nil {
			ctx, stop := context.WithTimeout(t.Context(), livetest.Patience)
			defer stop()
			accepted = exec.CommandContext(ctx, as, "-o", "/dev/null", path).Run() == nil
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			read++
		case accepted:
			refused[file] = err.Error()
		}
	})
	t.Logf("%d files, of which the reader reads %d and llvm-as accepts %d of the others", len(files), read, len(refused))
	require.Greater(t, read, 25000)
	require.Empty(t, refused)
}

// otherThanLLI lists programs of LLVM's tests whose result in the interpreter differs from lli's, with the reason.
var otherThanLLI = map[string]string{
	"ExecutionEngine/Orc/global-ctor-order.ll": "MCJIT goes by the order of the list; ORC and programs ahead of time go by priorities, as the language does",
}

// TestProgramsOfLLVMsTestsAreAsInLLI requires that the programs in LLVM 19's tests of its execution engine have the same output and exit status as in
// lli 19.
func TestProgramsOfLLVMsTestsAreAsInLLI(t *testing.T) {
	livetest.OnlyWhole(t)
	dir, files := llvmTests(t, "ExecutionEngine")
	same, other := 0, map[string]string{}
	for _, file := range files {
		path := filepath.Join(dir, file)
		m, err := ir.ParseFile(path)
		if err != nil || m.Func("main") == nil || m.Func("main").Declared() {
			continue
		}
		want, ended := inLLI(t, path)
		if !ended {
			continue
		}
		got, err := mainOf(t, m, path)
		switch {
		case err != nil:
			other[file] = err.Error()
		case got != want:
			other[file] = fmt.Sprintf("%+v in place of %+v", got, want)
		default:
			same++
		}
	}
	t.Logf("%d programs are the same, %d are not", same, len(other))
	for file, why := range other {
		if _, known := otherThanLLI[file]; !known {
			t.Errorf("%s: %s", file, why)
		}
	}
	require.Greater(t, same, 90)
}

// inLLI runs a program in lli 19, with an empty environment. ended is false if a signal or the time limit ended it: the program needs another
// library, target or option.
func inLLI(t *testing.T, path string) (o outcome, ended bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second) // on a slow machine, programs that exceed the limit are skipped
	defer stop()
	c := exec.CommandContext(ctx, livetest.LLVM(t, 19, "lli"), "-jit-kind=mcjit", path)
	c.Env = []string{}
	out, err := c.Output()
	if c.ProcessState == nil || !c.ProcessState.Exited() {
		t.Logf("%s: lli: %v", path, err)
		return o, false
	}
	return outcome{Output: string(out), Status: c.ProcessState.ExitCode()}, true
}

// mainOf runs a program in the interpreter.
func mainOf(t *testing.T, m *ir.Module, path string) (outcome, error) {
	t.Helper()
	in, err := interp.New(m, interp.Options{MaxSteps: 1e8})
	if err != nil {
		return outcome{}, err
	}
	res, err := in.Main(t.Context(), []string{path})
	if err != nil {
		return outcome{}, err
	}
	out := outcome{Output: res.Output}
	if res.ExitCode != nil {
		out.Status = *res.ExitCode & 0xff
		return out, nil
	}
	v, _ := res.Value.Uint() // 0 for void, as in lli
	out.Status = int(v & 0xff)
	return out, nil
}
