package maps_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestInstrumentAndVerify requires that the module which instrument writes compiles, behaves the same, and that native code and the interpreter agree
// at each of its sites.
func TestInstrumentAndVerify(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for n, program := range []string{"tick.ll", "memory.ll", "recursion.ll", "floats.ll", "state.ll"} {
		for _, version := range livetest.ShareOf([]int{14, 16, 19, 22}, "instrument", n) {
			for _, level := range livetest.ShareOf([]string{"-O0", "-O1", "-O2", "-O3"}, "instrument", program) {
				checksum, _ := livetest.CVersion(t, program, livetest.ObjectHostOptions{Rounds: 2})
				path := filepath.Join(t.TempDir(), "probed.ll")
				r := clitest.Run(t, "instrument", livetest.IR(t, version, program), "-o", path, "--at", "blocks,calls,sites", "--id", "1000", "--llvm", "14", "--most", "10")
				require.Equal(t, 0, r.Code, r.Stderr)
				require.Empty(t, r.Stdout)
				require.Regexp(t, `(?m)^\S+`+strings.TrimSuffix(program, ".ll")+`\S*\.ll: \d+ sites in \d+ functions?, ids 1000 to 10\d\d, \d+ values$`, r.Stderr)
				r = clitest.Run(t, "lint", path)
				require.NotContains(t, r.Stdout, "not-compiled")
				object := filepath.Join(t.TempDir(), "probed.o")
				flags := []string{level, "-relocation-model=pic", "-filetype=obj", "-o", object, path}
				if version == 14 && program != "state.ll" { // state.ll has typed pointers: llc 14 crashes on statepoints with opaque pointers
					flags = append(flags, "-opaque-pointers")
				}
				out, err := exec.Command(livetest.LLVM(t, version, "llc"), flags...).CombinedOutput()
				require.NoError(t, err, "%s", out)
				host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
				r = clitest.Run(t, append([]string{"verify", "--ir", path, "--limit", "60", "--every", "3", "--"}, host...)...)
				// Status 1 means that a value was left out.
				require.Contains(t, []int{0, 1}, r.Code, "%s, LLVM %d %s: %s%s", program, version, level, r.Stdout, r.Stderr)
				require.Contains(t, r.Stdout, checksum)
				require.Regexp(t, `exits verified in .*: [1-9]\d* same, 0 different`, r.Stderr)
			}
		}
	}
}

// TestInstrumentSays requires that instrument names the first site at which values are omitted, and that it writes no file if no site is left.
func TestInstrumentSays(t *testing.T) {
	t.Parallel()
	module := clitest.TempFile(t, "m.ll", `declare void @g()
define i128 @f(i128 %n) {
  call void @g()
  ret i128 %n
}
define void @h(half %c) {
  br label %next
next:
  %x = fadd half %c, %c
  ret void
}
`)
	r := clitest.Run(t, "instrument", module, "--llvm", "14")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, 3, strings.Count(r.Stdout, "call void (i64, i32, ...) @llvm.experimental.stackmap("))
	require.Equal(t, module+`: 3 sites in 2 functions, ids 1 to 3, 0 values
3 sites without a value that is live there: a frame at one cannot be resumed
left out: 1 value, i128 crashes the code generator; the first: %n of @f, `+module+`:3
left out: 2 values, half crashes the code generator of LLVM 14; the first: %c of @h, `+module+`:7
`, r.Stderr)

	output := filepath.Join(t.TempDir(), "out.ll")
	for args, want := range map[string]string{
		"--function nosuch":            "no place for a site in the functions of --function nosuch",
		"--function f$ --complete":     "no place for a site in the functions of --function f$",
		"--at sites":                   "no place for a site",
		"--id 18446744073709551615":    "no ids are left",
		"--at calls --function /^h$/":  "no place for a site",
		"--at calls --llvm 22 -o /x/y": "/x",
	} {
		r := clitest.Run(t, append([]string{"instrument", module, "-o", output}, strings.Fields(args)...)...)
		require.Equal(t, 2, r.Code, "%s: %s", args, r.Stderr)
		require.Contains(t, r.Stderr, want)
		require.Empty(t, r.Stdout)
		require.NoFileExists(t, output)
	}

	// Output that is not a regular file is written in place.
	r = clitest.Run(t, "instrument", module, "-o", "/dev/null")
	require.Equal(t, 0, r.Code, r.Stderr)
	r = clitest.Run(t, "instrument", module, "-o", "/dev/full")
	r.Fails(t, 2, "no space left on device")
	r = clitest.Run(t, "instrument", module, "-o", output)
	require.Equal(t, 0, r.Code, r.Stderr)
	info, err := os.Stat(output)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
}
