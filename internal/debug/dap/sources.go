package dap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-dap"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// sourceOf returns a module as a source: its file, if the file still has the text that was read. Otherwise the client can request the text by a
// reference.
func (c *conn) sourceOf(m *ir.Module) *dap.Source {
	modules := c.target.Session.Modules()
	k := slices.Index(modules, m)
	if k < 0 {
		return nil // a built-in module of the interpreter, which replaces a library
	}
	s := &dap.Source{Name: filepath.Base(m.Name)}
	if path, ok := c.fileOf(m); ok {
		s.Path = path
		return s
	}
	s.SourceReference, s.Origin = k+1, m.Name
	return s
}

// fileOf returns the path of a file that has the module's text.
func (c *conn) fileOf(m *ir.Module) (path string, ok bool) {
	if known, asked := c.files[m]; asked {
		return known, known != ""
	}
	if path, err := filepath.Abs(m.Name); err == nil {
		if is, err := os.Stat(path); err == nil && is.Mode().IsRegular() && is.Size() == int64(m.Size()) {
			if text, err := os.ReadFile(path); err == nil && bytes.Equal(text, []byte(m.Text())) {
				ok = true
			}
		}
		if c.files == nil {
			c.files = map[*ir.Module]string{}
		}
		if c.files[m] = ""; ok {
			c.files[m] = path
		}
		return path, ok
	}
	return "", false
}

// module returns the module of a source.
func (c *conn) module(s *dap.Source) (*ir.Module, error) {
	modules := c.target.Session.Modules()
	if n := s.SourceReference; n > 0 {
		if n > len(modules) {
			return nil, fmt.Errorf("source %d not found", n)
		}
		return modules[n-1], nil
	}
	if s.Path == "" {
		return nil, errors.New("the source has neither a path nor a reference")
	}
	is, err := os.Stat(s.Path)
	for _, m := range modules {
		if m.Name == s.Path {
			return m, nil
		}
		if at, missing := os.Stat(m.Name); err == nil && missing == nil && os.SameFile(is, at) {
			return m, nil
		}
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("no module is known yet: name one in \"ir\" of the launch configuration, or wait until the target loads one")
	}
	return nil, fmt.Errorf("%s is not a module of the target: name it in \"ir\" of the launch configuration", s.Path)
}

func (c *conn) source(r *dap.SourceRequest) error {
	s := dap.Source{SourceReference: r.Arguments.SourceReference}
	if s.SourceReference == 0 && r.Arguments.Source != nil {
		s = *r.Arguments.Source
	}
	if c.going != nil {
		return errors.New("cannot show sources while the target runs: pause it first")
	}
	m, err := c.module(&s)
	if err != nil {
		return err
	}
	c.respond(&r.Request, &dap.SourceResponse{Body: dap.SourceResponseBody{Content: m.Text(), MimeType: "text/x-llvm"}})
	return nil
}

func (c *conn) loadedSources(r *dap.LoadedSourcesRequest) error {
	body := dap.LoadedSourcesResponseBody{Sources: []dap.Source{}}
	for _, m := range c.target.Session.Modules() {
		body.Sources = append(body.Sources, *c.sourceOf(m))
	}
	c.respond(&r.Request, &dap.LoadedSourcesResponse{Body: body})
	return nil
}

// locations lists the lines at which a breakpoint is possible.
func (c *conn) locations(r *dap.BreakpointLocationsRequest) error {
	if c.going != nil {
		return errors.New("cannot find lines while the target runs: pause it first")
	}
	m, err := c.module(&r.Arguments.Source)
	if err != nil {
		return err
	}
	first, last := r.Arguments.Line-c.line0+1, r.Arguments.EndLine-c.line0+1
	if r.Arguments.EndLine == 0 {
		last = first
	}
	body := dap.BreakpointLocationsResponseBody{Breakpoints: []dap.BreakpointLocation{}}
	for line := first; line <= last && len(body.Breakpoints) < maxBreakpoints; {
		i, err := instructionAt(m, line)
		if err != nil { // the line is between two functions
			line++
			if line-first > maxBreakpoints {
				break
			}
			continue
		}
		if i.Line <= last && i.Op != ir.OpPhi && i.Line >= line {
			body.Breakpoints = append(body.Breakpoints, dap.BreakpointLocation{Line: i.Line - 1 + c.line0})
		}
		line = max(i.Line, line) + 1
	}
	c.respond(&r.Request, &dap.BreakpointLocationsResponse{Body: body})
	return nil
}

// modules lists the code of the target: files, and objects that a JIT registered.
func (c *conn) modules(r *dap.ModulesRequest) error {
	t, err := c.target.Session.Target()
	if err != nil {
		return err
	}
	var list []dap.Module
	for _, m := range t.Modules {
		is := dap.Module{Id: m.Path, Name: filepath.Base(m.Path), Path: m.Path, IsOptimized: true}
		if is.SymbolStatus = "read"; m.Image == nil {
			is.SymbolStatus = m.Why
		}
		list = append(list, is)
	}
	for _, registry := range t.Registries {
		for n, e := range registry.Entries {
			at := machine.Addr(e.Start)
			is := dap.Module{Id: fmt.Sprintf("%v", e.Addr), Name: fmt.Sprintf("JIT object %d", n+1), IsOptimized: true, IsUserCode: true,
				AddressRange: fmt.Sprintf("%v-%v", at, at+machine.Addr(e.Size))}
			if is.SymbolStatus = "registered"; e.Bad != "" {
				is.SymbolStatus = e.Bad
			}
			list = append(list, is)
		}
	}
	a := r.Arguments
	if a.StartModule < 0 || a.ModuleCount < 0 {
		return fmt.Errorf("startModule %d and moduleCount %d: must be 0 or more", a.StartModule, a.ModuleCount)
	}
	body := dap.ModulesResponseBody{Modules: []dap.Module{}, TotalModules: len(list)}
	list = list[min(a.StartModule, len(list)):]
	if a.ModuleCount > 0 {
		list = list[:min(a.ModuleCount, len(list))]
	}
	body.Modules = append(body.Modules, list...)
	c.respond(&r.Request, &dap.ModulesResponse{Body: body})
	return nil
}
