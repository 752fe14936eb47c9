package livetest

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlainPrograms(t *testing.T) {
	p := C(t, "nojit.c", nil)
	require.True(t, p.paused())
	class := func(p *Process) elf.Class {
		f, err := elf.Open(fmt.Sprintf("/proc/%d/exe", p.PID))
		require.NoError(t, err)
		defer f.Close()
		return f.Class
	}
	require.Equal(t, elf.ELFCLASS64, class(p))
	if !Runs32Bit(t) {
		return
	}
	p = C(t, "bits32.c", []string{"-m32", "-nostdlib", "-static"})
	require.Equal(t, elf.ELFCLASS32, class(p))
	require.True(t, p.Alive())
}

func TestCorrupt(t *testing.T) {
	for _, how := range []string{"loop", "wild", "wildfile", "hugesize", "badmagic", "truncated"} {
		p := C(t, "corrupt.c", nil, how)
		require.True(t, p.paused(), how)
	}
}

func TestThreads(t *testing.T) {
	p := C(t, "threads.c", nil, "3", "1", "4", "1")
	require.True(t, p.paused())
	// Up to four threads belong to the churner. The others and the main thread continue to exist.
	tasks := p.tasks(t)
	require.GreaterOrEqual(t, len(tasks), 1+3+1+4+1)
	require.LessOrEqual(t, len(tasks), 1+3+1+4+1+4)
	p.await(t, "three threads sleep and four wait", func() bool {
		kinds := make(map[string]int)
		for _, task := range p.tasks(t) {
			text, _ := os.ReadFile(filepath.Join(task, "syscall")) // the thread may have ended
			number, _, _ := strings.Cut(string(text), " ")
			kinds[number]++
		}
		asleep := kinds[fmt.Sprint(syscall.SYS_NANOSLEEP)] + kinds[fmt.Sprint(syscall.SYS_CLOCK_NANOSLEEP)]
		return asleep == 3 && kinds[fmt.Sprint(syscall.SYS_FUTEX)] >= 4 // pthread_join of the churner also waits on a futex
	})

	// SIGSTOP and SIGCONT restart sleeping system calls. None may report an interruption.
	p.Signal(t, syscall.SIGSTOP)
	p.Signal(t, syscall.SIGCONT)
	time.Sleep(20 * time.Millisecond) // enough time for an interruption to be reported; a slow machine may miss a failure, but never fails wrongly
	require.Equal(t, "ready\n", p.Output())
	require.True(t, p.Alive())
}

func (p *Process) tasks(t *testing.T) []string {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.PID))
	require.NoError(t, err)
	return tasks
}

// TestClock requires that the clock shows a stop of the process as a gap of the same length, and reports each gap once.
func TestClock(t *testing.T) {
	Slow(t)
	p := C(t, "clock.c", nil, "1", "63")
	require.Len(t, p.tasks(t), 65)
	p.Freeze(t)
	const while = time.Second // on a slow machine the gap is longer
	time.Sleep(while)
	p.Signal(t, syscall.SIGCONT)
	p.await(t, "it saw the gap", func() bool { return p.gap(t) >= while })
	p.await(t, "it has forgotten the gap", func() bool { return p.gap(t) < while })
}

// gap returns the largest gap that clock.c has seen since the last call.
func (p *Process) gap(t *testing.T) time.Duration {
	t.Helper()
	seen := len(p.Output())
	p.Signal(t, syscall.SIGUSR1)
	line := regexp.MustCompile(`gap (\d+)\n`)
	p.await(t, "it reports a gap", func() bool { return line.MatchString(p.Output()[seen:]) })
	ns, err := strconv.ParseInt(line.FindStringSubmatch(p.Output()[seen:])[1], 10, 64)
	require.NoError(t, err)
	return time.Duration(ns)
}

func TestManyObjects(t *testing.T) {
	p := ManyObjects(t, 20000)
	require.True(t, p.paused())
}

func TestObject(t *testing.T) {
	for version, programs := range map[int][]string{
		14: {"jit_pp.ll", "jit_sp.ll", "host_mod.ll"},
		16: {"jit_pp.ll", "jit_sp.ll", "deoptimize.ll", "sm_spill.ll", "dup.ll", "sp_push.ll", "pc_ret.ll"},
		19: {"jit_pp.ll", "jit_sp.ll", "deoptimize.ll", "sm_spill.ll", "dup.ll", "sp_push.ll", "pc_ret.ll"},
		22: {"jit_pp.ll", "jit_sp.ll", "deoptimize.ll", "sm_spill.ll", "dup.ll", "sp_push.ll", "pc_ret.ll"},
	} {
		for _, program := range programs {
			t.Run(fmt.Sprintf("%d/%s", version, program), func(t *testing.T) {
				f, err := elf.Open(Object(t, version, program))
				require.NoError(t, err)
				defer f.Close()
				require.NotNil(t, f.Section(".llvm_stackmaps"))
			})
		}
	}
}
