package ir

// Bounds on what is read for one place: how many scopes and inlined calls lie around it
// in all, for a cycle has no end, and how long each of their nodes is. Those of real
// programs are a few dozen, of a few hundred bytes.
const (
	maxScopes   = 1024
	maxNodeSize = 64 << 10
)

// SourceLine is a place in the source that a front end compiled, as the module's debug
// information has it (LangRef, "DILocation").
type SourceLine struct {
	File     string // as the compiler was called with it; "" where it is not known
	Dir      string // the directory that File is relative to, or ""
	Line     int    // from 1; 0 for code that stands in no line
	Column   int    // from 1; 0 where it is not known
	Function string // the name in the source, as DISubprogram has it, or ""
	// InlinedAt is the place of the call that was inlined, or nil.
	InlinedAt *SourceLine
}

// Source returns the place in the source that an instruction comes from. It looks up the debug information at each call, and returns false where
// there is none or it is broken.
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

// Source returns where in the source a function is declared. The Column is 0.
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

// scopeLine is the file of a scope and the function around it. A scope's file is its own,
// which an #include in the middle of a function changes.
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
