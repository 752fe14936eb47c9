// Command size prints the size of the repository: packages, exported names, imports between packages and areas, and lines.
//
//	go run ./scripts/size
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/reframe/test/house"
)

// counts holds the counts of a set of packages: the product's, or all others.
type counts struct {
	packages, files, lines, testLines int
	exported, public                  int // exported names; public ones belong to libraries outside of internal
	imports, areas                    int // imports of packages of this module, and pairs of different areas
}

func main() {
	log.SetFlags(0)
	product, rest, err := measure()
	if err != nil {
		log.Fatal("size: ", err)
	}
	fmt.Printf("%-24s%10s%24s\n", "", "product", "test, bench, scripts")
	for _, row := range []struct {
		name   string
		counts [2]int
	}{
		{"packages", [2]int{product.packages, rest.packages}},
		{"files", [2]int{product.files, rest.files}},
		{"lines", [2]int{product.lines, rest.lines}},
		{"lines of _test.go files", [2]int{product.testLines, rest.testLines}},
		{"exported names", [2]int{product.exported, rest.exported}},
		{"  outside of internal", [2]int{product.public, rest.public}},
		{"imports", [2]int{product.imports, rest.imports}},
		{"  pairs of areas", [2]int{product.areas, rest.areas}},
	} {
		fmt.Printf("%-24s%10d%24d\n", row.name, row.counts[0], row.counts[1])
	}
}

// measure counts the packages of this module. Imports are those for the current platform; lines are those for all platforms.
func measure() (product, rest counts, err error) {
	const format = `{{.ImportPath}} {{.Name}} {{join .Imports ","}}{{"\t"}}{{.Dir}}`
	out, err := exec.Command("go", "list", "-f", format, house.Module+"...").Output()
	if err != nil {
		return product, rest, fmt.Errorf("go list: %w", err)
	}
	pairs := map[[2]int]bool{}
	for line := range strings.Lines(string(out)) {
		about, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		words := strings.Split(about, " ")
		path, name := strings.TrimPrefix(words[0], house.Module), words[1]
		c, from := &product, house.AreaOf(path)
		switch top, _, _ := strings.Cut(path, "/"); top {
		case "test", "bench", "scripts":
			c = &rest
		}
		c.packages++
		for _, imported := range strings.Split(words[2], ",") {
			own, ok := strings.CutPrefix(imported, house.Module)
			if !ok {
				continue
			}
			c.imports++
			if to := house.AreaOf(own); to != from && !pairs[[2]int{from, to}] {
				pairs[[2]int{from, to}] = true
				c.areas++
			}
		}
		exported, err := c.add(dir)
		if err != nil {
			return product, rest, err
		}
		c.exported += exported
		if name != "main" && !strings.Contains("/"+path+"/", "/internal/") {
			c.public += exported
		}
	}
	return product, rest, nil
}

// add adds the files of a folder, and returns the number of names that they export. If files of several platforms declare the same name, it counts
// once.
func (c *counts) add(dir string) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, err
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		lines := bytes.Count(text, []byte{'\n'})
		if strings.HasSuffix(file, "_test.go") {
			c.testLines += lines
			continue
		}
		c.files, c.lines = c.files+1, c.lines+lines
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		for _, d := range parsed.Decls {
			for _, name := range declared(d) {
				names[name] = true
			}
		}
	}
	return len(names), nil
}

// declared returns the exported names of a declaration. A method of an exported type is "Type.Method".
func declared(d ast.Decl) (names []string) {
	add := func(name string) {
		if ast.IsExported(name) {
			names = append(names, name)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name.Name)
		} else if on := receiver(d.Recv.List[0].Type); ast.IsExported(on) && d.Name.IsExported() {
			add(on + "." + d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					add(name.Name)
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type of a method's receiver.
func receiver(of ast.Expr) string {
	for {
		switch e := of.(type) {
		case *ast.StarExpr:
			of = e.X
		case *ast.IndexExpr:
			of = e.X
		case *ast.IndexListExpr:
			of = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
