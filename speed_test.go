package reframe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patient is from where on a bound on time needs no reason.
const patient = 10 * time.Second

// TestShortTimesSayWhyOnSlowMachines requires that no test depends on a fast machine. Each time under ten seconds that a test, or code that starts
// targets for tests, sleeps, waits or grants must have a comment beside or above it that says why it is enough on a machine 20 times slower; "slow"
// is in it. It is better to wait for an event, bounded by livetest.Patience. A polling interval is no such time.
func TestShortTimesSayWhyOnSlowMachines(t *testing.T) {
	files := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		if strings.HasSuffix(path, "_test.go") && path != "speed_test.go" || strings.HasPrefix(path, "internal/livetest/") {
			files++
			for _, found := range shortTimes(t, path, nil) {
				t.Errorf("%s: a comment has to say why this is enough on a slow machine, or it is to wait for an event (livetest.Patience)", found)
			}
		}
		return nil
	}))
	require.Greater(t, files, 100)
}

// The rule finds what it is to find.
func TestShortTimesAreFound(t *testing.T) {
	for line, short := range map[string]bool{
		"time.Sleep(9 * time.Second)":                                         true,
		"time.Sleep(10 * time.Second)":                                        false,
		"time.Sleep(time.Second)":                                             true,
		"time.Sleep(time.Minute)":                                             false,
		"time.Sleep(20 * time.Millisecond) // until it sleeps":                true,
		"time.Sleep(20 * time.Millisecond) // however slow, it sleeps":        false,
		"// However slow.\n\ttime.Sleep(20 * time.Millisecond)":               false,
		"time.Sleep(time.Duration(n) * time.Second)":                          true,
		"time.AfterFunc(50*time.Millisecond, f)":                              true,
		"_, _ = context.WithTimeout(ctx, 2*time.Second)":                      true,
		"_ = Options{Time: time.Second}":                                      true,
		"_ = row{took: time.Second}":                                          false,
		"const limit = 2 * time.Second":                                       true,
		"require.Eventually(t, f, time.Second, time.Millisecond)":             true,
		"require.Eventually(t, f, livetest.Patience, time.Millisecond)":       false,
		"for !f() {\n\ttime.Sleep(time.Millisecond)\n}":                       true,
		"for ; !f(); time.Sleep(time.Millisecond) {\n}":                       false,
		"require.Less(t, took, 5*time.Second)":                                true,
		`reframe(t, "resume", "--timeout", "2s")`:                             true,
		`reframe(t, "resume", "--timeout=100ms")`:                             true,
		`reframe(t, "trace", "--for", "1m")`:                                  false,
		`reframe(t, "trace", "--for", "0s")`:                                  false, // is refused
		"// However slow.\n\tf()\n\ttime.Sleep(time.Second)":                  true,
		"f(func() {\n\ttime.Sleep(time.Second)\n}) // however slow it may be": true,
	} {
		found := shortTimes(t, "x.go", "package x\n\nfunc x() {\n\t"+line+"\n}\n")
		require.Equal(t, short, len(found) > 0, line)
	}
}

var (
	waits     = regexp.MustCompile(`^(Sleep|After|AfterFunc|Tick|NewTimer|NewTicker|WithTimeout|WithTimeoutCause|Eventually\w*|Never\w*|Less\w*|SetDeadline|Add|N)$`)
	boundKeys = regexp.MustCompile(`(?i)time|limit|patience|wait|delay|grace|until|pause|for$`)
	flagTime  = regexp.MustCompile(`^--(?:timeout|for)=(\S+)$`)
	units     = map[string]time.Duration{"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
)

// shortTimes lists the places of a Go source, a file's if it is nil, where something is given less than ten seconds for no reason.
func shortTimes(t *testing.T, path string, source any) (found []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	reasons := map[int]bool{} // by lines
	for _, group := range file.Comments {
		if strings.Contains(strings.ToLower(group.Text()), "slow") {
			for line := set.Position(group.Pos()).Line; line <= set.Position(group.End()).Line+1; line++ {
				reasons[line] = true
			}
			// Only a comment on lines of its own is for what is below.
			if before := set.Position(group.Pos()); slices.ContainsFunc(file.Decls, func(d ast.Decl) bool { return sharesLine(set, d, before) }) {
				delete(reasons, set.Position(group.End()).Line+1)
			}
		}
	}
	report := func(at token.Pos) {
		if p := set.Position(at); !reasons[p.Line] {
			found = append(found, p.String())
		}
	}
	check := func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			if _, inner := n.(*ast.FuncLit); inner {
				return false
			}
			if e, ok := n.(ast.Expr); ok && isTime(e) {
				if d, known := duration(e); !known || d < patient {
					report(e.Pos())
				}
				return false
			}
			return true
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			if n.Post == nil {
				break
			}
			if call, ok := n.Post.(*ast.ExprStmt); ok { // how often it looks
				if call, ok := call.X.(*ast.CallExpr); ok {
					call.Args = nil
				}
			}
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			args := n.Args
			if strings.HasPrefix(name, "Eventually") && len(args) > 3 {
				args = slices.Delete(slices.Clone(args), 3, 4) // how often it looks
			}
			if waits.MatchString(name) {
				for _, a := range args {
					check(a)
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && boundKeys.MatchString(key.Name) {
				check(n.Value)
			}
		case *ast.ValueSpec:
			for _, v := range n.Values {
				check(v)
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, _ := strconv.Unquote(n.Value)
				if m := flagTime.FindStringSubmatch(text); m != nil {
					text = m[1]
				}
				if d, err := time.ParseDuration(text); err == nil && d > 0 && d < patient {
					report(n.Pos())
				}
			}
		}
		return true
	})
	return found
}

// sharesLine reports whether code of a declaration is in the line before a comment.
func sharesLine(set *token.FileSet, d ast.Decl, comment token.Position) (shares bool) {
	if set.Position(d.End()).Line < comment.Line || set.Position(d.Pos()).Line > comment.Line {
		return false
	}
	ast.Inspect(d, func(n ast.Node) bool {
		if n == nil || shares {
			return false
		}
		for _, at := range []token.Pos{n.Pos(), n.End()} {
			p := set.Position(at)
			_, isComment := n.(*ast.CommentGroup)
			shares = shares || p.Line == comment.Line && p.Column <= comment.Column && !isComment
		}
		_, isComment := n.(*ast.CommentGroup)
		return !isComment
	})
	return shares
}

// isTime reports whether an expression is a unit of package time, or a multiple of one.
func isTime(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && x.Name == "time" && units[e.Sel.Name] > 0
	case *ast.BinaryExpr:
		return e.Op == token.MUL && (isTime(e.X) || isTime(e.Y))
	}
	return false
}

// duration is the value of such an expression, if it is a constant.
func duration(e ast.Expr) (d time.Duration, known bool) {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return units[e.Sel.Name], true
	case *ast.BinaryExpr:
		x, y := e.X, e.Y
		if isTime(x) {
			x, y = y, x
		}
		n, literal := x.(*ast.BasicLit)
		unit, known := duration(y)
		if literal && known {
			v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
			return time.Duration(v * float64(unit)), err == nil
		}
	}
	return 0, false
}
