// Package gcprogram writes random programs with statepoints, which run with a moving collector of their own in C (testdata/collector.c), and mutants of
// them, for tests of what Reframe says about roots. Its main type is [Program].
//
//	p := gcprogram.New(t, seed, 22)        // LLVM 14 (typed pointers), 19 or 22
//	p.Source, p.Module                     // IR before and after rewrite-statepoints-for-gc
//	binary := p.Binary(t)                  // llc and gcc
//	run := p.Run(t, binary, "-every", "1") // collect at each safepoint
//
// Each statepoint has an id of its own. The stack objects of a function that hold references are in the gc-live bundle of each of its statepoints.
// Every object moves at every collection, and the space that it leaves faults, so that a root that is missing or wrong ends the program or changes its
// output, unless the pointer is not used. The collector logs each root that it visits ([ReadLog]), and can stop after a collection.
//
// What is compiled and run has the rights of the test.
package gcprogram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// Releases lists the releases of LLVM that compile the programs. Version 14 has typed pointers.
var Releases = []int{14, 19, 22}

// Program is a random program.
type Program struct {
	Seed     int64
	LLVM     int
	Source   string         // path of the module before rewrite-statepoints-for-gc
	Module   string         // path of the module that llc compiles
	LLC      []string       // flags of llc
	Features map[string]int // number of occurrences in the source, by feature

	dir string
}

// New writes the program of a seed for a release of LLVM, and rewrites its statepoints.
func New(t testing.TB, seed int64, version int) *Program {
	t.Helper()
	p := &Program{Seed: seed, LLVM: version, dir: t.TempDir()}
	r := rand.New(rand.NewSource(seed))
	g := &generator{Rand: r, typed: version == 14, functions: 4 + r.Intn(4), features: map[string]int{}}
	g.module()
	p.Features = g.features
	p.LLC = flagsOf(r)
	p.Source = p.write(t, "source.ll", g.String())
	p.Module = p.write(t, "module.ll", p.Rewritten(t, p.Source))
	return p
}

func (p *Program) String() string { return fmt.Sprintf("seed %d, LLVM %d %q", p.Seed, p.LLVM, p.LLC) }

// flagsOf chooses how llc compiles a program: whether pointers are in callee-saved registers or all are spilled, and whether frames have a frame pointer.
func flagsOf(r *rand.Rand) []string {
	flags := []string{[]string{"-O0", "-O1", "-O2", "-O2", "-O2", "-O3"}[r.Intn(6)]}
	if r.Intn(3) == 0 {
		flags = append(flags, "-frame-pointer=all")
	}
	if r.Intn(2) == 0 && flags[0] != "-O0" { // the collector finds pushes only in a prologue at the function's start
		flags = append(flags, "-fixup-allow-gcptr-in-csr", fmt.Sprintf("-max-registers-for-gc-values=%d", 1+r.Intn(6)), "-enable-shrink-wrap=false")
	}
	return flags
}

func (p *Program) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// command runs a tool that must succeed.
func (p *Program) command(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s: %s\n%s", p, cmd, &stderr)
	return stdout.Bytes()
}

// Rewritten returns the text of a module after rewrite-statepoints-for-gc, with the stack objects in the gc-live bundles.
func (p *Program) Rewritten(t testing.TB, source string) string {
	t.Helper()
	flags := []string{"-passes=rewrite-statepoints-for-gc"}
	if p.LLVM == 14 {
		flags = []string{"-enable-new-pm=0", "-rewrite-statepoints-for-gc"}
	}
	return withCells(string(p.command(t, livetest.LLVM(t, p.LLVM, "opt"), append(flags, "-S", source)...)))
}

var (
	cellLine = regexp.MustCompile(`^  (%cell\d+) = alloca (.*?)(?:, align \d+)?$`)
	liveList = regexp.MustCompile(`"gc-live"\(`)
)

// withCells adds the stack objects of each function to the gc-live bundles of its statepoints.
func withCells(text string) string {
	var cells []string
	lines := strings.Split(text, "\n")
	for k, line := range lines {
		if strings.HasPrefix(line, "define ") {
			cells = nil
		}
		if m := cellLine.FindStringSubmatch(line); m != nil {
			typ := "ptr"
			if m[2] != "ptr addrspace(1)" {
				typ = m[2] + "*"
			}
			cells = append(cells, typ+" "+m[1])
		}
		if len(cells) == 0 || !strings.Contains(line, "@llvm.experimental.gc.statepoint") || strings.HasPrefix(line, "declare") {
			continue
		}
		list := strings.Join(cells, ", ")
		switch at := liveList.FindStringIndex(line); {
		case at != nil:
			end := at[1] + closing(line[at[1]:])
			lines[k] = line[:end] + ", " + list + line[end:]
		case strings.HasSuffix(line, " ]"):
			lines[k] = strings.TrimSuffix(line, " ]") + `, "gc-live"(` + list + ") ]"
		default:
			lines[k] = line + ` [ "gc-live"(` + list + ") ]"
		}
	}
	return strings.Join(lines, "\n")
}

// closing returns the index of the parenthesis that closes a list.
func closing(text string) int {
	for k, depth := 0, 0; k < len(text); k++ {
		switch text[k] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return k
			}
		}
	}
	return -1
}

// Object compiles a module of the program with its flags, and returns the path of the object.
func (p *Program) Object(t testing.TB, module string) string {
	t.Helper()
	object := strings.TrimSuffix(module, ".ll") + ".o"
	p.command(t, livetest.LLVM(t, p.LLVM, "llc"), slices.Concat(p.LLC, []string{"-relocation-model=pic", "-filetype=obj", module, "-o", object})...)
	return object
}

// Link links an object with the collector, and returns the path of the program.
func (p *Program) Link(t testing.TB, object string) string {
	t.Helper()
	source := livetest.Testdata(t, "..", "test", "gcprogram", "testdata", "collector.c")
	collector := livetest.Compiled(t, "gcc", source, "-c", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fexceptions", "-fno-omit-frame-pointer")
	binary := strings.TrimSuffix(object, ".o")
	p.command(t, livetest.Tool(t, "gcc"), "-no-pie", collector, object, "-lstdc++", "-o", binary)
	return binary
}

// Binary compiles and links the program.
func (p *Program) Binary(t testing.TB) string {
	t.Helper()
	return p.Link(t, p.Object(t, p.Module))
}

// Outcome is the end of a run.
type Outcome struct {
	Status      int    // 128 plus the number of the signal that ended it
	Result      string // its line "result"; empty if it failed
	Text        string // all output
	Collections int
	Safepoints  int
	Frames      int // number of frames that all collections walked
	Roots       int
}

// Failed reports whether the program died, or was ended by the collector.
func (o Outcome) Failed() bool { return o.Result == "" }

// Run runs the program to its end.
func (p *Program) Run(t testing.TB, binary string, args ...string) (o Outcome) {
	t.Helper()
	const bound = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	ended := cmd.ProcessState.Sys().(syscall.WaitStatus)
	o.Status, o.Text = ended.ExitStatus(), string(out)
	if ended.Signaled() {
		o.Status = 128 + int(ended.Signal())
	}
	if o.Status == 0 {
		_, err = fmt.Sscanf(o.Text, "result %s\ncollections %d safepoints %d frames %d roots %d\n", &o.Result, &o.Collections, &o.Safepoints, &o.Frames, &o.Roots)
		require.NoError(t, err, "%s: %s", p, o.Text)
	}
	return o
}
