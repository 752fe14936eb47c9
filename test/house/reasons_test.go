package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// untyped lists the packages that still have functions which return a reason as text.
var untyped = []string{"deopt", "internal/check/trace", "internal/check/verify", "internal/debug/session", "internal/llvm/sites", "internal/progspace/patched",
	"internal/static/maps", "internal/vm/condition", "ptrace", "ptrace/tracer"}

// TestReasonsAreErrors requires that the product keeps reasons as errors until it prints them: a function does not return a reason as a string, and the
// text of a reason, a note or an error is not searched or taken apart.
func TestReasonsAreErrors(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if e.IsDir() {
			if slices.Contains([]string{"test", "bench", "scripts", "testdata"}, name) || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") && name != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if name == "replay/scriptexpect.go" { // a script compares a reason with a pattern that its author wrote
			return nil
		}
		for _, mistake := range reasonsAsText(set, f, !slices.Contains(untyped, filepath.ToSlash(filepath.Dir(name)))) {
			t.Errorf("%s:%s", name, mistake)
		}
		return nil
	})
	require.NoError(t, err)
}

// TestReasonsAsText requires that planted mistakes are found.
func TestReasonsAsText(t *testing.T) {
	const source = `package p
func find() (is bool, why string) { return }
func ended() (reason string) { return }
func typed() (why error) { return }
func parse(s *slot, err error, why, text string) {
	_ = strings.HasPrefix(s.Reason, "cut short")
	_ = strings.Contains(err.Error(), "no such file")
	_ = digits.ReplaceAllString(why, "")
	_, _, _ = strings.Cut(s.Why.Error(), ": ")
	_ = slices.DeleteFunc(notes, func(note string) bool { return strings.HasSuffix(note, "guess") })
	_ = strings.HasPrefix(text, "0x")
	_ = strings.Join(s.Notes, "; ")
}`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	require.Equal(t, []string{
		"2: find returns why as a string: return an error",
		"3: ended returns reason as a string: return an error",
		"6: HasPrefix searches the text of Reason: compare codes or errors",
		"7: Contains searches the text of Error: compare codes or errors",
		"8: ReplaceAllString searches the text of why: compare codes or errors",
		"9: Cut searches the text of Error: compare codes or errors",
		"10: HasSuffix searches the text of note: compare codes or errors",
	}, reasonsAsText(set, f, true))
	require.Len(t, reasonsAsText(set, f, false), 5)
}

// searches lists the functions of strings and the methods of a regular expression that search a text or take it apart. The text is the first argument.
var searches = strings.Fields("Contains ContainsAny Cut CutPrefix CutSuffix EqualFold Fields HasPrefix HasSuffix Index IndexByte LastIndex Split SplitN " +
	"TrimPrefix TrimSuffix FindString FindStringIndex FindStringSubmatch FindAllString MatchString ReplaceAllString ReplaceAllStringFunc")

// reasonsAsText lists the places where a file returns or searches a reason as text, each with its line. It lists results only if asked.
func reasonsAsText(set *token.FileSet, f *ast.File, results bool) (list []string) {
	add := func(at ast.Node, format string, args ...any) {
		list = append(list, fmt.Sprintf("%d: ", set.Position(at.Pos()).Line)+fmt.Sprintf(format, args...))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Type.Results == nil || !results {
				break
			}
			for _, r := range n.Type.Results.List {
				kind, _ := r.Type.(*ast.Ident)
				for _, name := range r.Names {
					if kind != nil && kind.Name == "string" && (name.Name == "why" || name.Name == "reason") {
						add(name, "%s returns %s as a string: return an error", n.Name.Name, name.Name)
					}
				}
			}
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 || !slices.Contains(searches, called.Sel.Name) {
				break
			}
			if name := lastName(n.Args[0]); slices.Contains([]string{"why", "reason", "note", "guess", "Why", "Reason", "Note", "Guess", "Failed", "Error"}, name) {
				add(n, "%s searches the text of %s: compare codes or errors", called.Sel.Name, name)
			}
		}
		return true
	})
	return list
}

// lastName returns the name of a variable, a field, or a called method; "" for other expressions.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}
