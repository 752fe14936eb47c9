package roots_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/gcprogram"
	"example.com/reframe/test/livetest"
)

// visited holds the lines of trace --visitor --json.
type visited struct {
	collections []collection
	summary     struct {
		Collections, Slots, Visits, Elsewhere, Unavailable, Incomplete int
		Null                                                           int
		NoFrames                                                       int `json:"no_frames"`
		BeginUnseen                                                    int `json:"begin_unseen"`
		NoneVisited                                                    int `json:"none_visited"`
		Findings                                                       map[string]int
	}
	status int
}

type collection struct {
	N        int
	Visits   int
	Cut      bool
	Findings []struct {
		Kind   string
		Record struct{ ID uint64 }
		Slot   *struct{ Name string }
		Slots  int
	}
}

// traceVisitor runs a program under trace --visitor. collector holds further flags.
func traceVisitor(t *testing.T, p *gcprogram.Program, binary string, collector []string, args ...string) (out visited) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "collections")
	r := clitest.Run(t, slices.Concat([]string{"trace", "--visitor", "visit_root", "--visitor-base", "1", "--ir", p.Module, "--json", "-o", file}, collector, []string{"--", binary}, args)...)
	return readVisited(t, file, r.Code)
}

// readVisited reads the output of a trace that has ended.
func readVisited(t *testing.T, file string, status int) (out visited) {
	t.Helper()
	out.status = status
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var value any
		require.NoError(t, json.Unmarshal([]byte(line), &value))
		require.NoError(t, clitest.SchemaOf(t, "visitor.schema.json").Validate(value), line)
		var c collection
		switch value.(map[string]any)["schema"] {
		case "reframe.trace.collection/v1":
			require.NoError(t, json.Unmarshal([]byte(line), &c))
			out.collections = append(out.collections, c)
		case "reframe.trace.visitor/v1":
			require.NoError(t, json.Unmarshal([]byte(line), &out.summary))
		default:
			require.Fail(t, line)
		}
	}
	return out
}

// everyFor returns the distance between collections at which a program has at most some.
func everyFor(t *testing.T, p *gcprogram.Program, binary string, most int) string {
	t.Helper()
	return strconv.Itoa(1 + p.Run(t, binary).Safepoints/most)
}

// TestVisitorOfACorrectWalker requires that the slots of each collection of a correct walker are exactly those of the maps.
func TestVisitorOfACorrectWalker(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		every := everyFor(t, p, binary, 20)
		want := p.Run(t, binary, "-every", every)
		empty := emptyCollections(t, p, binary, every)
		for _, collector := range [][]string{collects, nil} {
			got := traceVisitor(t, p, binary, collector, "-every", every)
			require.Zero(t, got.status, "%s: %v", p, got.summary)
			if collector == nil { // a collection that visits no root cannot be detected
				require.Equal(t, want.Collections-empty, got.summary.Collections, "%s", p)
			} else {
				require.Equal(t, want.Collections, got.summary.Collections, "%s", p)
			}
			require.Equal(t, want.Roots, got.summary.Visits, "%s", p)
			require.Zero(t, got.summary.Elsewhere, "%s", p)
			require.Zero(t, got.summary.Unavailable+got.summary.Incomplete+got.summary.NoFrames+got.summary.NoneVisited, "%s: %v", p, got.summary)
		}
	})
}

// emptyCollections returns the number of collections in which the collector visits no root.
func emptyCollections(t *testing.T, p *gcprogram.Program, binary, every string) (n int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p.Run(t, binary, "-every", every, "-log", log)
	for _, c := range gcprogram.ReadLog(t, log) {
		if !slices.ContainsFunc(c.Frames, func(f gcprogram.Frame) bool { return len(f.Roots) > 0 }) {
			n++
		}
	}
	return n
}

// TestVisitorSkipsNull requires that a collector need not visit a stack object that holds null.
func TestVisitorSkipsNull(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		every := everyFor(t, p, binary, 20)
		all, want := p.Run(t, binary, "-every", every), p.Run(t, binary, "-every", every, "-skip-null")
		got := traceVisitor(t, p, binary, collects, "-every", every, "-skip-null")
		require.Zero(t, got.status, "%s: %+v", p, got)
		require.Equal(t, want.Roots, got.summary.Visits, "%s", p)
		require.NotZero(t, got.summary.Null, "%s", p)
		require.Equal(t, all.Roots-want.Roots, got.summary.Null, "%s", p)
	})
}

// TestVisitorOfTwoCollections requires that two collections in one call of a statepoint are not reported as slots that were visited twice.
func TestVisitorOfTwoCollections(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		every := everyFor(t, p, binary, 20)
		want := p.Run(t, binary, "-every", every, "-again")
		for _, collector := range [][]string{collects, nil} {
			got := traceVisitor(t, p, binary, collector, "-every", every, "-again")
			require.Zero(t, got.status, "%s: %+v", p, got)
			require.Equal(t, want.Roots, got.summary.Visits, "%s", p)
		}
	})
}

// TestVisitorOfACutCollection requires that slots are not reported as missing if the process exits in the middle of a walk.
func TestVisitorOfACutCollection(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		every := everyFor(t, p, binary, 20)
		at := middleOfAWalk(t, p, binary, every)
		got := traceVisitor(t, p, binary, collects, "-every", every, "-exit-at", strconv.Itoa(at))
		require.Zero(t, got.status, "%s: %+v", p, got)
		require.Equal(t, at-1, got.summary.Visits, "%s", p)
		require.True(t, got.collections[len(got.collections)-1].Cut, "%s", p)
	})
}

// middleOfAWalk returns the number of the second visit in the first collection after the first one that visits at least two roots.
func middleOfAWalk(t *testing.T, p *gcprogram.Program, binary, every string) (at int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p.Run(t, binary, "-every", every, "-log", log)
	for n, c := range gcprogram.ReadLog(t, log) {
		visits := 0
		for _, f := range c.Frames {
			visits += len(f.Roots)
		}
		if n > 0 && visits > 1 {
			return at + 2
		}
		at += visits
	}
	require.Fail(t, "no collection visits two roots", "%s", p)
	return 0
}

// TestVisitorAttachedInACollection requires that a collection that has begun before the trace is not compared.
func TestVisitorAttachedInACollection(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		every := everyFor(t, p, binary, 20)
		at := middleOfAWalk(t, p, binary, every)
		for _, collector := range [][]string{collects, nil} {
			process := livetest.Program(t, binary, "-every", every, "-pause-at", strconv.Itoa(at))
			process.AwaitPause(t)
			handle, err := os.FindProcess(process.PID)
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "collections")
			command := clitest.Command(t, slices.Concat([]string{"trace", "-p", clitest.PID(process), "--visitor", "visit_root", "--visitor-base", "1", "--ir", p.Module, "--json", "-o", file}, collector)...)
			done := make(chan clitest.Result, 1)
			go func() { done <- clitest.Finish(t, command) }()
			clitest.WaitTraced(t, process)
			var result clitest.Result
			for ended := false; !ended; { // a signal before the process is in pause again has no effect
				_ = handle.Signal(syscall.SIGUSR1) // the process may have ended
				select {
				case result = <-done:
					ended = true
				case <-time.After(10 * time.Millisecond):
				}
			}
			got := readVisited(t, file, result.Code)
			require.NotZero(t, got.summary.Collections, "%s", p)
			require.Empty(t, got.found(), "%s: %+v", p, got)
			if collector == nil {
				require.Equal(t, 1, got.summary.BeginUnseen, "%s", p)
				require.Zero(t, got.status, "%s", p)
			} else {
				require.Equal(t, 1, got.summary.Incomplete, "%s", p)
				require.Equal(t, 1, got.status, "%s", p)
			}
		}
	})
}

// found returns the kinds of the findings in a trace.
func (v *visited) found() (kinds []string) {
	for _, c := range v.collections {
		for _, f := range c.Findings {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

// collects names the function that collects.
var collects = []string{"--collector", "collect"}

// mutant is a walker that is wrong at the frames of one record.
type mutant struct {
	id   uint64
	args []string
}

// skips returns the walkers that skip the frames of a record.
func skips(log []gcprogram.Collection) (all []mutant) {
	seen := map[uint64]bool{}
	for _, c := range log {
		for _, f := range c.Frames {
			if seen[f.ID] || len(f.Roots) == 0 {
				continue
			}
			seen[f.ID] = true
			all = append(all, mutant{f.ID, []string{"-skip", fmt.Sprint(f.ID)}})
		}
	}
	return all
}

// misreads returns walkers that read an offset of a record wrong. Some of them read a location that has no offset, and are correct.
func misreads(r *rand.Rand, log []gcprogram.Collection) (all []mutant) {
	seen := map[uint64]bool{}
	for _, c := range log {
		for _, f := range c.Frames {
			if seen[f.ID] || len(f.Roots) == 0 {
				continue
			}
			seen[f.ID] = true
			delta := 8 * (1 + r.Intn(6)) * (1 - 2*r.Intn(2))
			all = append(all, mutant{f.ID, []string{"-misread", fmt.Sprintf("%d:%d:%d", f.ID, r.Intn(len(f.Roots)), delta)}})
		}
	}
	return all
}

// walkOf returns what a walker visited, independently of the addresses of the stack.
func walkOf(log []gcprogram.Collection) (all []string) {
	for _, c := range log {
		for _, f := range c.Frames {
			for _, r := range f.Roots {
				all = append(all, fmt.Sprint(c.Number, f.ID, int64(r.Slot-f.SP), int64(r.BaseSlot-f.SP)))
			}
		}
	}
	return all
}

// TestVisitorFindsWrongWalkers requires that walkers that skip a frame or misread an offset are found in each program, at a frame of the record at
// which they are wrong.
func TestVisitorFindsWrongWalkers(t *testing.T) {
	var mu sync.Mutex
	count := map[string]int{}
	t.Cleanup(func() { t.Logf("wrong walkers that were found: %v", count) })
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		every := everyFor(t, p, binary, 20)
		logged := func(args ...string) []gcprogram.Collection {
			log := filepath.Join(t.TempDir(), "log")
			p.Run(t, binary, slices.Concat([]string{"-every", every, "-log", log}, args)...)
			return gcprogram.ReadLog(t, log)
		}
		correct := logged()
		walk := walkOf(correct)
		r := rand.New(rand.NewSource(p.Seed))
		for kind, all := range map[string][]mutant{"skip": skips(correct), "misread": misreads(r, correct)} {
			r.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
			tested := 0
			for _, m := range all {
				if tested == livetest.Times(2, 8) {
					break
				}
				if slices.Equal(walk, walkOf(logged(m.args...))) {
					continue
				}
				tested++
				got := traceVisitor(t, p, binary, collects, slices.Concat([]string{"-every", every}, m.args)...)
				require.Equal(t, 1, got.status, "%s %q: %+v", p, m.args, got.summary)
				require.True(t, got.finds(m.id), "%s %q: %+v", p, m.args, got)
			}
			mu.Lock()
			count[kind] += tested
			mu.Unlock()
		}
	})
}

// finds reports whether the first collection with a finding has one in a frame of a record.
func (v *visited) finds(id uint64) bool {
	for _, c := range v.collections {
		for _, f := range c.Findings {
			if f.Record.ID == id {
				return true
			}
		}
		if len(c.Findings) > 0 {
			return false
		}
	}
	return false
}

// TestVisitorArguments requires a reason for each wrong combination of flags, and for functions that do not exist.
func TestVisitorArguments(t *testing.T) {
	t.Parallel()
	command := []string{"--", "true"}
	for want, args := range map[string][]string{
		"--collector requires --visitor":                         {"--collector", "f"},
		"--visitor-base requires --visitor":                      {"--visitor-base", "1"},
		"--visitor cannot be combined with --full":               {"--visitor", "f", "--full"},
		"--visitor-argument -1: must not be below 0":             {"--visitor", "f", "--visitor-argument", "-1"},
		"--visitor-base 0: the argument of the slot is the same": {"--visitor", "f", "--visitor-base", "0"},
		"--collector f: the function of --visitor is the same":   {"--visitor", "f", "--collector", "f"},
	} {
		clitest.Run(t, slices.Concat([]string{"trace"}, args, command)...).Fails(t, 64, want)
	}
}

// TestVisitorShowsFindings requires that a finding is shown with its frame, name, location and address, for each kind.
func TestVisitorShowsFindings(t *testing.T) {
	t.Parallel()
	livetest.NeedsTools(t)
	trace := func(p *gcprogram.Program, more ...string) string {
		return clitest.Run(t, slices.Concat([]string{"trace", "--visitor", "visit_root", "--ir", p.Module, "--limit", "8", "-o", "-"}, more)...).Stdout
	}
	p := gcprogram.New(t, 0, 22)
	wrong := clitest.Run(t, "trace", "--visitor", "visit_root", "--visitor-argument", "9", "--ir", p.Module, "-o", "-", "--", p.Binary(t), "-every", "0")
	require.Equal(t, 2, wrong.Code)
	require.Contains(t, wrong.Stdout+wrong.Stderr, "argument 9 of the visitor is not in a register") // before the first visit: this program never collects
	const address = `0x7\w+`
	const slot = `%[\w.]+ ptr addrspace\(1\) = 0x\w+, \S+ at ` + address
	// A walker that passes the arguments in the wrong order visits the base in place of the derived pointer.
	registers, spilled := gcprogram.New(t, 1, 22), gcprogram.New(t, 0, 22)
	binary, other := registers.Binary(t), spilled.Binary(t)
	text := trace(registers, "--visitor-argument", "1", "--visitor-base", "0", "--", binary)
	for _, line := range []string{
		`[\d.]+  \d+ \S+  collection \d+: \d+ visits, \d+ slots in \d+ frames?`,
		`  #\d+ +\w+\+0x\w+ +record \d+, statepoint, in call`,
		`        missing: ` + slot + `  derived: 0x\w+ [+-] \d+`,
		`        twice: ` + slot + `, visited \d+ times`,
		`        wrong base: ` + slot + `: its base was read at ` + address + `; in the map it is at ` + address,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, text)
	}
	require.Regexp(t, `(?m)^        skipped frame: (its slot was not|none of its \d+ slots was) visited$`, trace(registers, "--collector", "collect", "--", binary, "-skip", "3"))
	require.Regexp(t, `(?m)^        extra: `+address+`.* is no slot of the map$`, trace(spilled, "--", other, "-misread", "1:0:-64"))
}
