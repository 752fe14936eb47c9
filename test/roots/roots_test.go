package roots_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// collecting runs the collector of deopt/testdata/gc with a module until a collection has moved every object.
func collecting(t *testing.T, version int, program, passes string, round int) (*livetest.Process, string) {
	t.Helper()
	dir := t.TempDir()
	from := livetest.Testdata(t, "..", "deopt", "testdata", "gc")
	module, object, binary := filepath.Join(dir, program+".ll"), filepath.Join(dir, program+".o"), filepath.Join(dir, "collector")
	for _, command := range [][]string{
		{livetest.LLVM(t, version, "opt"), "-passes=" + passes, "-S", filepath.Join(from, program+".ll"), "-o", module},
		{livetest.LLVM(t, version, "llc"), "-O2", "-relocation-model=pic", "-filetype=obj", module, "-o", object},
		{livetest.Tool(t, "gcc"), "-O1", "-no-pie", filepath.Join(from, "collector.c"), object, "-o", binary},
	} {
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	p := livetest.Program(t, binary, fmt.Sprint(round))
	p.AwaitPause(t)
	return p, module
}

// report is the part of the JSON that the tests read.
type report struct {
	Threads []struct {
		Frames []struct {
			Function string
			Record   *struct {
				ID   uint64
				Site string
			}
			Roots []root
		}
	}
	Summary map[string]int
	Reached struct{ Objects, Bytes, Dangling, Unread uint64 }
	Why     struct {
		Object, Root *struct{}
		Steps        []struct {
			Start  string
			Offset uint64
		}
	}
}

type root struct {
	Index    int
	Name     string
	Hex      string
	BaseOnly bool `json:"base_only"`
	Alloca   bool
	Found    string
	Object   *struct {
		Start, Class string
		Size         uint64
	}
	GC *struct {
		Base   *int
		Offset string
	}
}

func read(t *testing.T, args ...string) (report, clitest.Result) {
	t.Helper()
	r := clitest.Run(t, append([]string{"roots", "--json"}, args...)...)
	var out report
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &out), r.Stderr)
	var value any
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &value))
	require.NoError(t, clitest.SchemaOf(t, "roots.schema.json").Validate(value), r.Stdout)
	return out, r
}

// moved is a line of the collector: the base and the pointer of a pair before and after the move.
var moved = regexp.MustCompile(`(?m)^moved (0x\w+) (0x\w+) to (0x\w+) (0x\w+)\r?$`)

// words returns the pointers in a value.
func words(hex string) (all []string) {
	for text := strings.TrimPrefix(hex, "0x"); text != ""; {
		cut := max(0, len(text)-16)
		all, text = append(all, "0x"+strings.TrimLeft(text[cut:], "0")), text[:cut]
	}
	return all
}

// TestRootsAreThoseOfTheCollector requires that the roots after a collection are the pointers that the collector has updated: neither more nor fewer.
func TestRootsAreThoseOfTheCollector(t *testing.T) {
	t.Parallel()
	for _, version := range []int{16, 19, 22} {
		for program, passes := range map[string]string{"explicit": "verify", "polled": "function(place-safepoints),rewrite-statepoints-for-gc"} {
			if version == 16 && program == "polled" {
				continue // LLVM 16's place-safepoints is not a pass of the new manager
			}
			t.Run(fmt.Sprintf("llc-%d %s", version, program), func(t *testing.T) {
				p, module := collecting(t, version, program, passes, 1)
				var want, bases []string
				for _, m := range moved.FindAllStringSubmatch(p.Output(), -1) {
					want, bases = append(want, m[4]), append(bases, m[3])
				}
				require.NotEmpty(t, want)
				inputs := [][]string{{"--ir", module}}
				if program == "polled" {
					inputs = append(inputs, nil) // its record has LLVM's own id
				} else {
					clitest.Run(t, "roots", "-p", clitest.PID(p)).Fails(t, 2, "only the module (--ir) shows the kind of site of its record")
				}
				for _, args := range inputs {
					out, r := read(t, append(args, "-p", clitest.PID(p))...)
					require.Zero(t, r.Code, r.Stderr)
					var got []string
					for _, f := range out.Threads[0].Frames {
						for _, root := range f.Roots {
							if !root.BaseOnly {
								got = append(got, words(root.Hex)...)
							}
						}
					}
					slices.Sort(got)
					slices.Sort(want)
					require.Equal(t, slices.Compact(want), slices.Compact(got), "%v", args)
				}

				// The objects are in the space to which the collector has moved them.
				low, high := slices.Min(bases), slices.Max(bases)
				heap := fmt.Sprintf("%s-%sff", low, strings.TrimSuffix(high, high[len(high)-2:]))
				out, r := read(t, "-p", clitest.PID(p), "--ir", module, "--heap", heap)
				require.Zero(t, r.Code, r.Stdout)
				require.Zero(t, out.Summary["wrong"])
				out, r = read(t, "-p", clitest.PID(p), "--ir", module, "--from-space", heap)
				require.Equal(t, 1, r.Code)
				require.Positive(t, out.Summary["wrong"])
				for _, f := range out.Threads[0].Frames {
					for _, root := range f.Roots {
						require.Contains(t, []string{"from-space", "unchecked"}, root.Found)
					}
				}
			})
		}
	}
}

// TestRootsBetweenFrames requires that a derived pointer shows its base and its offset, that a frame without a map between the others is listed, and that
// --function and --count select and count.
func TestRootsBetweenFrames(t *testing.T) {
	t.Parallel()
	called := strings.Replace(clitest.DerivedPointersModule, "elementtype(void ()) @inner,", "elementtype(void ()) @between,", 1)
	require.NotEqual(t, clitest.DerivedPointersModule, called)
	module := livetest.Raw(t, called+"define void @between() noinline {\n  call void @inner()\n  store volatile i8 1, ptr @sum\n  ret void\n}\n")
	p := livetest.Lli(t, 19, module, "mcjit")
	pid := clitest.PID(p)
	r := clitest.Run(t, "roots", "-p", pid, "--ir", module)
	require.Zero(t, r.Code, r.Stderr)
	for _, line := range []string{
		`#\d+ +inner\+0x\w+ +record 2882400000, statepoint, in call`, `#\d+ +outer\+0x\w+ +record 2882400000, statepoint, in call`,
		`%at +ptr addrspace\(1\) 0x10018 +\[\w+[+-]\d+\]  derived: 0x10000 \+ 24`, `%below +ptr addrspace\(1\) 0xffe8 +\[\w+[+-]\d+\]  derived: 0x10000 - 24`,
		`%o +ptr addrspace\(1\) 0x10000 +\[\w+[+-]\d+\]  only a base`, `%p +ptr addrspace\(1\) 0x10000 +\[\w+[+-]\d+\]`,
		`#\d+, without a map: between\+0x\w+`, `5 roots in 2 frames · 3 derived · 1 frame without a map between them`,
	} {
		require.Regexp(t, `(?m)^ *`+line+`$`, r.Stdout)
	}
	require.NotContains(t, r.Stdout, "%far", "it is in another address space")
	r = clitest.Run(t, "roots", "-p", pid, "--ir", module, "--count")
	require.Regexp(t, `(?m)^ +3 in 1 frame +inner\n +2 in 1 frame +outer$`, r.Stdout)
	out, _ := read(t, "-p", pid, "--function", "outer")
	require.Equal(t, map[string]int{"frames": 1, "roots": 2, "derived": 1, "without_maps": 0, "unavailable": 0, "incomplete": 0, "wrong": 0, "unchecked": 0, "unknown": 0}, out.Summary)
	r = clitest.Run(t, "roots", "-p", pid, "--heap", "0x20000-0x30000", "--function", "outer")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Regexp(t, `(?m)0x10000 .*  outside of the heap$`, r.Stdout)
}

// TestRootsOfACutStack requires a report if a stack was not copied completely, because the frames beyond the copy may have roots.
func TestRootsOfACutStack(t *testing.T) {
	t.Parallel()
	p, module := collecting(t, 19, "explicit", "verify", 1)
	out, r := read(t, "-p", clitest.PID(p), "--ir", module, "--stack-bytes", "4096")
	require.Equal(t, 1, r.Code, r.Stdout)
	require.Equal(t, 1, out.Summary["frames"])
	require.Equal(t, 1, out.Summary["incomplete"])
	r = clitest.Run(t, "roots", "-p", clitest.PID(p), "--ir", module, "--stack-bytes", "4096")
	require.Contains(t, r.Stdout, ": roots of the other frames are not listed\n")
	require.Contains(t, r.Stdout, " · stacks or objects are incomplete\n")
}

// TestRootsOfOthers requires that an error gives the reason if no frame is at a statepoint, and for each wrong argument.
func TestRootsOfOthers(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	pid := clitest.PID(p)
	clitest.Run(t, "roots", "-p", pid).Fails(t, 2, "no frame is at a statepoint: the records of stackmaps and patchpoints list no roots")
	clitest.Run(t, "roots", "-p", pid, "--heap", "5-5").Fails(t, 64, `--heap "5-5": expected START-END in hexadecimal, START below END`)
	clitest.Run(t, "roots", "-p", pid, "--from-space", "x").Fails(t, 64, `--from-space "x": expected START-END in hexadecimal`)
	clitest.Run(t, "roots", "-p", pid, "--count", "--json").Fails(t, 64, "--count and --json cannot be combined")
	clitest.Run(t, "roots", "-p", pid, "--function", "nothing").Fails(t, 2, "no frame of nothing is at a statepoint")
}
