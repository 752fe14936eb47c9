package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// declaredIn returns the names that a file declares outside of functions: Name, Type.Method and Type.Field.
func declaredIn(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				on := d.Recv.List[0].Type
				if star, ok := on.(*ast.StarExpr); ok {
					on = star.X
				}
				if generic, ok := on.(*ast.IndexExpr); ok {
					on = generic.X
				}
				if of, ok := on.(*ast.Ident); ok {
					name = of.Name + "." + name
				}
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
					if of, ok := s.Type.(*ast.StructType); ok {
						for _, field := range of.Fields.List {
							for _, n := range field.Names {
								names = append(names, s.Name.Name+"."+n.Name)
							}
						}
					}
				}
			}
		}
	}
	return names
}

// declarations returns the names that the repository declares for any machine, each with the name of its package. External tests count as part of the
// package that they test.
func declarations(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, name := range declaredIn(parsed) {
			all[strings.TrimSuffix(parsed.Name.Name, "_test")+"."+name] = true
		}
		return nil
	})
	require.NoError(t, err)
	return all
}

// TestArchitectureDocument requires that doc/dev/adding-an-architecture.md names in backquotes only existing files and declarations.
func TestArchitectureDocument(t *testing.T) {
	inRoot(t)
	declared := declarations(t)
	there := func(name string) bool {
		_, err := os.Stat(name)
		return err == nil || declared[name]
	}
	text, err := os.ReadFile("doc/dev/adding-an-architecture.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(named), 80)
	for _, m := range named {
		require.True(t, there(m[1]), "%s", m[0])
	}

	for name, want := range map[string]bool{
		"machine.Arch": true, "machine.Arch.Chain": true, "machine.Arch.Chains": false, "tracer.General.rewind": true, "tracer.Trap": true, "Trap": false,
		"isa.TestLibraries": true, "isa.TestLibrary": false, "ptrace/tracer": true, "ptrace/tracer/arch_riscv65.go": false,
	} {
		require.Equal(t, want, there(name), "%s", name)
	}
}
