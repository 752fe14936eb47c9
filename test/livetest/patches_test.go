package livetest

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPatches requires that a thread which reaches a patched site enters the runtime and continues, and that results do not change.
func TestPatches(t *testing.T) {
	for _, how := range []string{"aot", "aot-large", "mcjit", "orc"} {
		for _, version := range []int{14, 19, 22} {
			t.Run(fmt.Sprintf("llvm-%d %s", version, how), func(t *testing.T) {
				p := StartPatches(t, version, how, 4)
				for _, kind := range []string{"rel32", "mem", "reg", "rax", "stub", "push", "indirect"} {
					// The records are s16, p16 and g16, by their index in the table.
					p.Do(t, fmt.Sprintf("patch 3 %s n 1 18 %s n 3 25 %s n 2", kind, kind, kind))
					lines := p.Do(t, "land 0 3 p", "land 1 18 p", "land 2 25 p", "land 3 7 o", "wait")[4:]
					require.Len(t, lines, 4)
					for n, function := range []string{"p s16 116", "p p16 216", "p g16 316", "o call_in -1"} {
						require.Regexp(t, fmt.Sprintf(`^landed %d \d+ %s `, n, function), lines[n])
					}
					p.Do(t, "release", "restore")
				}
				require.Regexp(t, `^runs [1-9]\d* calls [1-9]\d* wrong 0$`, p.Do(t, "quit")[0])
				require.NoError(t, p.Wait())
			})
		}
	}
}

// TestPatchesAtRandom requires that the program, run without commands, makes the given number of patches.
func TestPatchesAtRandom(t *testing.T) {
	out, err := PatchesCommand(t, 19, "aot", "16", "1", "500").Output()
	if exit, ok := err.(*exec.ExitError); ok {
		require.NoError(t, err, "%s", exit.Stderr)
	}
	require.NoError(t, err)
	require.Regexp(t, `^ready\n(record \d+ [1-9]\d*\n){10,}wrong 0\ndone\n$`, string(out))
}
