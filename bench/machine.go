package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/livetest"
)

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+`)

// describeMachine prints the number of CPUs, and the releases of Linux, Go and the tools, on which the figures depend. It also prints how to read the
// figures.
func (b *bench) describeMachine() {
	var system unix.Utsname
	require.NoError(b, unix.Uname(&system))
	release, _, _ := bytes.Cut(system.Release[:], []byte{0})
	facts := []string{fmt.Sprintf("%d CPUs", runtime.NumCPU()), "Linux " + string(release), runtime.Version()}
	for _, tool := range []string{"gdb", "eu-stack", "lli-19", "lli-22", "llvm-readobj-19", "llvm-readobj-22"} {
		text, err := exec.CommandContext(b.ctx, livetest.Tool(b, tool), "--version").Output()
		require.NoError(b, err, tool)
		version := versionNumber.Find(text)
		require.NotNil(b, version, "%s --version:\n%s", tool, text)
		facts = append(facts, tool+" "+string(version))
	}
	fmt.Println(strings.Join(facts, " · "))
	fmt.Println("Each figure: median (smallest to largest) of interleaved runs. Ratio: ours to the peer's.")
}
