package gohost

import (
	"encoding/json"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// goFrame is a frame of a Go function. Inlined calls have the same pc.
type goFrame struct {
	pc       uint64
	function string
	place    string // file and line
}

var (
	delveGoroutine = regexp.MustCompile(`^[* ] Goroutine (\d+) - `)
	delveFrame     = regexp.MustCompile(`^ *\d+  0x([0-9a-f]+) in (.*)$`)
	delvePlace     = regexp.MustCompile(`^ +at (.*)$`)
)

// byDelve returns the Go frames of each goroutine that dlv shows. args select the target. A frame of runtime.systemstack_switch separates them from
// the frames on the thread's stack, and dlv adds it itself.
func byDelve(t *testing.T, args ...string) map[int64][]goFrame {
	t.Helper()
	commands := clitest.TempFile(t, "commands", "config max-string-len 64\ngoroutines -exec bt 100\nexit\n")
	c := exec.Command(livetest.DLV(t), append(args, "--check-go-version=false", "--allow-non-terminal-interactive=true", "--init", commands)...)
	c.Env = append(c.Environ(), "TERM=dumb", "NO_COLOR=1", "HOME="+t.TempDir())
	c.Dir = t.TempDir()                // dlv shortens the names of files below its directory
	c.Stdin = strings.NewReader("n\n") // do not kill the process
	text, err := c.Output()
	require.NoError(t, err, "%s", text)
	out := map[int64][]goFrame{}
	id := int64(0)
	for line := range strings.Lines(regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(string(text), "")) {
		line = strings.TrimRight(line, "\n")
		if m := delveGoroutine.FindStringSubmatch(line); m != nil {
			id, err = strconv.ParseInt(m[1], 10, 64)
			require.NoError(t, err)
			out[id] = nil
		} else if m := delveFrame.FindStringSubmatch(line); m != nil && m[2] != "???" {
			pc, err := strconv.ParseUint(m[1], 16, 64)
			require.NoError(t, err)
			out[id] = append(out[id], goFrame{pc, m[2], ""})
		} else if m := delvePlace.FindStringSubmatch(line); m != nil && len(out[id]) > 0 && out[id][len(out[id])-1].place == "" {
			out[id][len(out[id])-1].place = m[1]
		}
	}
	require.NotEmpty(t, out, "%s", text)
	return out
}

// byReframe returns the Go frames of each goroutine of a report. It renames runtime.asmcgocall to the frame that dlv shows instead.
func byReframe(report *frame.Report) map[int64][]goFrame {
	out := map[int64][]goFrame{}
	add := func(g *frame.Goroutine, frames []frame.Frame) {
		out[g.ID] = nil
		for i := range frames {
			name := strings.TrimSuffix(frames[i].Function, ".abi0")
			switch pc, _ := strconv.ParseUint(string(frames[i].PC), 0, 64); {
			case name == "runtime.asmcgocall":
				out[g.ID] = append(out[g.ID], goFrame{0, "runtime.systemstack_switch", ""})
			case strings.Contains(name, ".") || strings.HasPrefix(name, "_cgoexp_"):
				for _, s := range frames[i].Source { // inlined functions first
					out[g.ID] = append(out[g.ID], goFrame{pc, s.Function, deopt.SourceText(s)})
				}
			}
		}
	}
	for i := range report.Threads {
		if g := report.Threads[i].Goroutine; g != nil {
			add(g, report.Threads[i].Frames)
		}
	}
	for i := range report.Goroutines {
		add(&report.Goroutines[i].Goroutine, report.Goroutines[i].Frames)
	}
	return out
}

// requireSameGoroutines requires the same goroutine numbers and frames. If all is not set, it does not compare the frames of goroutines that have
// called C. It omits goroutines for which dlv shows frames of C, as it does in processes: dlv then lacks the Go functions that called C.
func requireSameGoroutines(t *testing.T, want, got map[int64][]goFrame, all bool) {
	t.Helper()
	// From Go 1.26 on, dlv also shows the goroutine that Go reserves for the next thread of C (status 11, _Gdeadextra). It has not run yet.
	maps.DeleteFunc(want, func(id int64, list []goFrame) bool {
		_, ours := got[id]
		return !ours && len(list) == 1 && list[0].function == "runtime.goexit"
	})
	require.Len(t, got, len(want))
	crosses := func(list []goFrame) bool {
		return slices.ContainsFunc(list, func(f goFrame) bool { return f.function == "runtime.systemstack_switch" })
	}
	compared := 0
	for id, frames := range got {
		require.Contains(t, want, id)
		inC := func(f goFrame) bool { return strings.HasPrefix(f.function, "C.") }
		if !all && crosses(frames) || slices.ContainsFunc(want[id], inC) {
			continue
		}
		compared++
		for _, list := range [][]goFrame{frames, want[id]} {
			for i := range list {
				if list[i].function == "runtime.systemstack_switch" {
					list[i].pc, list[i].place = 0, ""
				}
			}
		}
		require.Equal(t, want[id], frames, "goroutine %d", id)
	}
	require.GreaterOrEqual(t, compared, 3)
}

// TestAgainstDelve requires the same goroutines, Go frames, inlined calls and source lines as in dlv, for each release of Go, in a core and in a
// process. For Go 1.26 and newer, Delve 1.27.2 shows wrong frames of goroutines that have called C (doc/dev/facts.md), so only other goroutines are
// compared.
func TestAgainstDelve(t *testing.T) {
	livetest.Slow(t) // it builds Go's library
	for _, release := range livetest.GoReleases() {
		t.Run(release, func(t *testing.T) {
			exe := livetest.CgoBinaryOf(t, release, "testdata/host", "-gcflags=-l")
			right := strings.HasPrefix(release, "go1.24.") || strings.HasPrefix(release, "go1.25.")
			for _, way := range []string{"parked", "plain", "nested", "grown"} {
				t.Run(way, func(t *testing.T) {
					p := livetest.Program(t, exe, way)
					p.Quiet(t, 0)
					core := livetest.Gcore(t, p)
					ofCore := byReframe(goroutinesOf(t, "--core", core))
					requireSameGoroutines(t, byDelve(t, "core", exe, core), ofCore, right)
					ofProcess := byReframe(goroutinesOf(t, "-p", clitest.PID(p)))
					require.Equal(t, ofCore, ofProcess)
					requireSameGoroutines(t, byDelve(t, "attach", clitest.PID(p)), ofProcess, right)
				})
			}
		})
	}
}

// goroutinesOf runs frames --goroutines.
func goroutinesOf(t *testing.T, args ...string) *frame.Report {
	t.Helper()
	r := clitest.Run(t, append([]string{"frames", "--goroutines", "--source", "--json"}, args...)...)
	require.Zero(t, r.Code, r.Stderr)
	clitest.RequireValid(t, "frames.schema.json", r.Stdout)
	out := &frame.Report{}
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), out))
	return out
}

// TestReleases requires the stacks that Go's run time prints, for each release of Go, with and without symbols.
func TestReleases(t *testing.T) {
	livetest.Slow(t) // it builds Go's library
	for _, release := range livetest.GoReleases() {
		t.Run(release, func(t *testing.T) {
			for _, flags := range [][]string{nil, {"-ldflags=-s -w"}, {"-buildmode=pie"}, {"-ldflags=-s -w", "-buildmode=pie"}} {
				requireStacksOf(t, release, flags...)
			}
			p := livetest.Program(t, livetest.CgoBinaryOf(t, release, "testdata/host", "-gcflags=-l"), "plain")
			id := strings.Fields(strings.SplitN(p.Output(), "\n", 3)[1])[0]
			threads := goroutinesOf(t, "-p", clitest.PID(p)).Threads
			i := slices.IndexFunc(threads, func(th frame.Thread) bool { return th.Goroutine != nil })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, id, strconv.FormatInt(threads[i].Goroutine.ID, 10))
			require.Equal(t, map[string]string{"request": "42"}, threads[i].Goroutine.Labels)
		})
	}
}
