package maps_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// targets lists the targets for which llc of some release emits stack maps. For other back ends llc crashes or reports an error.
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

// links lists the ways to link objects for x86-64 Linux.
var links = map[string][]string{
	"pie":    {"-w", "-nostdlib", "-pie", "-Wl,-z,notext", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,0"},
	"no-pie": {"-w", "-nostdlib", "-no-pie", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,0"},
	"shared": {"-w", "-nostdlib", "-shared", "-Wl,-z,notext"},
}

// TestCorpusAgainstReadobj requires that maps --llvm prints the same as llvm-readobj of that release, for every program of testdata, every target and
// every kind of file. make test selects a ninth of all pairs of a program and a target, each with one of the releases.
func TestCorpusAgainstReadobj(t *testing.T) {
	livetest.Slow(t)
	var files, empty atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, c := range compilations(t) {
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel()
				c.programs = slices.DeleteFunc(c.programs, func(program string) bool { return !livetest.Share(9, filepath.Base(program), c.triple) })
				objects := c.objects(t)
				if len(objects) == 0 {
					return // this release has no stack maps for the target
				}
				some := sameAsReadobj(t, c.version, archiveOf(t, c.version, objects))
				files.Add(int64(some))
				empty.Add(int64(len(objects) - some))
				if c.triple != "x86_64-linux-gnu" {
					return
				}
				for _, program := range c.programs {
					if object := livetest.TryObject(t, c.version, program, c.flags...); object == "" || !strings.Contains(readobjText(t, c.version, object), firstLine) {
						continue
					}
					for _, name := range livetest.ShareOf(slices.Sorted(maps.Keys(links)), "link", program, c.version) {
						link := links[name]
						pic := livetest.Object(t, c.version, program, append([]string{"-relocation-model=pic"}, c.flags...)...)
						require.Equal(t, 1, sameAsReadobj(t, c.version, livetest.Link(t, name, link, pic)))
						files.Add(1)
					}
				}
			})
		}
	})
	t.Logf("%d files agree; %d objects have no stack map", files.Load(), empty.Load())
	require.Greater(t, files.Load(), int64(livetest.Times(30, 100)))
}

// compilation is a set of programs that one release of llc compiles for one target.
type compilation struct {
	version  int
	triple   string
	flags    []string
	programs []string
}

// compilations returns the corpus: each program for each target, compiled by one of the releases, or with FIDELITY=all by each.
func compilations(t *testing.T) []*compilation {
	t.Helper()
	var all []*compilation
	programs := corpus(t)
	for _, target := range targets {
		flags := append([]string{"-mtriple=" + target.triple, "-enable-patchpoint-liveness=false"}, target.flags...)
		for _, version := range []int{14, 19, 22} {
			c := &compilation{version: version, triple: target.triple, flags: flags}
			for _, program := range programs {
				if slices.Contains(livetest.ShareOf([]int{14, 19, 22}, filepath.Base(program), target.triple), version) {
					c.programs = append(c.programs, program)
				}
			}
			all = append(all, c)
		}
	}
	return all
}

func (c *compilation) name() string { return fmt.Sprintf("%d/%s", c.version, c.triple) }

// objects returns the objects of the programs that llc accepts.
func (c *compilation) objects(t *testing.T) (objects []string) {
	t.Helper()
	for _, program := range c.programs {
		if object := livetest.TryObject(t, c.version, program, c.flags...); object != "" {
			objects = append(objects, object)
		}
	}
	return objects
}

// archiveOf returns an archive of objects. Reading one file is faster than starting a program for each object.
func archiveOf(t *testing.T, version int, objects []string) string {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "corpus.a")
	args := []string{"rcS", archive}
	for i, object := range objects { // members need different names
		path := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(object)))
		require.NoError(t, os.Symlink(object, path))
		args = append(args, path)
	}
	out, err := exec.Command(livetest.LLVM(t, version, "llvm-ar"), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return archive
}

// recorded matches the calls in a program that create a record, or that do so after opt has rewritten the program. Other programs have no section to
// compare, and for some of them llc 14 writes objects of 4 GiB.
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
			if recorded.Match(text) && filepath.Base(path) != "polled.ll" { // polled.ll has statepoints only after place-safepoints
				programs = append(programs, path)
			}
		}
		return err
	}))
	require.NotEmpty(t, programs)
	return programs
}

const firstLine = "LLVM StackMap Version"

// members matches the lines that llvm-readobj prints before the stack map of each file or member.
var members = regexp.MustCompile(`(?m)^(File|Format|Arch|AddressSize|LoadName): .*\n|^\n`)

func readobjText(t *testing.T, version int, path string) string {
	t.Helper()
	return livetest.Printed(t, fmt.Sprintf("llvm-readobj-%d", version), "--stackmap", path)
}

// sameAsReadobj requires that maps --llvm and llvm-readobj print the same for a file or an archive, and returns the number of its stack maps.
func sameAsReadobj(t *testing.T, version int, path string) int {
	t.Helper()
	want := members.ReplaceAllString(readobjText(t, version, path), "")
	r := clitest.Run(t, "maps", "--format=llvm", path)
	require.Equal(t, 0, r.Code, "%s\n%s", path, r.Stderr)
	if want == "" {
		require.Contains(t, r.Stderr, "no stack map")
	}
	require.Equal(t, want, r.Stdout, path)
	return strings.Count(want, firstLine)
}
