package lint_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/livetest"
)

// TestLintAgreesWithTheInterpreter gives the interpreter, at each site of the test modules, the values that lint expects in the record. It requires
// that the interpreter misses exactly the values that lint reports as missing.
func TestLintAgreesWithTheInterpreter(t *testing.T) {
	t.Parallel()
	held := 0
	for _, dir := range []string{"programs", "lint"} {
		files, err := filepath.Glob(livetest.Testdata(t, dir) + "/*.ll")
		require.NoError(t, err)
		for _, path := range files {
			m, err := ir.ParseFile(path)
			require.NoError(t, err)
			report, err := lint.Lint([]*ir.Module{m}, nil)
			require.NoError(t, err)
			for _, f := range m.Funcs {
				siteList, err := f.Sites()
				require.NoError(t, err)
				for _, s := range siteList {
					if s.Kind == ir.DeoptimizeSite || s.Instr.Op == ir.OpInvoke || !sites.Emits(f) {
						continue // resumes elsewhere (deoptimize), after a phi (invoke), or has no code
					}
					require.ElementsMatch(t, saidMissing(report, s), missedAt(t, s), "%s, line %d", path, s.Instr.Line)
					held++
				}
			}
		}
	}
	require.GreaterOrEqual(t, held, 43)
}

// saidMissing lists the values of a site that lint reports as required and missing.
func saidMissing(r *lint.Report, s *ir.Site) (names []string) {
	for _, f := range r.Findings {
		if f.Line == s.Instr.Line && f.Severity == lint.CannotResume && (f.Rule == lint.Unrecorded || f.Rule == lint.GCLiveUnnamed || f.Rule == lint.LostOperand || f.Rule == lint.NotCompiled) {
			names = append(names, f.Names...)
		}
	}
	return names
}

// missedAt lists the values that the interpreter misses at a site if it gets the recorded ones. These are the operands that are not lost, the gc
// pointer without a name if there is only one, and the result of the call.
func missedAt(t *testing.T, s *ir.Site) []string {
	t.Helper()
	values := map[ir.Value]interp.Value{}
	give := func(v ir.Value) {
		if sites.NameOf(v) == "" {
			return
		}
		if bytes := s.Func.Module.Layout.StoreSize(v.Type()); bytes > 0 {
			value, err := interp.FromBytes(s.Func.Module.Layout, v.Type(), make([]byte, bytes))
			require.NoError(t, err)
			values[v] = value
		}
	}
	for _, v := range s.Live {
		if rule, _, _ := lint.Loss(s, v); rule == "" {
			give(v)
		}
	}
	at := interp.Point{Block: s.Instr.Block, Index: s.Instr.Index}
	if s.Kind != ir.StackMapSite {
		at.Index++
		if r := s.Result(); r != nil {
			give(r)
		}
	}
	gc := slices.DeleteFunc(slices.Clone(s.GCLive), func(v ir.Value) bool { return slices.Contains(s.Live, v) })
	if s.Kind == ir.StatepointSite && s.GCLive == nil && s.Func.GC != "" {
		live, err := ir.LiveAt(at.Block, at.Index) // rewrite-statepoints-for-gc has not added the bundle yet
		require.NoError(t, err)
		for _, v := range live {
			if v.Type().Kind == ir.PointerKind && v.Type().AddrSpace == 1 && !slices.Contains(s.Live, v) {
				gc = append(gc, v)
			}
		}
	}
	if len(gc) == 1 {
		give(gc[0])
	}
	interp.Tell(values)
	in, err := interp.New(s.Func.Module, interp.Options{MaxSteps: 1})
	require.NoError(t, err)
	_, err = in.Resume(context.Background(), at, values)
	var missing *interp.MissingError
	if errors.As(err, &missing) {
		return missing.Names
	}
	return nil
}

// FuzzLint requires that lint ends for any module or layout, and that each finding names a place in it.
func FuzzLint(f *testing.F) {
	described, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "lint", "guard.layout.json"))
	require.NoError(f, err)
	for _, dir := range []string{"lint", "programs"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", dir, "*.ll"))
		require.NoError(f, err)
		for _, path := range files {
			text, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(text, described)
		}
	}
	f.Fuzz(func(t *testing.T, text, described []byte) {
		m, err := ir.Parse("m.ll", text)
		if err != nil {
			return
		}
		var layouts []*layout.Layout
		if l, err := layout.Parse("l.json", described); err == nil {
			layouts = append(layouts, l)
		}
		report, err := lint.Lint([]*ir.Module{m}, layouts)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		for _, found := range report.Findings {
			require.True(t, found.Line > 0 || found.Path != "", "%+v", found)
			require.LessOrEqual(t, len(found.Names), lint.MaxNames)
		}
	})
}

// TestLintMutants drops each token of the test modules once, and requires that lint never panics on a module that still parses.
func TestLintMutants(t *testing.T) {
	t.Parallel()
	taken := 0
	files, err := filepath.Glob(livetest.Testdata(t, "lint") + "/*.ll")
	require.NoError(t, err)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, token := range mutantTokens.FindAllIndex(text, -1) {
			m, err := ir.Parse("mutant.ll", slices.Concat(text[:token[0]], text[token[1]:]))
			if err != nil || m.Check() != nil {
				continue
			}
			if _, err = lint.Lint([]*ir.Module{m}, nil); err == nil {
				taken++
			}
		}
	}
	require.Greater(t, taken, 100)
}

var mutantTokens = regexp.MustCompile(`[-\w.%@$#"!]+|[^\s\w]`)
