package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/test/livetest"
)

// TestBriefLook requires that a process is not held while layouts run, and that their frames have the values from pointers that they follow.
func TestBriefLook(t *testing.T) {
	p := livetest.Lli(t, 19, "vmsimple.ll", "mcjit")
	k := inputs{pid: p.PID, mute: true, Inputs: flags.Inputs{Modules: []string{p.IR}, Layouts: []string{"simple"}}}
	a := &app{stdout: os.Stdout, stderr: os.Stderr}
	o, err := k.options(a)
	require.NoError(t, err)
	target, view, err := k.lookBriefly(t.Context(), a, o)
	require.NoError(t, err)
	require.NotNil(t, target)
	defer target.Close()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	require.NoError(t, err)
	require.NotContains(t, string(stat[bytes.LastIndexByte(stat, ')'):]), " t ", "it is stopped by a tracer")
	var methods []string
	for _, f := range view.Threads[0].Frames {
		if f.VM != nil {
			for _, vm := range f.VM.Frames {
				methods = append(methods, vm.Method)
				require.Empty(t, vm.Reason)
			}
		}
	}
	require.Equal(t, "Foo.bar Foo.main", strings.Join(methods, " "))
}
