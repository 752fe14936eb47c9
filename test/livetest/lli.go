package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lliKinds maps lli's ways of compiling and linking to its flags.
var lliKinds = map[string][]string{
	"mcjit":       {"-jit-kind=mcjit"},
	"orc":         {"-jit-kind=orc"}, // RuntimeDyld up to LLVM 16, JITLink from 19 on
	"orc-lazy":    {"-jit-kind=orc-lazy"},
	"orc-rtdyld":  {"-jit-kind=orc", "-jit-linker=rtdyld"},
	"orc-jitlink": {"-jit-kind=orc", "-jit-linker=jitlink"},
}

// Lli runs a program of testdata/programs (or, given an absolute path, any .ll file) under lli of an LLVM release, and returns when it waits in
// pause. Kinds are mcjit, orc, orc-lazy, orc-rtdyld and orc-jitlink. Further flags are passed to lli.
//
// opt's rewrite-statepoints-for-gc first transforms a module with a gc strategy. The IR of the returned Process is the module that lli gets.
func Lli(t testing.TB, version int, program, kind string, flags ...string) *Process {
	t.Helper()
	require.Contains(t, lliKinds, kind)
	ir := IR(t, version, program)
	p := start(t, lliCommand(t, version, ir, kind, flags...), inPause)
	p.IR = ir
	return p
}

// lliCommand returns the command with which lli runs a module. Arguments of the program may follow.
func lliCommand(t testing.TB, version int, ir, kind string, flags ...string) *exec.Cmd {
	t.Helper()
	args := append([]string{}, lliKinds[kind]...)
	if version == 14 && usesOpaquePointers(t, ir) {
		args = append(args, "-opaque-pointers") // the default from 15 on
	}
	cmd := exec.Command(LLVM(t, version, "lli"), append(append(args, flags...), ir)...)
	cmd.Env = append(cmd.Environ(), "JITDUMPDIR="+t.TempDir()) // MCJIT's perf listener writes a file there
	return cmd
}

// LliWords returns the first words of an lli command that another program starts. The files of MCJIT's perf listener are removed with the test, as
// for processes that livetest starts.
func LliWords(t testing.TB, version int) []string {
	t.Helper()
	return []string{Tool(t, "env"), "JITDUMPDIR=" + t.TempDir(), "LLVM_DISABLE_SYMBOLIZATION=1", LLVM(t, version, "lli")}
}

// IR returns the path of the module for an LLVM release. program is a program of testdata/programs, or the absolute path of any .ll file.
func IR(t testing.TB, version int, program string) string {
	t.Helper()
	path, failure := module(t, version, program)
	require.Empty(t, failure)
	return path
}

// module returns the path as IR does, or the reason why opt rejects the program.
func module(t testing.TB, version int, program string) (path, failure string) {
	t.Helper()
	path = program
	if !filepath.IsAbs(path) {
		path = Testdata(t, "programs", program)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	if !strings.Contains(string(text), ` gc "`) {
		return path, ""
	}
	return recipe{
		output: fmt.Sprintf("%s-llvm%d.ll", strings.TrimSuffix(filepath.Base(path), ".ll"), version),
		tool:   LLVM(t, version, "opt"),
		args:   []string{"-passes=rewrite-statepoints-for-gc", "-S", path},
		inputs: []string{path},
	}.make(t)
}

var (
	irComment     = regexp.MustCompile(`(?m);.*$|^source_filename.*$`) // a directory in the path may be named ptr
	opaquePointer = regexp.MustCompile(`\bptr\b`)
)

func usesOpaquePointers(t testing.TB, path string) bool {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return opaquePointer.Match(irComment.ReplaceAll(text, nil))
}
