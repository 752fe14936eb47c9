package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"strings"
)

// sameTree requires that each Go file which changed since a commit has the same syntax tree as in that commit, apart from comments. Comments that
// direct the compiler (//go:…) must also be the same.
func sameTree(commit string) error {
	out, err := exec.Command("git", "diff", "--name-only", "--diff-filter=ACDMR", "--no-renames", commit, "--", "*.go").Output()
	if err != nil {
		return fmt.Errorf("git diff %s: %w", commit, err)
	}
	names := strings.Fields(string(out))
	var differ []string
	for _, name := range names {
		before, err := exec.Command("git", "show", commit+":"+name).Output()
		if err != nil {
			differ = append(differ, name+" (new)")
			continue
		}
		after, err := os.ReadFile(name)
		if err != nil {
			differ = append(differ, name+" (removed)")
			continue
		}
		old, err := bare(before)
		if err != nil {
			return err
		}
		now, err := bare(after)
		if err != nil {
			return err
		}
		if !bytes.Equal(old, now) {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		return errors.New("more than comments changed in:\n  " + strings.Join(differ, "\n  "))
	}
	fmt.Printf("%d Go files changed, only in comments\n", len(names))
	return nil
}

// bare returns a Go file without its comments, with line breaks that depend only on the syntax tree.
func bare(source []byte) ([]byte, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var directives bytes.Buffer
	for _, group := range f.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") {
				fmt.Fprintln(&directives, c.Text)
			}
		}
	}
	f.Comments = nil
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		case *ast.FuncDecl:
			n.Doc = nil
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.ImportSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.File:
			n.Doc = nil
		}
		return true
	})
	var out bytes.Buffer
	if err := printer.Fprint(&out, set, f); err != nil {
		return nil, err
	}
	return append(bytes.Join(bytes.Fields(out.Bytes()), []byte(" ")), directives.Bytes()...), nil
}
