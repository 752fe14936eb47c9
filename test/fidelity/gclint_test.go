package fidelity_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/gclint"
	"example.com/reframe/test/livetest"
)

// notByThePass lists functions of LLVM's own tests whose pairs of base and derived pointer are wrong. Most were written by hand, without valid pairs.
// In intrinsics.ll, rewrite-statepoints-for-gc itself makes three pointers with an offset their own bases.
var notByThePass = map[string]bool{
	"statepoint-stack-usage.ll back_to_back_calls": true, "statepoint-stack-usage.ll reserve_first": true, "statepoint-stack-usage.ll back_to_back_invokes": true,
	"intrinsics.ll test_chained": true,
}

// TestGCLintOfLLVMsTests requires no certain or likely finding in the statepoint tests of LLVM 19, both unchanged and after
// rewrite-statepoints-for-gc of each release that accepts them.
func TestGCLintOfLLVMsTests(t *testing.T) {
	livetest.OnlyWhole(t)
	dir, files := llvmTests(t, "Transforms/RewriteStatepointsForGC")
	_, code := llvmTests(t, "CodeGen")
	for _, file := range code {
		if strings.Contains(filepath.Base(file), "statepoint") {
			files = append(files, file)
		}
	}
	var mu sync.Mutex
	modules, functions, safepoints, possible, wrong := 0, 0, 0, 0, []string{}
	inParallel(files, func(file string) {
		texts := []string{file}
		out := t.TempDir()
		for _, version := range []int{14, 16, 19, 22} {
			into := filepath.Join(out, fmt.Sprintf("%d.ll", version))
			ctx, stop := context.WithTimeout(t.Context(), livetest.Patience)
			if exec.CommandContext(ctx, livetest.LLVM(t, version, "opt"), "-passes=rewrite-statepoints-for-gc", "-S", "-o", into, filepath.Join(dir, file)).Run() == nil {
				texts = append(texts, into)
			}
			stop()
		}
		for _, path := range texts {
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			m, err := ir.ParseFile(path)
			if err != nil {
				continue // TestModulesOfLLVMsTestsAreRead
			}
			r, err := gclint.Check([]*ir.Module{m}, new(gclint.Collectors))
			mu.Lock()
			if err != nil {
				wrong = append(wrong, err.Error())
				mu.Unlock()
				continue
			}
			modules, functions, safepoints, possible = modules+1, functions+r.Functions, safepoints+r.Safepoints, possible+r.Count(gclint.Possible)
			for _, f := range r.Findings {
				if f.Certainty != gclint.Possible && !notByThePass[filepath.Base(file)+" "+f.Function] {
					wrong = append(wrong, fmt.Sprintf("%s (%s) line %d: @%s: %s", file, filepath.Base(path), f.Line, f.Function, f.What))
				}
			}
			mu.Unlock()
		}
	})
	t.Logf("%d modules, %d functions, %d safepoints, %d possible findings", modules, functions, safepoints, possible)
	require.Empty(t, wrong)
	require.Greater(t, safepoints, 1000)
}

// gcRelease is a release with the type of its managed pointers.
type gcRelease struct {
	version int
	pointer string
}

// TestGCLintMutants requires that a correct random function has no finding, and that each of its mutants has the finding of its mistake: a root that was
// dropped from a bundle and is used, a base that was replaced by another entry, a copy by ptrtoint that is used after a safepoint.
func TestGCLintMutants(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	made, found := map[string]int{}, map[string]int{}
	safepoints := 0
	want := livetest.Times(15, 1000)
	for _, release := range []gcRelease{{14, "i8 addrspace(1)*"}, {19, "ptr addrspace(1)"}, {22, "ptr addrspace(1)"}} {
		path := filepath.Join(t.TempDir(), "random.ll")
		require.NoError(t, os.WriteFile(path, []byte(randomGC(rand.New(rand.NewPCG(40, uint64(release.version))), release.pointer, want/3+5)), 0o600))
		out, err := exec.Command(livetest.LLVM(t, release.version, "opt"), "-passes=rewrite-statepoints-for-gc,verify", "-S", path).Output()
		require.NoError(t, err)
		declared, functions := splitFunctions(string(out))
		for _, kind := range []string{"dropped root", "swapped base", "stale copy"} {
			for k, n := 0, 0; n < (want+2)/3; k++ {
				text := functions[k%len(functions)]
				if kind == "dropped root" {
					r := gcChecked(t, declared+text)
					require.Empty(t, r.Findings, text)
					safepoints += r.Safepoints
				}
				require.Less(t, k, 20*len(functions), "too few mutants of kind %s", kind)
				mutant, mistake, ok := mutate(rand.New(rand.NewPCG(uint64(k), 1)), kind, declared, text, release.pointer)
				if !ok {
					continue
				}
				n++
				made[kind]++
				if r := gcChecked(t, declared+mutant); slices.ContainsFunc(r.Findings, mistake.is) {
					found[kind]++
				} else if made[kind]-found[kind] < 3 {
					t.Logf("no finding: %s\n%s\n%s", kind, text, mutant)
				}
			}
		}
	}
	t.Logf("mutants: %v, found: %v; %d safepoints of correct functions without a finding", made, found, safepoints)
	require.Equal(t, made["dropped root"], found["dropped root"])
	require.Equal(t, made["stale copy"], found["stale copy"])
	require.Equal(t, made["swapped base"], found["swapped base"])
}

// mistake describes the finding that a mutant must have.
type mistake struct {
	rules     []gclint.Rule
	value     string // "" for any value that is computed from origin
	origin    string
	safepoint int // line
}

func (m mistake) is(f gclint.Finding) bool {
	return slices.Contains(m.rules, f.Rule) && (m.value == "" || m.value == f.Value) && m.origin == f.Origin && f.Safepoint != nil && f.Safepoint.Line == m.safepoint
}

// objects returns the values that a pointer may be computed from: parameters, and results of calls other than gc.relocate.
func objects(v ir.Value, into map[string]bool, seen map[ir.Value]bool) {
	if seen[v] {
		return
	}
	seen[v] = true
	in, ok := v.(*ir.Instr)
	if !ok {
		into[v.Ref()] = true
		return
	}
	_, pair, relocated, _ := in.Relocation()
	var from []ir.Value
	switch {
	case relocated:
		from = []ir.Value{pair.Derived}
	case in.Op == ir.OpGEP, in.Op == ir.OpBitCast:
		from = in.Args[:1]
	case in.Op == ir.OpPhi:
		from = in.Args
	case in.Op == ir.OpSelect:
		from = in.Args[1:]
	default:
		into[v.Ref()] = true
	}
	for _, u := range from {
		objects(u, into, seen)
	}
}

func gcChecked(t *testing.T, text string) *gclint.Report {
	t.Helper()
	m, err := ir.Parse("random.ll", []byte(text))
	require.NoError(t, err)
	r, err := gclint.Check([]*ir.Module{m}, new(gclint.Collectors))
	require.NoError(t, err, text)
	return r
}

// splitFunctions separates the definitions of a module from the rest.
func splitFunctions(text string) (rest string, functions []string) {
	for text != "" {
		at := strings.Index(text, "define ")
		if at < 0 {
			break
		}
		end := strings.Index(text[at:], "\n}\n") + at + 3
		rest, functions, text = rest+text[:at], append(functions, text[at:end]), text[end:]
	}
	return rest + text, functions
}

// randomGC makes n functions of loops, branches, derived pointers and calls that may collect.
func randomGC(r *rand.Rand, pointer string, n int) string {
	g := &gcWriter{r: r, pointer: pointer}
	fmt.Fprintf(&g.text, "declare void @collect()\ndeclare %s @new()\ndeclare i1 @more()\n", pointer)
	for k := range n {
		g.next, g.block = 0, "entry"
		fmt.Fprintf(&g.text, "define i8 @f%d(%s %%p0, %s %%p1, %s %%p2, i64 %%n) gc \"statepoint-example\" {\nentry:\n", k, pointer, pointer, pointer)
		live := g.statements([]string{"%p0", "%p1", "%p2"}, 3)
		for _, v := range live {
			g.load(v)
		}
		g.text.WriteString("  ret i8 0\n}\n")
	}
	return g.text.String()
}

type gcWriter struct {
	r       *rand.Rand
	pointer string
	text    strings.Builder
	next    int
	block   string // the name of the current block
}

func (g *gcWriter) name(prefix string) string {
	g.next++
	return prefix + strconv.Itoa(g.next)
}

func (g *gcWriter) load(v string) {
	fmt.Fprintf(&g.text, "  %%%s = load volatile i8, %s %s\n", g.name("x"), g.pointer, v)
}

func (g *gcWriter) start(block string) {
	fmt.Fprintf(&g.text, "%s:\n", block)
	g.block = block
}

// statements writes statements and returns the pointers that are visible after them.
func (g *gcWriter) statements(live []string, depth int) []string {
	live = slices.Clone(live)
	pick := func() string { return live[g.r.IntN(len(live))] }
	for range 3 + g.r.IntN(4) {
		switch kind := g.r.IntN(7); {
		case kind == 0:
			v := "%" + g.name("d")
			index := []string{"8", "24", "%n"}[g.r.IntN(3)]
			fmt.Fprintf(&g.text, "  %s = getelementptr i8, %s %s, i64 %s\n", v, g.pointer, pick(), index)
			live = append(live, v)
		case kind == 1:
			v := "%" + g.name("o")
			fmt.Fprintf(&g.text, "  %s = call %s @new()\n", v, g.pointer)
			live = append(live, v)
		case kind == 2:
			g.load(pick())
		case kind == 3 && depth > 0: // a branch
			c, a, b, end := g.name("c"), g.name("then"), g.name("else"), g.name("end")
			fmt.Fprintf(&g.text, "  %%%s = call i1 @more()\n  br i1 %%%s, label %%%s, label %%%s\n", c, c, a, b)
			g.start(a)
			x := g.statements(live, depth-1)
			fromA := g.block
			fmt.Fprintf(&g.text, "  br label %%%s\n", end)
			g.start(b)
			y := g.statements(live, depth-1)
			fromB := g.block
			fmt.Fprintf(&g.text, "  br label %%%s\n", end)
			g.start(end)
			v := "%" + g.name("v")
			fmt.Fprintf(&g.text, "  %s = phi %s [ %s, %%%s ], [ %s, %%%s ]\n", v, g.pointer, x[g.r.IntN(len(x))], fromA, y[g.r.IntN(len(y))], fromB)
			live = append(live, v)
		case kind == 4 && depth > 0: // a loop that replaces one pointer
			before, head, end, v := g.block, g.name("head"), g.name("end"), "%"+g.name("v")
			fmt.Fprintf(&g.text, "  br label %%%s\n", head)
			g.start(head)
			at := g.text.Len()
			first := pick()
			inner := g.statements(append(slices.Clone(live), v), depth-1)
			c := g.name("c")
			fmt.Fprintf(&g.text, "  %%%s = call i1 @more()\n  br i1 %%%s, label %%%s, label %%%s\n", c, c, head, end)
			phi := fmt.Sprintf("  %s = phi %s [ %s, %%%s ], [ %s, %%%s ]\n", v, g.pointer, first, before, inner[g.r.IntN(len(inner))], g.block)
			written := g.text.String()
			g.text.Reset()
			g.text.WriteString(written[:at] + phi + written[at:])
			g.start(end)
			live = append(live, v)
		case kind == 5:
			c, v := g.name("c"), "%"+g.name("s")
			fmt.Fprintf(&g.text, "  %%%s = icmp ugt i64 %%n, %d\n  %s = select i1 %%%s, %s %s, %s %s\n", c, g.r.IntN(9), v, c, g.pointer, pick(), g.pointer, pick())
			live = append(live, v)
		default:
			g.text.WriteString("  call void @collect()\n")
		}
	}
	return live
}

var (
	relocateLine = regexp.MustCompile(`(?m)^  (%\S+) = call coldcc .*@llvm\.experimental\.gc\.relocate\.\S*\(token (%\S+), i32 (\d+), i32 (\d+)\).*\n`)
	liveBundle   = regexp.MustCompile(`"gc-live"\(([^\]]*)\) \]`)
)

// mutate plants one mistake in a rewritten function, and returns the finding that it must have. It returns false if the function has no place for it.
// A base is replaced by a pointer that is never computed from the same object as the derived pointer.
func mutate(r *rand.Rand, kind, declared, text, pointer string) (mutant string, must mistake, ok bool) {
	all := relocateLine.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "", mistake{}, false
	}
	one := all[r.IntN(len(all))]
	line, name, token := one[0], one[1], one[2]
	base, _ := strconv.Atoi(one[3])
	derived, _ := strconv.Atoi(one[4])
	at := strings.Index(text, "  "+token+" = ")
	end := at + strings.Index(text[at:], "\n") + 1
	statepoint := text[at:end]
	bundle := liveBundle.FindStringSubmatch(statepoint)
	live := strings.Split(bundle[1], ", ")
	value := func(k int) string { return live[k][strings.LastIndex(live[k], " ")+1:] }
	must = mistake{origin: value(derived)}
	defer func() {
		must.safepoint = 1 + strings.Count(declared, "\n") + strings.Count(mutant[:max(0, strings.Index(mutant, "  "+token+" = "))], "\n")
	}()
	switch kind {
	case "dropped root":
		must.rules = []gclint.Rule{gclint.StaleUse}
		text = strings.Replace(text, line, line+fmt.Sprintf("  %%used = load volatile i8, %s %s\n", pointer, name), 1)
		var out strings.Builder
		renamed := map[string]string{}
		for _, l := range strings.SplitAfter(text, "\n") {
			m := relocateLine.FindStringSubmatch(l)
			if m == nil || m[2] != token {
				out.WriteString(l)
				continue
			}
			b, _ := strconv.Atoi(m[3])
			d, _ := strconv.Atoi(m[4])
			if d == derived || b == derived { // of a base: of all that is derived from it
				renamed[m[1]] = value(d)
				continue
			}
			less := func(k int) int {
				if k > derived {
					k--
				}
				return k
			}
			out.WriteString(strings.Replace(l, fmt.Sprintf("i32 %d, i32 %d)", b, d), fmt.Sprintf("i32 %d, i32 %d)", less(b), less(d)), 1))
		}
		mutant = strings.Replace(out.String(), statepoint, strings.Replace(statepoint, bundle[0],
			`"gc-live"(`+strings.Join(slices.Delete(slices.Clone(live), derived, derived+1), ", ")+") ]", 1), 1)
		for from, to := range renamed {
			mutant = regexp.MustCompile(regexp.QuoteMeta(from)+`([^.\w])`).ReplaceAllString(mutant, strings.ReplaceAll(to, "$", "$$")+"$1")
		}
		return mutant, must, true
	case "swapped base":
		other := r.IntN(len(live))
		if other == base || value(other) == value(base) || strings.HasPrefix(live[other], "<") {
			return "", must, false
		}
		m, err := ir.Parse("random.ll", []byte(declared+text))
		if err != nil {
			return "", must, false
		}
		named := m.Funcs[slices.IndexFunc(m.Funcs, func(f *ir.Func) bool { return !f.Declared() })]
		sets := [2]map[string]bool{{}, {}}
		for k, name := range []string{value(derived), value(other)} {
			v := named.Value(strings.TrimPrefix(name, "%"))
			if v == nil { // a constant
				return "", must, false
			}
			objects(v, sets[k], map[ir.Value]bool{})
		}
		for object := range sets[0] {
			if sets[1][object] {
				return "", must, false
			}
		}
		must = mistake{rules: []gclint.Rule{gclint.WrongBase, gclint.OwnBase}, value: value(derived), origin: value(other)}
		return strings.Replace(text, line, strings.Replace(line, fmt.Sprintf("i32 %d, i32 %d)", base, derived), fmt.Sprintf("i32 %d, i32 %d)", other, derived), 1), 1), must, true
	default:
		must = mistake{rules: []gclint.Rule{gclint.StaleCopy}, value: "%back", origin: "%copied"}
		text = strings.Replace(text, statepoint, fmt.Sprintf("  %%copied = ptrtoint %s to i64\n", live[derived])+statepoint, 1)
		return strings.Replace(text, line, line+fmt.Sprintf("  %%back = inttoptr i64 %%copied to %s\n  %%read = load volatile i8, %s %%back\n", pointer, pointer), 1), must, true
	}
}
