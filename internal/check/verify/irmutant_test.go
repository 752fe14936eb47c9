package verify

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// irMutant is baseline.ll and its layout with one mistake, in the bundle, in the layout or in the optimized code. The author of a JIT writes these
// parts.
type irMutant struct{ kind, what, module, layout string }

// irMutants returns all mutants of @plain_opt and of the layout, without duplicates.
func irMutants(module, layout string) (list []irMutant) {
	seen := map[string]bool{module + layout: true}
	add := func(kind, what, m, l string) {
		if !seen[m+l] {
			seen[m+l] = true
			list = append(list, irMutant{kind, what, m, l})
		}
	}
	begin := strings.Index(module, "define i64 @plain_opt(")
	end := begin + strings.Index(module[begin:], "; What the runtime")
	head, body, tail := module[:begin], module[begin:end], module[end:]
	in := func(kind, old, new string, at int) { // at selects one of several occurrences of old
		for n, from := 0, 0; ; n++ {
			k := strings.Index(body[from:], old)
			if k < 0 {
				return
			}
			from += k + len(old)
			if n == at {
				add(kind, fmt.Sprintf("%q is %q", old, new), head+body[:from-len(old)]+new+body[from:]+tail, layout)
				return
			}
		}
	}

	// These mutants of the bundle exchange operands, or replace them by other values, or by stale values of an earlier iteration.
	operands := []string{"%n", "%i", "%acc"}
	bundle := func(kind string, values []string, before ...string) {
		list := "i64 " + strings.Join(values, ", i64 ")
		for _, both := range []bool{true, false} {
			m := strings.Replace(body, "i32 0, i64 %n, i64 %i, i64 %acc)", "i32 0, "+list+")", 1)
			if both {
				m = strings.Replace(m, "@resumed(i64 %n, i64 %i, i64 %acc)", "@resumed("+list+")", 1)
			}
			for n := 0; n < len(before); n += 2 {
				m = strings.Replace(m, before[n], before[n+1], 1)
			}
			add(kind, fmt.Sprintf("%v, handed to the runtime: %v", values, both), head+m+tail, layout)
		}
	}
	for a := range operands {
		for b := range operands {
			values := []string{operands[0], operands[1], operands[2]}
			if a < b {
				values[a], values[b] = values[b], values[a]
				bundle("exchanged", values)
			}
		}
		for _, other := range []string{"%n", "%start", "%i", "%acc", "%k", "%v", "0", "1"} {
			values := []string{operands[0], operands[1], operands[2]}
			values[a] = other
			bundle("replaced", values)
		}
		values := []string{operands[0], operands[1], operands[2]}
		values[a] = "%x"
		for _, change := range []string{"add", "sub", "mul", "xor"} {
			bundle("computed", values, "exit:\n", "exit:\n  %x = "+change+" i64 "+operands[a]+", 2\n")
		}
		if a > 0 {
			bundle("stale", values, "  %k = and", fmt.Sprintf("  %%x = phi i64 [ 0, %%entry ], [ %s, %%usual ]\n  %%k = and", operands[a]))
		}
	}

	// These mutants of the layout change numbers of operands, names and the block.
	for a := range 3 {
		for b := range 3 {
			for _, part := range []string{`"operand":%d,`, `"name":"%s"`} {
				x, y := fmt.Sprintf(part, a), fmt.Sprintf(part, b)
				if strings.Contains(part, "name") {
					x, y = fmt.Sprintf(part, operands[a]), fmt.Sprintf(part, operands[b])
				}
				add("layout", x+" is "+y, module, strings.Replace(layout, x, y, 1))
				if a < b {
					add("layout", x+" and "+y, module, strings.NewReplacer(x, y, y, x).Replace(layout))
				}
			}
		}
	}
	for _, block := range []string{"entry", "fast", "slow", "next", "done"} {
		add("layout", "block "+block, module, strings.Replace(layout, `"block":"loop"`, fmt.Sprintf(`"block":%q`, block), 1))
	}

	// These mutants change the optimized code.
	constants := regexp.MustCompile(`(and i64 %i, |%v, |add i64 %i, |\[ )(\d+)`)
	for _, at := range constants.FindAllStringSubmatchIndex(body, -1) {
		for _, other := range []string{"0", "1", "2", "3", "7", "14", "29", "31", "100"} {
			add("constant", body[at[0]:at[1]]+" is "+other, head+body[:at[4]]+other+body[at[5]:]+tail, layout)
		}
	}
	for _, predicate := range []string{"eq", "ne", "ult", "ule", "uge", "slt", "sgt"} {
		in("comparison", "icmp ugt", "icmp "+predicate, 0)
		in("comparison", "icmp ult", "icmp "+predicate, 0)
	}
	in("store", "  store i64 %acc1, ptr @last\n", "", 0)
	for _, other := range []string{"%acc", "%i", "%f", "%n"} {
		in("store", "store i64 %acc1", "store i64 "+other, 0)
	}
	for _, change := range [][2]string{
		{"mul i64 %v, %i", "mul i64 %i, %v"}, {"mul i64 %v, %i", "mul i64 %v, %v"}, {"mul i64 %v, %i", "add i64 %v, %i"}, {"mul i64 %v, %i", "mul i64 %v, %k"}, {"mul i64 %v, %i", "mul i64 %v, %n"},
		{"add i64 %acc, %f", "add i64 %f, %acc"}, {"add i64 %acc, %f", "sub i64 %acc, %f"}, {"add i64 %acc, %f", "xor i64 %acc, %f"}, {"add i64 %acc, %f", "add i64 %acc, %v"}, {"add i64 %acc, %f", "or i64 %acc, %f"},
		{"icmp ugt i64 %v, 30", "icmp ugt i64 %i, 30"}, {"icmp ult i64 %i1, %n", "icmp ult i64 %i, %n"}, {"icmp ult i64 %i1, %n", "icmp ult i64 %n, %i1"},
		{"i64 0, i64 %k", "i64 0, i64 %i"}, {"[ %start, %entry ]", "[ %n, %entry ]"}, {"[ %acc1, %usual ]", "[ %f, %usual ]"}, {"[ %i1, %usual ]", "[ %i, %usual ]"},
		{"label %exit, label %usual", "label %usual, label %exit"}, {"add i64 %i, 1", "sub i64 %i, 1"}, {"load i64, ptr %p", "load i64, ptr @numbers"}, {"ptr @line, i64 %n", "ptr @line, i64 %start"}, {"ret i64 %acc1", "ret i64 %f"}, {"ret i64 %acc1", "ret i64 %n"},
	} {
		in("operand", change[0], change[1], 0)
	}
	return list
}

// mutantRounds is the number of calls with which each mutant is run: entry(0), entry(1), ...
const mutantRounds = 3

// does returns the behavior of a module in these calls: results, output, memory. ok is false if an exit resumes with a state that the baseline never
// has at that place. An exit that is taken earlier or later is not wrong.
func (m *irMutant) does(t *testing.T, e *layout.Exit) (out string, ok bool) {
	t.Helper()
	// The exit prints the values that the layout gives it.
	text := strings.Replace(m.module, "define i64 @plain(", "@shown = constant [18 x i8] c\"exit %ld %ld %ld\\0A\\00\"\ndefine i64 @plain(", 1)
	site := regexp.MustCompile(`  call void \(i64, i32, \.\.\.\) @llvm\.experimental\.stackmap\(i64 95, i32 0, (.*)\)\n`)
	given := strings.Split(site.FindStringSubmatch(text)[1], ", ")
	shown := map[string]string{}
	for _, s := range e.Slots {
		shown[s.Name] = given[s.Operand]
	}
	line := ""
	if len(shown) == 3 {
		line = fmt.Sprintf("  %%shown = call i32 (ptr, ...) @printf(ptr @shown, %s, %s, %s)\n", shown["%n"], shown["%i"], shown["%acc"])
	}
	text = site.ReplaceAllString(text, line)
	text = strings.Replace(text, "  %k = and", "  %state = call i32 (ptr, ...) @printf(ptr @shown, i64 %n, i64 %i, i64 %acc)\n  %k = and", 1) // of @plain
	module, err := ir.Parse("mutant.ll", []byte(text))
	require.NoError(t, err)
	ok = e.Resume.Block == "loop" && len(shown) == 3
	for n := range mutantRounds {
		in, err := interp.New(module, interp.Options{MaxSteps: 1e6})
		require.NoError(t, err)
		r, err := in.Call(context.Background(), module.Func("entry"), []interp.Value{interp.FromUint(ir.I64, uint64(n))})
		if err != nil { // the mutant does not end, or faults, so there is no native run to compare
			return "", false
		}
		baseline, err := interp.New(module, interp.Options{MaxSteps: 1e6})
		require.NoError(t, err)
		states, err := baseline.Call(context.Background(), module.Func("plain"), []interp.Value{interp.FromUint(ir.I64, uint64(n&7+6)), interp.FromUint(ir.I64, 1)})
		require.NoError(t, err)
		for line := range strings.Lines(r.Output) {
			if strings.HasPrefix(line, "exit ") {
				ok = ok && strings.Contains(states.Output, line)
				continue
			}
			out += line
		}
		out += r.Value.Format() + "\n"
		for page := range in.Touched() {
			out += fmt.Sprintf("%x\n", page.Data)
		}
	}
	return out, ok
}

// TestVerifyFindsMutantsOfWhatJITsWrite requires that each mutant of a bundle, a layout or optimized code is found, or behaves as the original on the
// same inputs. The mutants of one kind are spread over releases and levels.
func TestVerifyFindsMutantsOfWhatJITsWrite(t *testing.T) {
	livetest.Slow(t)
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "baseline.ll"))
	require.NoError(t, err)
	exits, err := os.ReadFile(livetest.Testdata(t, "programs", "baseline.layout.json"))
	require.NoError(t, err)
	original := irMutant{"none", "", string(source), string(exits)}
	right, err := layout.Parse("baseline.layout.json", exits)
	require.NoError(t, err)
	want, ok := original.does(t, &right.Exits[0])
	require.True(t, ok)
	list := irMutants(original.module, original.layout)
	found, same, cannot, endless := map[string]int{}, map[string]int{}, 0, 0
	turn := -1
	for _, version := range []int{14, 16, 19, 22} {
		for _, level := range []string{"-O0", "-O1", "-O2", "-O3"} {
			for _, m := range list {
				// Select the same mutants in each run, because the share of a short run must contain a fault of each kind that is found.
				if turn++; turn%livetest.Step(47) != 0 {
					continue
				}
				l, err := layout.Parse("baseline.layout.json", []byte(m.layout))
				if err != nil { // a duplicate name
					found[m.kind]++
					continue
				}
				does, ok := m.does(t, &l.Exits[0])
				if does == "" {
					endless++
					continue
				}
				about := fmt.Sprintf("%s: %s, LLVM %d %s", m.kind, m.what, version, level)
				path, module := frametest.Written(t, "baseline.ll", m.module)
				flags := []string{level, "-relocation-model=pic"}
				if version == 14 {
					flags = append(flags, "-opaque-pointers")
				}
				o := Options{FromEntry: true, Steps: 20_000}
				o.Modules, o.Layouts = append(o.Modules, module), append(o.Layouts, l)
				summary, all := verified(t, livetest.ObjectHostCommand(t, frametest.LLC(t, version, path, flags...), livetest.ObjectHostOptions{Rounds: mutantRounds}), o)
				switch {
				case summary.Different > 0:
					found[m.kind]++
				case does == want && ok:
					same[m.kind]++
				case summary.NotComparable > 0:
					cannot++ // the reason is reported
					t.Logf("%s: %v", about, summary.Reasons)
				default:
					t.Errorf("%s: not found, and it does (%v)\n%sin the place of\n%s%d exits, %v", about, ok, does, want, len(all), summary.Reasons)
				}
			}
		}
	}
	t.Logf("%d mutants of each way; found %v, doing the same %v, %d that no exit can be resumed with, %d that do not end", len(list), found, same, cannot, endless)
	for _, kind := range []string{"exchanged", "replaced", "stale", "layout", "constant", "comparison", "store", "operand"} {
		require.Positive(t, found[kind], kind)
	}
}
