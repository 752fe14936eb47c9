package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// text is one comment, string or line of a document.
type text struct {
	file    string
	line    int
	comment bool
	words   string
}

// files returns the tracked and new files of the repository whose names have one of the endings.
func files(endings ...string) ([]string, error) {
	args := []string{"ls-files", "-co", "--exclude-standard", "--"}
	for _, e := range endings {
		args = append(args, "*"+e)
	}
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, err
	}
	var list []string
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		if _, err := os.Stat(name); err == nil && !strings.Contains(name, "testdata/") {
			list = append(list, name)
		}
	}
	return list, nil
}

// textsOf returns the comments and strings of a Go file, or the lines of another file.
func textsOf(name string) ([]text, error) {
	if filepath.Ext(name) == ".go" {
		return textsOfGo(name)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []text
	code := false // inside a fenced block
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		} else if !code {
			all = append(all, text{file: name, line: n, words: line})
		}
	}
	return all, nil
}

func textsOfGo(name string) ([]text, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []text
	for _, group := range f.Comments {
		if words := strings.TrimSpace(group.Text()); words != "" {
			all = append(all, text{name, set.Position(group.Pos()).Line, true, words})
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if words, err := strconv.Unquote(n.Value); err == nil {
					all = append(all, text{name, set.Position(n.Pos()).Line, false, words})
				}
			}
		}
		return true
	})
	return all, nil
}
