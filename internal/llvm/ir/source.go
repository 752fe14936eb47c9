package ir

// These limit the debug information that is read for one position: the number of enclosing scopes and inlined calls, which may form a cycle, and the size of
// a node. Real programs have a few dozen, of a few hundred bytes each.
const (
	maxScopes   = 1024
	maxNodeSize = 64 << 10
)

// SourceLine is a source location according to the module's debug information (LangRef, "DILocation").
type SourceLine struct {
	File     string // as on the compiler's command line; "" if unknown
	Dir      string // the directory that File is relative to, or ""
	Line     int    // from 1; 0 for code without a line
	Column   int    // from 1; 0 if unknown
	Function string // the name in the source, from DISubprogram, or ""
	// InlinedAt is the location of the inlined call, or nil.
	InlinedAt *SourceLine
}

// Source returns the source location of an instruction. It returns false if there is no debug information or it is malformed.
func (i *Instr) Source() (SourceLine, bool) {
	m := i.Block.Func.Module
	var first SourceLine
	into, at := &first, i.debug
	for budget := maxScopes; budget > 0; {
		kind, fields, ok := m.debugNode(at)
		if !ok || kind != "DILocation" {
			return SourceLine{}, false
		}
		*into = m.scopeLine(fields["scope"], &budget)
		into.Line, into.Column = m.debugNumber(fields["line"]), m.debugNumber(fields["column"])
		caller, inlined := fields["inlinedAt"]
		if !inlined {
			return first, true
		}
		at, into.InlinedAt = caller, new(SourceLine)
		into = into.InlinedAt
	}
	return SourceLine{}, false
}

// Source returns the location at which a function is declared. The Column is 0.
func (f *Func) Source() (SourceLine, bool) {
	kind, fields, ok := f.Module.debugNode(f.debug)
	if !ok || kind != "DISubprogram" {
		return SourceLine{}, false
	}
	budget := maxScopes
	line := f.Module.scopeLine(f.debug, &budget)
	line.Line = f.Module.debugNumber(fields["line"])
	return line, true
}

// scopeLine returns the file of a scope and its function. A scope has its own file, which may differ because of an #include inside the function.
func (m *Module) scopeLine(at span, budget *int) (line SourceLine) {
	for innermost := true; *budget > 0; innermost = false {
		*budget--
		kind, fields, ok := m.debugNode(at)
		if !ok {
			break
		}
		if innermost {
			if kind, file, ok := m.debugNode(fields["file"]); ok && kind == "DIFile" {
				line.File, line.Dir = m.debugString(file["filename"]), m.debugString(file["directory"])
			}
		}
		if kind == "DISubprogram" {
			line.Function = m.debugString(fields["name"])
			break
		}
		at = fields["scope"]
	}
	return line
}
