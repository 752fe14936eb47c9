package frames_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// dumped is a version of a function that a JIT compiles.
type dumped struct {
	ir, object string
	values     func(x, y string) map[string]string // returns the expected names and values, from the arguments that the function passes to its callee
}

// dumpedVersions returns versions of one function. In some of them a name or a computation differs, others have the same code.
func dumpedVersions(t *testing.T) (all []dumped) {
	t.Helper()
	for n, v := range []struct {
		names    [2]string // the names of a*K1 and b+K2
		order    [2]int    // the order of the values in the record
		callee   string
		factor   int
		describe bool
	}{
		{[2]string{"alpha", "beta"}, [2]int{0, 1}, "cb", 3, false},
		{[2]string{"alpha", "beta"}, [2]int{1, 0}, "cb", 3, false},    // the record has the values in another order
		{[2]string{"beta", "alpha"}, [2]int{0, 1}, "cb", 3, false},    // only the names differ, which are not in the code
		{[2]string{"alpha", "beta"}, [2]int{0, 1}, "other", 3, false}, // another callee
		{[2]string{"beta", "alpha"}, [2]int{1, 0}, "other", 3, false},
		{[2]string{"gamma", "alpha"}, [2]int{0, 1}, "cb", 5, false}, // another factor
		{[2]string{"delta", "gamma"}, [2]int{1, 0}, "cb", 3, true},  // the object contains its IR
	} {
		ref := func(k int) string { return "%" + v.names[k] }
		text := fmt.Sprintf("declare void @%s(i64, i64)\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n"+
			"define i64 @f(i64 %%a, i64 %%b) {\n  %s = mul i64 %%a, %d\n  %s = add i64 %%b, 1000\n  call void @%s(i64 %s, i64 %s)\n"+
			"  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %s, i64 %s)\n  %%r = add i64 %s, %s\n  ret i64 %%r\n}\n",
			v.callee, ref(0), v.factor, ref(1), v.callee, ref(0), ref(1), ref(v.order[0]), ref(v.order[1]), ref(0), ref(1))
		path := clitest.TempFile(t, fmt.Sprintf("version%d.ll", n), text)
		source := path
		if v.describe {
			var b strings.Builder
			fmt.Fprintf(&b, "%s@own = constant [%d x i8] c\"", text, len(text))
			for _, c := range []byte(text) {
				fmt.Fprintf(&b, "\\%02x", c)
			}
			b.WriteString("\", section \".reframe.ir\"\n@llvm.used = appending global [1 x ptr] [ptr @own], section \"llvm.metadata\"\n")
			source = clitest.TempFile(t, fmt.Sprintf("described%d.ll", n), b.String())
		}
		all = append(all, dumped{path, livetest.PICObject(t, 19, source, "-O2"), func(x, y string) map[string]string {
			return map[string]string{ref(0): x, ref(1): y}
		}})
	}
	return all
}

// schedule lists the actions of the JIT, and the version that each of its calls runs.
type schedule struct {
	lines []string
	calls []dumped
}

func (s *schedule) add(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// randomSchedule returns a schedule of five versions. Each is dumped before it is registered, after that, partly before, or never. The file of a dump
// is one that is overwritten, or the version's own.
func randomSchedule(r *rand.Rand, versions []dumped, dir string) *schedule {
	s := &schedule{}
	one, habit := r.IntN(2) == 0, r.IntN(4)
	for n := range 5 {
		v := versions[r.IntN(len(versions))]
		file := filepath.Join(dir, "f.ll")
		if !one {
			file = filepath.Join(dir, fmt.Sprintf("f.%d.ll", n))
		}
		how := habit
		if habit == 3 {
			how = r.IntN(5)
		}
		if how == 0 || how == 4 {
			s.add("dump %s %s -1", v.ir, file)
		}
		if how == 1 {
			s.add("dump %s %s %d", v.ir, file, 1+r.IntN(300))
		}
		s.add("load %d %s", n, v.object)
		if how == 1 || how == 2 && habit != 2 || habit == 2 {
			s.add("dump %s %s -1", v.ir, file)
		}
		s.calls = append(s.calls, v)
		s.add("call %d %d %d", n, 1+r.IntN(1000), 5000+r.IntN(1000))
	}
	return s
}

// checkedNames counts the values that a trace of a schedule showed.
type checkedNames struct{ named, all int }

// run traces a schedule, and compares each shown name with the log of the program.
func (s *schedule) run(t *testing.T, host, dir string) (out checkedNames) {
	t.Helper()
	file := clitest.TempFile(t, "schedule", strings.Join(s.lines, "\n")+"\n")
	r := clitest.Run(t, "trace", "--json", "--ir", dir, "-o", filepath.Join(filepath.Dir(file), "exits"), "--", host, file)
	require.Contains(t, []int{0, 1}, r.Code, r.Stderr)
	var truth [][]string
	for line := range strings.Lines(r.Stdout) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "values" {
			truth = append(truth, f[1:])
		}
	}
	require.Len(t, truth, len(s.calls), r.Stdout+r.Stderr)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "exits"))
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		var exit struct {
			Schema string
			Slots  []struct{ Name, Value, Status string }
			Notes  []string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &exit))
		if exit.Schema != "reframe.trace/v1" {
			continue
		}
		require.Len(t, exit.Slots, 2)
		want := s.calls[n].values(truth[n][0], truth[n][1])
		for _, slot := range exit.Slots {
			out.all++
			if strings.HasPrefix(slot.Name, "%") && slot.Status == "ok" {
				out.named++
				require.Equal(t, want[slot.Name], slot.Value, "call %d, %s, of\n%s\nnotes: %q", n, slot.Name, strings.Join(s.lines, "\n"), exit.Notes)
			}
		}
		n++
	}
	require.Equal(t, len(s.calls), n, r.Stderr)
	return out
}

func dumpingHost(t *testing.T) string {
	t.Helper()
	return livetest.CBinary(t, "dumping.c", "-I../../internal/demo/target", "-no-pie")
}

// TestDumpsWhileRunning requires that a trace which started without IR uses the modules that the JIT dumps meanwhile, and that each names only the
// values of its own code.
func TestDumpsWhileRunning(t *testing.T) {
	t.Parallel()
	host, versions := dumpingHost(t), dumpedVersions(t)
	for name, c := range map[string]struct {
		old   []int // versions that are dumped before the process starts
		lines func(s *schedule, dir string)
		named int
	}{
		"a fresh folder": {nil, func(s *schedule, dir string) {
			for n, v := range []int{0, 1, 2} {
				s.add("dump %s %s -1", versions[v].ir, filepath.Join(dir, "f.ll"))
				s.add("load %d %s", n, versions[v].object)
				s.add("call %d 1 2", n)
				s.calls = append(s.calls, versions[v])
			}
			s.add("call 0 3 4") // the module of this code is in the file that was overwritten twice
			s.calls = append(s.calls, versions[0])
		}, 8},
		"old dumps": {[]int{1, 2, 3}, func(s *schedule, dir string) {
			s.add("dump %s %s -1", versions[0].ir, filepath.Join(dir, "f.ll"))
			s.add("load 0 %s", versions[0].object)
			s.add("call 0 1 2")
			s.calls = append(s.calls, versions[0])
		}, 2},
		"old dumps alone, which fit": {[]int{1, 2}, func(s *schedule, _ string) {
			s.add("load 0 %s", versions[0].object)
			s.add("call 0 1 2")
			s.calls = append(s.calls, versions[0])
		}, 0},
		"self-description beside a folder": {[]int{1}, func(s *schedule, _ string) {
			s.add("load 0 %s", versions[6].object)
			s.add("call 0 1 2")
			s.calls = append(s.calls, versions[6])
		}, 2},
		"dumps behind the registration": {nil, func(s *schedule, dir string) {
			for n, v := range []int{0, 2} {
				s.add("load %d %s", n, versions[v].object)
				s.add("dump %s %s -1", versions[v].ir, filepath.Join(dir, "f.ll"))
				s.add("call %d 1 2", n)
				s.calls = append(s.calls, versions[v])
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, s := t.TempDir(), &schedule{}
			for _, v := range c.old {
				text, err := os.ReadFile(versions[v].ir)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("old%d.ll", v)), text, 0o600))
			}
			c.lines(s, dir)
			require.Equal(t, checkedNames{c.named, 2 * len(s.calls)}, s.run(t, host, dir))
		})
	}
}

// TestDumpSchedules requires that no name is wrong, whenever a JIT dumps IR, and whether it overwrites older dumps.
func TestDumpSchedules(t *testing.T) {
	livetest.Slow(t)
	host, versions := dumpingHost(t), dumpedVersions(t)
	var sum checkedNames
	for seed := range livetest.Times(20, 1000) {
		r := rand.New(rand.NewPCG(uint64(seed), 35))
		dir := t.TempDir()
		for n := range r.IntN(4) {
			text, err := os.ReadFile(versions[r.IntN(len(versions))].ir)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f.%d.ll", n)), text, 0o600))
		}
		got := randomSchedule(r, versions, dir).run(t, host, dir)
		sum.named, sum.all = sum.named+got.named, sum.all+got.all
	}
	t.Logf("%d of %d values have a name", sum.named, sum.all)
	require.Greater(t, 5*sum.named, sum.all, "a fifth of all: those of JITs that dump before they register")
}
