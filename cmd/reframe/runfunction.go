package main

import (
	"strings"

	"reframe/deopt/ir"
	"reframe/deopt/names"
)

// defined returns the function of a module that a flag means by any form of its name, with a block's after a colon where
// there is one: a name of C++ has colons too, in pairs.
func defined(m *ir.Module, flag, text string) (f *ir.Func, block string, err error) {
	name := text
	if at := strings.LastIndexByte(text, ':'); flag == "--until" && at >= 0 && (at == 0 || text[at-1] != ':') {
		name, block = text[:at], text[at+1:]
		if name == "" || block == "" {
			return nil, "", usage("%s %s: it is FUNCTION, or FUNCTION:BLOCK", flag, text)
		}
	}
	name = strings.TrimPrefix(name, "@")
	if f := m.Func(name); f != nil && !f.Declared() {
		return f, block, nil
	}
	pattern, err := names.Exact(name)
	if err != nil {
		return nil, "", usage("%s %s: %v", flag, text, err)
	}
	nearest := names.NewNearest(name)
	var fit []*ir.Func
	for _, f := range m.Funcs {
		switch {
		case f.Declared():
		case pattern.Match(f.Name):
			fit = append(fit, f)
		default:
			nearest.Add(f.Name)
		}
	}
	switch len(fit) {
	case 0:
		return nil, "", usage("%s %s: the module defines no @%s%s", flag, text, name, nearest)
	case 1:
		return fit[0], block, nil
	}
	var symbols []string
	for _, f := range fit[:min(len(fit), 8)] {
		symbols = append(symbols, "@"+f.Name)
	}
	return nil, "", usage("%s %s: %s fit; the first are %s", flag, text, count(len(fit), "function"), strings.Join(symbols, ", "))
}
