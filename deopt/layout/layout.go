package layout

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"

	"reframe/deopt/frame"
	"reframe/deopt/ir"
	"reframe/deopt/sites"
	"reframe/internal/filekind"
	"reframe/internal/jsonat"
)

// Schema names the format of a layout file.
const Schema = "reframe.layout/v1"

// Layout says how exits map to other functions, where the IR alone cannot.
type Layout struct {
	Name  string `json:"-"` // the file, for messages
	Exits []Exit `json:"exits"`

	Text []byte // of the file
}

// Exit is one way out of optimized code.
type Exit struct {
	Function string      `json:"function"`         // that is left
	Record   *uint64     `json:"record,omitempty"` // its record; nil for any
	When     []Condition `json:"when,omitempty"`   // all of them must hold
	Resume   ExitResume  `json:"resume"`
	Slots    []Slot      `json:"slots"`

	Path string // in the file, such as exits[0]
}

// Condition tells apart exits that share an id: a live value that equals a number.
type Condition struct {
	Operand int   `json:"operand"`
	Equals  int64 `json:"equals"`
}

// ExitResume is where the interpreter carries on. A file may spell the names with their sigils (@sum, %loop).
type ExitResume struct {
	Function string `json:"function"`
	Block    string `json:"block"`
}

// Slot names a live value.
type Slot struct {
	Operand int    `json:"operand"` // counts the live values from 0
	Name    string `json:"name"`    // as the function that carries on spells it: %i; a file may leave % out
}

// Error says what is wrong with a layout file.
type Error struct {
	File string
	At   jsonat.Place // in the file; zero where it is not known
	Path string       // such as exits[0].slots[2]; "" for the whole file
	Err  error
}

// Error implements error.
func (e *Error) Error() string {
	where := e.File
	if e.At.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", e.File, e.At.Line, e.At.Column)
	}
	if e.Path == "" {
		return fmt.Sprintf("%s: %v", where, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", where, e.Path, e.Err)
}

// Unwrap returns what was wrong.
func (e *Error) Unwrap() error { return e.Err }

// A layout file larger than this is not one that a person or a compiler wrote.
const maxLayout = 64 << 20

// Read reads a layout file. Errors are [*Error]s.
func Read(path string) (*Layout, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLayout+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads the text of a layout file.
func Parse(name string, data []byte) (*Layout, error) {
	if len(data) > maxLayout {
		return nil, &Error{File: name, Err: fmt.Errorf("over %d MiB", maxLayout>>20)}
	}
	var file struct {
		Schema string `json:"schema"`
		Layout
	}
	if err := jsonat.Decode(data, &file); err != nil {
		var at *jsonat.Error
		errors.As(err, &at) // all are
		if kind, ok := filekind.Of(data[:min(len(data), filekind.Head)]); ok && kind.What != "JSON" {
			return nil, &Error{File: name, Err: errors.New(kind.Instead("layout"))}
		}
		return nil, &Error{name, at.Place, at.Path, at.Err}
	}
	l := &file.Layout
	l.Name, l.Text = name, data
	if file.Schema != Schema {
		return nil, l.Wrong("schema", fmt.Errorf("%q is not known; %q is", file.Schema, Schema))
	}
	for n := range l.Exits {
		x := &l.Exits[n]
		x.Path = fmt.Sprintf("exits[%d]", n)
		x.spell()
		if path, err := x.sound(); err != nil {
			return nil, l.Wrong(x.Path+path, err)
		}
	}
	return l, nil
}

// Wrong is an error about a member of the file.
func (l *Layout) Wrong(path string, err error) *Error {
	e := &Error{File: l.Name, Path: path, Err: err}
	if l.Text != nil {
		e.At = jsonat.Find(l.Text, path)[0]
	}
	return e
}

// spell spells names one way: functions and blocks without their sigil, values with it.
func (x *Exit) spell() {
	x.Function, x.Resume.Function = strings.TrimPrefix(x.Function, "@"), strings.TrimPrefix(x.Resume.Function, "@")
	x.Resume.Block = strings.TrimPrefix(x.Resume.Block, "%")
	for k := range x.Slots {
		if name := &x.Slots[k].Name; *name != "" && !strings.HasPrefix(*name, "%") {
			*name = "%" + *name
		}
	}
}

// sound says what is wrong with an exit whatever the modules are.
func (x *Exit) sound() (path string, err error) {
	switch {
	case x.Function == "":
		return ".function", errors.New("names none")
	case x.Resume.Function == "":
		return ".resume.function", errors.New("names none")
	}
	names := map[string]bool{}
	for k, s := range x.Slots {
		if names[s.Name] {
			return fmt.Sprintf(".slots[%d].name", k), fmt.Errorf("%s a second time", s.Name)
		}
		names[s.Name] = true
	}
	return "", nil
}

// Check holds a layout against the modules: each function, block, value and operand
// that it names must be there. Without modules there is nothing to hold it against.
func (l *Layout) Check(ms *sites.Modules) error {
	if len(ms.All) == 0 {
		return nil
	}
	for n := range l.Exits {
		x := &l.Exits[n]
		fail := func(path, format string, args ...any) error {
			return l.Wrong(x.Path+path, fmt.Errorf(format, args...))
		}
		from, to := ms.Definitions(x.Function), ms.Bodies(x.Resume.Function)
		if len(from) == 0 {
			return fail(".function", "no module defines a function @%s", x.Function)
		}
		if len(to) == 0 {
			return fail(".resume.function", "no module defines a function @%s", x.Resume.Function)
		}
		operands := -1
		for _, f := range from {
			n, err := most(f, x.Record)
			if err != nil {
				return err
			}
			operands = max(operands, n)
		}
		if operands < 0 {
			return fail("", "@%s has no such exit: no stackmap, patchpoint, statepoint or deoptimize of that record", x.Function)
		}
		for k, c := range x.When {
			if c.Operand < 0 || c.Operand >= operands {
				return fail(fmt.Sprintf(".when[%d].operand", k), "%d, and the exits of @%s have %d live values, counted from 0", c.Operand, x.Function, operands)
			}
		}
		for k, s := range x.Slots {
			if s.Operand < 0 || s.Operand >= operands {
				return fail(fmt.Sprintf(".slots[%d].operand", k), "%d, and the exits of @%s have %d live values, counted from 0", s.Operand, x.Function, operands)
			}
		}
		if path, err := x.Into(to[0]); err != nil {
			return fail(path, "%w", err)
		}
	}
	return nil
}

// Into holds what the exit says of the function that carries on against one: path is
// where in the exit the mistake is.
func (x *Exit) Into(to *ir.Func) (path string, err error) {
	if _, err := to.Body(); err != nil {
		return ".resume.function", err
	}
	if to.Block(x.Resume.Block) == nil {
		return ".resume.block", fmt.Errorf("@%s has no block %%%s", to.Name, x.Resume.Block)
	}
	seen := map[ir.Value]bool{}
	for k, s := range x.Slots {
		switch v := Value(to, s.Name); {
		case v == nil:
			return fmt.Sprintf(".slots[%d].name", k), fmt.Errorf("@%s has no value %s", to.Name, s.Name)
		case seen[v]:
			return fmt.Sprintf(".slots[%d].name", k), fmt.Errorf("%s a second time", s.Name)
		default:
			seen[v] = true
		}
	}
	return "", nil
}

// most returns the largest number of live values that a site of f has, and -1 where
// f has no site with the record's id.
func most(f *ir.Func, record *uint64) (int, error) {
	sites, err := sites.CompiledSites(f)
	if err != nil {
		return 0, err
	}
	n := -1
	for _, s := range sites {
		if record == nil || slices.Contains(s.IDs(), *record) {
			n = max(n, len(s.Live))
		}
	}
	return n, nil
}

// Value returns the value of f that is spelled %name, or nil. LLVM prints %$x as %"$x", and reads both.
func Value(f *ir.Func, name string) ir.Value {
	spelled := func(ref, plain string) bool {
		return ref == name || strings.Contains(plain, "$") && bareName.MatchString(plain) && "%"+plain == name
	}
	for _, p := range f.Params {
		if spelled(p.Ref(), p.Name) {
			return p
		}
	}
	blocks, err := f.Body()
	if err != nil {
		return nil
	}
	for _, b := range blocks {
		for _, i := range b.Instrs {
			if i.Name != "" && spelled(i.Ref(), i.Name) {
				return i
			}
		}
	}
	return nil
}

// bareName is a name that LLVM reads without quotes (LangRef, "Identifiers").
var bareName = regexp.MustCompile(`^[-a-zA-Z$._][-a-zA-Z$._0-9]*$`)

// Meant says whether some exit is about a record of a function.
func (l *Layout) Meant(function string, record uint64) bool {
	return slices.ContainsFunc(l.Exits, func(x Exit) bool { return x.About(function, record) })
}

// About says whether the exit is that of a record of a function.
func (x *Exit) About(function string, record uint64) bool {
	return x.Function == function && (x.Record == nil || *x.Record == record)
}

// Apply returns the exit that a frame took, and nil where none is meant for it. The
// slots are those of the record, by operand. why is set where an exit is meant
// for it and cannot be told from another, because a value is missing, or where all that are meant ask for more values than there are.
func (l *Layout) Apply(function string, record uint64, slots []frame.Slot) (x *Exit, why string) {
	for n := range l.Exits {
		x := &l.Exits[n]
		if !x.About(function, record) {
			continue
		}
		fails, missing := false, ""
		for _, c := range x.When {
			switch {
			case c.Operand < 0 || c.Operand >= len(slots): // it is an exit of another record
				fails = true
				if why == "" {
					why = fmt.Sprintf("%s: exits[%d] asks for live value %d, and record %d has %d", l.Name, n, c.Operand, record, len(slots))
				}
			case slots[c.Operand].Read():
				fails = fails || !Equals(&slots[c.Operand], c.Equals)
			case missing == "":
				missing = fmt.Sprintf("%s: exits[%d] asks for live value %d, which is not there: %s", l.Name, n, c.Operand, slots[c.Operand].Reason)
			}
		}
		switch {
		case fails:
		case missing != "":
			return nil, missing
		default:
			return x, ""
		}
	}
	return nil, why
}

// Equals compares a slot with a number, which may be written signed or unsigned.
func Equals(s *frame.Slot, want int64) bool {
	n, ok := new(big.Int).SetString(string(s.Hex), 0)
	if !ok {
		return false
	}
	bits := uint(8 * len(s.Bytes))
	if !s.Type.IsZero() {
		bits = uint(s.Type.Bits)
	}
	modulus := new(big.Int).Lsh(big.NewInt(1), bits)
	return n.Cmp(big.NewInt(want)) == 0 || n.Sub(n, modulus).Cmp(big.NewInt(want)) == 0
}

// Class is how the bits of a type are meant. An integer may be carried on as a pointer,
// and the other way round; nothing else changes its meaning by a name.
func Class(t frame.Type) string {
	switch t.Kind {
	case frame.Int, frame.Pointer:
		return "integer"
	case frame.Opaque, frame.Vector, frame.Array, frame.Struct:
		return t.Source
	case frame.BFloat:
		return "bfloat"
	}
	return "float"
}
