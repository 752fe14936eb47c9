package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// targets are those that llc of some release emits stack maps for; the others that it has
// a back end for crash or refuse.
var targets = []struct {
	triple string
	flags  []string
}{
	{triple: "x86_64-linux-gnu"}, {triple: "x86_64-linux-gnux32"}, {triple: "x86_64-unknown-freebsd"},
	{triple: "aarch64-linux-gnu"}, {triple: "aarch64_be-linux-gnu"},
	{triple: "powerpc64le-linux-gnu"}, {triple: "powerpc64-linux-gnu"},
	{triple: "riscv64-linux-gnu", flags: []string{"-mattr=+m,+d", "-target-abi=lp64d"}},
	{triple: "s390x-linux-gnu"}, {triple: "loongarch64-linux-gnu"},
	{triple: "x86_64-apple-macosx10.14"}, {triple: "x86_64-apple-macosx10.15"},
	{triple: "arm64-apple-macosx11"}, {triple: "arm64e-apple-macosx12"}, {triple: "arm64_32-apple-watchos"},
	{triple: "x86_64-pc-windows-msvc"}, {triple: "x86_64-pc-windows-gnu"}, {triple: "aarch64-pc-windows-msvc"},
}

// links are the ways in which objects of x86-64 Linux are linked.
var links = map[string][]string{
	"pie":    {"-w", "-nostdlib", "-pie", "-Wl,-z,notext", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,0"},
	"no-pie": {"-w", "-nostdlib", "-no-pie", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,0"},
	"shared": {"-w", "-nostdlib", "-shared", "-Wl,-z,notext"},
}

// Every program of testdata, for every target and in every kind of file: what maps
// prints as LLVM does is what llvm-readobj of that release prints. make test has each program for each target by one of the releases.
func TestCorpusAgainstReadobj(t *testing.T) {
	programs := corpus(t)
	var files, empty atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, target := range targets {
			made := map[int][]string{} // by release
			for _, program := range programs {
				for _, version := range livetest.ShareOf([]int{14, 19, 22}, filepath.Base(program), target.triple) {
					made[version] = append(made[version], program)
				}
			}
			for version, programs := range made {
				t.Run(fmt.Sprintf("%d/%s", version, target.triple), func(t *testing.T) {
					t.Parallel()
					flags := append([]string{"-mtriple=" + target.triple, "-enable-patchpoint-liveness=false"}, target.flags...)
					var objects []string
					for _, program := range programs {
						object := corpusObject(t, version, program, target.triple, flags)
						if object == "" {
							continue
						}
						objects = append(objects, object)
						if target.triple != "x86_64-linux-gnu" || !livetest.Share(4, program) {
							continue
						}
						if out := readobjText(t, version, object); !strings.Contains(out, firstLine) {
							continue
						}
						for name, link := range links {
							pic := livetest.Object(t, version, program, append([]string{"-relocation-model=pic"}, flags...)...)
							require.Equal(t, 1, sameAsReadobj(t, version, livetest.Link(t, name, link, pic)))
							files.Add(1)
						}
					}
					// One archive of all of them, as each program that is started takes longer than to read a map.
					archive := filepath.Join(t.TempDir(), "all.a")
					args := []string{"rcS", archive}
					for i, object := range objects { // names of their own
						path := filepath.Join(t.TempDir(), fmt.Sprintf("%d-%s", i, filepath.Base(object)))
						require.NoError(t, os.Symlink(object, path))
						args = append(args, path)
					}
					out, err := exec.Command(livetest.LLVM(t, version, "llvm-ar"), args...).CombinedOutput()
					require.NoError(t, err, "%s", out)
					some := sameAsReadobj(t, version, archive)
					files.Add(int64(some))
					empty.Add(int64(len(objects) - some))
				})
			}
		}
	})
	t.Logf("%d files agree; %d objects have no stack map", files.Load(), empty.Load())
	require.Greater(t, files.Load(), int64(150))
}

// recorded is what a program calls, or its rewriting makes, that leaves a record. The
// others have no section to compare, and some of them keep llc 14 busy with objects of 4 GiB.
var recorded = regexp.MustCompile(`llvm\.experimental\.(stackmap|patchpoint|gc\.statepoint|deoptimize)| gc "`)

// corpus lists every IR program of the repository's testdata that leaves records.
func corpus(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	var programs []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".ll") && slices.Contains(strings.Split(path, string(filepath.Separator)), "testdata") {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if recorded.Match(text) && filepath.Base(path) != "polled.ll" { // which leaves none until place-safepoints has run
				programs = append(programs, path)
			}
		}
		return err
	}))
	require.NotEmpty(t, programs)
	return programs
}

// shadow is a stackmap with the bytes of its shadow. Where that is no multiple of 4 llc for aarch64 writes nops until the object has 4 GiB,
// or never ends.
var shadow = regexp.MustCompile(`@llvm\.experimental\.stackmap\(i64 -?\d+, i32 (\d+)`)

// corpusObject is the object that llc makes of a program for a target, or "" where it cannot.
func corpusObject(t *testing.T, version int, program, triple string, flags []string) string {
	t.Helper()
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	for _, m := range shadow.FindAllSubmatch(text, -1) {
		bytes, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		if bytes%4 != 0 && !strings.HasPrefix(triple, "x86_64") {
			return ""
		}
	}
	return livetest.TryObject(t, version, program, flags...)
}

const firstLine = "LLVM StackMap Version"

// members are the lines that llvm-readobj prints of each file or member, before its stack map.
var members = regexp.MustCompile(`(?m)^(File|Format|Arch|AddressSize|LoadName): .*\n|^\n`)

func readobjText(t *testing.T, version int, path string) string {
	t.Helper()
	out, err := exec.Command(livetest.LLVM(t, version, "llvm-readobj"), "--stackmap", path).Output()
	require.NoError(t, err, path)
	return string(out)
}

// sameAsReadobj holds a file or an archive against llvm-readobj, and says how many stack maps it has.
func sameAsReadobj(t *testing.T, version int, path string) int {
	t.Helper()
	want := members.ReplaceAllString(readobjText(t, version, path), "")
	r := reframe(t, "maps", "--format=llvm", path)
	require.Equal(t, 0, r.code, "%s\n%s", path, r.stderr)
	if want == "" {
		require.Contains(t, r.stderr, "no stack map")
	}
	require.Equal(t, want, r.stdout, path)
	return strings.Count(want, firstLine)
}
