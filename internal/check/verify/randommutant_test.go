package verify

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// lineChanges lists changes to an instruction's line that keep it valid: a constant, a comparison, an operation, a removed store.
var lineChanges = []struct {
	kind    string
	pattern *regexp.Regexp
	change  func(random *rand.Rand, line string, at []int) string
}{
	{"constant", regexp.MustCompile(`^  %\S+ = (?:add|sub|xor|or|and|mul|icmp \w+)\b.*, (-?\d+)$`), func(random *rand.Rand, line string, at []int) string {
		return line[:at[2]] + fmt.Sprint(random.IntN(100)+2)
	}},
	{"comparison", regexp.MustCompile(`^  %\S+ = icmp (\w+) `), func(random *rand.Rand, line string, at []int) string {
		return line[:at[2]] + []string{"eq", "ne", "slt", "sge", "ult", "ugt"}[random.IntN(6)] + line[at[3]:]
	}},
	{"operation", regexp.MustCompile(`^  %\S+ = (add|sub|xor|or|and|mul)(?: n[su]w| disjoint)* `), func(random *rand.Rand, line string, at []int) string {
		return line[:at[2]] + []string{"add", "sub", "xor", "or", "and", "mul"}[random.IntN(6)] + " " + line[at[1]:]
	}},
	{"stored constant", regexp.MustCompile(`^  store i\d+ (-?\d+), ptr`), func(random *rand.Rand, line string, at []int) string {
		return line[:at[2]] + fmt.Sprint(random.IntN(100)+2) + line[at[3]:]
	}},
	{"store", regexp.MustCompile(`^  store [^,]*, ptr`), func(*rand.Rand, string, []int) string { return "" }},
}

// randomMutant is a module of csmith with one line of one of its functions changed.
type randomMutant struct{ kind, function, was, is, module string }

// linePlace is a line of a function to which one of the changes applies.
type linePlace struct {
	line, change int
	function     string
}

// placesIn returns the places in a module that are executed: csmith writes much code that never runs. The module is compiled with a byte for each
// place. The code at a place sets its byte, and the program writes all bytes to standard error at its end.
func placesIn(t *testing.T, module string) (places []linePlace) {
	t.Helper()
	lines := strings.SplitAfter(module, "\n")
	begin := regexp.MustCompile(`^define .*@(func_\d+|main)\(`)
	function := ""
	var all []linePlace
	for n, line := range lines {
		if m := begin.FindStringSubmatch(line); m != nil {
			function = m[1]
		}
		for k, c := range lineChanges {
			if strings.HasPrefix(function, "func") && c.pattern.MatchString(strings.TrimSuffix(line, "\n")) {
				all = append(all, linePlace{n, k, function})
			}
		}
		if strings.HasPrefix(line, "}") {
			function = ""
		}
	}
	for k, p := range all {
		lines[p.line] = fmt.Sprintf("  store i8 1, ptr getelementptr ([%d x i8], ptr @ran, i64 0, i64 %d)\n", len(all), k) + lines[p.line]
	}
	main := false
	for n, line := range lines {
		main = !strings.HasPrefix(line, "}") && (main || strings.Contains(line, "define ") && strings.Contains(line, "@main("))
		if main && strings.HasPrefix(line, "  ret ") {
			lines[n] = fmt.Sprintf("  %%written = call i64 @write(i32 2, ptr @ran, i64 %d)\n", len(all)) + line
		}
	}
	text := strings.Join(lines, "") + fmt.Sprintf("\n@ran = global [%d x i8] zeroinitializer\ndeclare i64 @write(i32, ptr, i64)\n", len(all))
	var ran bytes.Buffer
	cmd := exec.Command(compiledProgram(t, text, "-O1"))
	cmd.Stderr = &ran
	require.NoError(t, cmd.Run())
	require.Len(t, ran.Bytes(), len(all))
	for k, p := range all {
		if ran.Bytes()[k] == 1 {
			places = append(places, p)
		}
	}
	return places
}

// compiledProgram compiles a module to a program.
func compiledProgram(t *testing.T, module, level string) string {
	t.Helper()
	path, _ := frametest.Written(t, "program.ll", module)
	program := filepath.Join(t.TempDir(), "program")
	livetest.Make(t, livetest.Tool(t, "gcc"), frametest.LLC(t, 19, path, level, "-relocation-model=pic"), "-o", program, "-lm")
	return program
}

// randomMutants returns mutants of a module, each at one of the places.
func randomMutants(random *rand.Rand, module string, places []linePlace, count int) (list []randomMutant) {
	lines := strings.SplitAfter(module, "\n")
	for tries := 0; len(list) < count && tries < 20*count && len(places) > 0; tries++ {
		p := places[random.IntN(len(places))]
		line := strings.TrimSuffix(lines[p.line], "\n")
		c := lineChanges[p.change]
		is := c.change(random, line, c.pattern.FindStringSubmatchIndex(line))
		if is == line || strings.HasPrefix(is, "  %") && strings.Contains(is, "i1 ") { // an i1 is a truth value and not a number
			continue
		}
		list = append(list, randomMutant{c.kind, p.function, line, is, strings.Join(lines[:p.line], "") + is + "\n" + strings.Join(lines[p.line+1:], "")})
	}
	return list
}

// prints returns the output and the exit status of a native program; "" if the program does not end soon.
func prints(t *testing.T, program string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program).CombinedOutput()
	if ctx.Err() != nil {
		return ""
	}
	return fmt.Sprintf("%s%v", out, err)
}

// TestVerifyFindsMutantsOfRandomCode changes one line of random programs before they are compiled, and compares the native code with the unchanged IR
// of clang -O0, at each activation of the function. Each mutant must be found, or print the same as the original.
func TestVerifyFindsMutantsOfRandomCode(t *testing.T) {
	livetest.Slow(t)
	random := rand.New(rand.NewPCG(19, 3))
	found, same, cannot, left := map[string]int{}, map[string]int{}, map[string]int{}, 0
	for n, e := range frametest.Everywheres {
		if !livetest.Whole() && n >= 2 {
			break
		}
		source := livetest.Csmith(t, e.Seed)
		text, err := os.ReadFile(livetest.CModule(t, 19, []string{"-O0", "-fno-inline", "-Xclang", "-disable-O0-optnone", "-w", "-I/usr/include/csmith"}, source))
		require.NoError(t, err)
		// A private global has no symbol: its content cannot be determined.
		original := strings.ReplaceAll(string(text), " = private ", " = internal ")
		m, err := ir.Parse("original.ll", []byte(original))
		require.NoError(t, err)
		want := ""
		for k, mutant := range append([]randomMutant{{"none", "func_1", "", "", original}}, randomMutants(random, original, placesIn(t, original), livetest.Times(6, 30))...) {
			level := []string{"-O0", "-O1", "-O2", "-O3"}[k%4]
			program := compiledProgram(t, mutant.module, level)
			does := prints(t, program)
			if k == 0 {
				want = does
				require.NotEmpty(t, want)
			}
			if does == "" {
				left++ // the mutant does not end
				continue
			}
			o := Options{Options: deopt.Options{Modules: []*ir.Module{m}}, EntriesOf: []*names.Pattern{frametest.Pattern(names.Exact, mutant.function)}, Steps: 20_000, Limit: 60}
			summary, _ := verified(t, []string{program}, o)
			about := fmt.Sprintf("csmith %d, LLVM 19 %s, @%s: %q is %q", e.Seed, level, mutant.function, mutant.was, mutant.is)
			switch {
			case summary.Different > 0:
				require.NotEqual(t, "none", mutant.kind, about)
				found[mutant.kind]++
			case does == want:
				same[mutant.kind]++
			case summary.NotComparable > 0 || summary.Exits == o.Limit:
				cannot[mutant.kind]++ // the reason is reported
				t.Logf("%s: %d entries, %v", about, summary.Exits, summary.Reasons)
			default:
				t.Errorf("%s: not found in %d activations, and it prints %s", about, summary.Exits, does)
			}
		}
	}
	t.Logf("found %v, doing the same %v, not comparable %v, %d that do not end", found, same, cannot, left)
	require.NotEmpty(t, found)
}
