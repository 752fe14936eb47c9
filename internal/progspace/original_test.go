package progspace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// held returns the code of a process, which stays stopped.
func held(t *testing.T, p *livetest.Process) *Space {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{Hold: true})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	return New(target)
}

// unwritten compares all code that has records in an unpatched process with the original, and returns the numbers of known and of relocated bytes.
func unwritten(t *testing.T, space *Space) (known, relocated int) {
	t.Helper()
	space.Target.ReadObjects()
	for _, c := range space.WithRecords() {
		if c.Image == nil {
			continue
		}
		for _, s := range c.Image.Code() {
			for at := s.Loaded(); s.Contains(at); {
				w, err := space.Original(at, 4096)
				require.NoError(t, err)
				require.Equal(t, 0, w.Differing(w.Start, w.End()), "%s %s at %v", c.Name, s.Name, at)
				for _, fixed := range w.fixed {
					if fixed {
						known++
					} else {
						relocated++
					}
				}
				at = w.End()
			}
		}
	}
	return known, relocated
}

// TestOriginalIsWhatRuns requires that unpatched code equals its file or its registered object, except for the relocated bytes.
func TestOriginalIsWhatRuns(t *testing.T) {
	for _, version := range []int{14, 19, 22} {
		for _, kind := range []string{"mcjit", "orc"} {
			t.Run(fmt.Sprintf("lli-%d %s", version, kind), func(t *testing.T) {
				p := livetest.Lli(t, version, "jit_pp.ll", kind)
				known, relocated := unwritten(t, held(t, p))
				require.Greater(t, known, 200)
				require.Greater(t, relocated, 8)
			})
		}
		// The target of a patchpoint is an address in its code, which the dynamic linker fills in if the program may be loaded anywhere.
		for flag, want := range map[string]int{"-no-pie": 0, "-pie": 8} {
			t.Run(fmt.Sprintf("llc-%d %s", version, flag), func(t *testing.T) {
				p := livetest.Linked(t, version, "jit_pp.ll", flag)
				known, relocated := unwritten(t, held(t, p))
				require.Greater(t, known, 200)
				require.Equal(t, want, relocated)
			})
		}
	}
}

// relocatedText is a library whose code the dynamic linker relocates: an instruction contains one of its own addresses.
const relocatedText = `
	.text
	.globl work
	.type work, @function
work:
	movabs $answer, %rax
	movl (%rax), %eax
	ret
	.size work, .-work
	.data
answer:
	.long 42
	.section .llvm_stackmaps,"a"
__LLVM_StackMaps:
	.byte 3, 0
	.short 0
	.long 1, 0, 1
	.quad work, 8, 1
	.quad 7
	.long 10
	.short 0, 0
	.balign 8
	.short 0, 0
	.balign 8
	.section .note.GNU-stack,"",@progbits
`

const callsWork = `
#include <stdio.h>
#include <unistd.h>
int work(void);
int main(void) { printf("%d\nready\n", work()); fflush(stdout); for (;;) pause(); }
`

// TestOriginalOfRelocatedText requires that the dynamic linker's relocations of code are not reported as changes, and that the program's own writes
// next to them are.
func TestOriginalOfRelocatedText(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	library, program := filepath.Join(dir, "libwork.so"), filepath.Join(dir, "program")
	for _, args := range [][]string{
		{"-shared", "-Wl,-z,notext", "-o", library, put("work.s", relocatedText)},
		{"-O1", "-o", program, put("main.c", callsWork), library, "-Wl,-rpath," + dir},
	} {
		out, err := exec.Command(livetest.Tool(t, "gcc"), args...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	p := livetest.Program(t, program)
	space := held(t, p)
	known, relocated := unwritten(t, space)
	require.Equal(t, 8, relocated)
	require.Positive(t, known)

	work, ok := space.Target.FindSymbol("work")
	require.True(t, ok)
	w, err := space.Original(work.Addr, 13)
	require.NoError(t, err)
	require.Equal(t, library, w.Of)
	require.Equal(t, []byte{0x48, 0xb8}, w.Was[:2])
	require.NotEqual(t, w.Was[2:10], w.Now[2:10], "the address of answer, which is not the file's")
	require.False(t, w.Differs(work.Addr+2))
	w.Now[0] = 0xcc
	require.True(t, w.Differs(work.Addr))
	require.Equal(t, 1, w.Differing(work.Addr-5, work.Addr+50))
}

// TestOriginalOfUnknownCode requires an error for code that is in no file and no registered object.
func TestOriginalOfUnknownCode(t *testing.T) {
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	space := held(t, p)
	_, err := space.Original(machine.Addr(0x1000), 16)
	require.EqualError(t, err, "the compiled code at 0x1000 is unknown: it is in no file and no registered object")
	for _, m := range space.Target.Modules {
		if m.Virtual() {
			_, err := space.Original(m.Image.Code()[0].Loaded(), 16)
			require.EqualError(t, err, "the compiled code of [vdso] is unknown: it has no file")
			return
		}
	}
	require.Fail(t, "no vdso")
}
