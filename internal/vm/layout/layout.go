package layout

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/base/filekind"
	"example.com/reframe/internal/base/jsonat"
	"example.com/reframe/internal/llvm/ir"
)

// Schema names the format of a layout file.
const Schema = "reframe.layout/v1"

// Layout maps exits to the functions in which they resume, for exits whose IR alone does not determine the function.
type Layout struct {
	Name  string `json:"-"` // name of the file, for messages
	Exits []Exit `json:"exits"`

	Text []byte // content of the file
}

// Exit is an exit from optimized code.
type Exit struct {
	Function string      `json:"function"`         // the function that is left
	Record   *uint64     `json:"record,omitempty"` // id of its record; nil for any
	When     []Condition `json:"when,omitempty"`   // conditions, all of which must hold
	Resume   ExitResume  `json:"resume"`
	Slots    []Slot      `json:"slots"`

	Path string // place in the file, such as exits[0]
}

// Condition distinguishes exits with the same id: a live value must equal a number.
type Condition struct {
	Operand int   `json:"operand"`
	Equals  int64 `json:"equals"`
}

// ExitResume is the place where the interpreter resumes. In a file, the names may have their sigils (@sum, %loop).
type ExitResume struct {
	Function string `json:"function"`
	Block    string `json:"block"`
}

// Slot names a live value.
type Slot struct {
	Operand int    `json:"operand"` // number of the live value, from 0
	Name    string `json:"name"`    // as in the function that resumes: %i; a file may omit %
	// Extend widens an integer to the type that it has in the function that resumes.
	Extend Extension `json:"extend,omitempty"`
}

// Extension determines the upper bits of a widened integer.
type Extension string

// A wider integer has copies of the sign in its upper bits, or zeros.
const (
	SignExtend Extension = "sign"
	ZeroExtend Extension = "zero"
)

// Error is an error in a layout file.
type Error struct {
	File string
	At   jsonat.Place // position in the file; zero if unknown
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

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// maxLayout bounds the size of a layout file.
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
		errors.As(err, &at) // all errors have this type
		if kind, ok := filekind.Of(data[:min(len(data), filekind.Head)]); ok && kind.What != "JSON" {
			return nil, &Error{File: name, Err: errors.New(kind.Instead("a layout"))}
		}
		return nil, &Error{name, at.Place, at.Path, at.Err}
	}
	l := &file.Layout
	l.Name, l.Text = name, data
	if file.Schema != Schema {
		return nil, l.Wrong("schema", fmt.Errorf("%q is not supported; expected %q", file.Schema, Schema))
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

// Wrong returns an error about a member of the file.
func (l *Layout) Wrong(path string, err error) *Error {
	e := &Error{File: l.Name, Path: path, Err: err}
	if l.Text != nil {
		e.At = jsonat.Find(l.Text, path)[0]
	}
	return e
}

// spell normalizes names: functions and blocks have no sigil, values have one.
func (x *Exit) spell() {
	x.Function, x.Resume.Function = strings.TrimPrefix(x.Function, "@"), strings.TrimPrefix(x.Resume.Function, "@")
	x.Resume.Block = strings.TrimPrefix(x.Resume.Block, "%")
	for k := range x.Slots {
		if name := &x.Slots[k].Name; *name != "" && !strings.HasPrefix(*name, "%") {
			*name = "%" + *name
		}
	}
}

// sound returns the first mistake in an exit that shows without the modules, and the path of the member.
func (x *Exit) sound() (path string, err error) {
	switch {
	case x.Function == "":
		return ".function", errors.New("expected the name of a function")
	case x.Resume.Function == "":
		return ".resume.function", errors.New("expected the name of a function")
	}
	names := map[string]bool{}
	for k, s := range x.Slots {
		if s.Extend != "" && s.Extend != SignExtend && s.Extend != ZeroExtend {
			return fmt.Sprintf(".slots[%d].extend", k), fmt.Errorf("expected \"sign\" or \"zero\", got %q", s.Extend)
		}
		if names[s.Name] {
			return fmt.Sprintf(".slots[%d].name", k), fmt.Errorf("%s is given twice", s.Name)
		}
		names[s.Name] = true
	}
	return "", nil
}

// Value returns the value of f with the name %name, or nil. LLVM prints %$x as %"$x", and reads both.
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

// bareName matches a name that LLVM reads without quotes (LangRef, "Identifiers").
var bareName = regexp.MustCompile(`^[-a-zA-Z$._][-a-zA-Z$._0-9]*$`)

// Meant reports whether the layout has an exit for a record of a function.
func (l *Layout) Meant(function string, record uint64) bool {
	return slices.ContainsFunc(l.Exits, func(x Exit) bool { return x.About(function, record) })
}

// About reports whether the exit is for a record of a function.
func (x *Exit) About(function string, record uint64) bool {
	return x.Function == function && (x.Record == nil || *x.Record == record)
}

// Apply returns the exit that a frame took, or nil if none matches. The slots are those of the record, by operand. why is set if an exit may match
// but a value is missing, or if all candidates need more values than the record has.
func (l *Layout) Apply(function string, record uint64, slots []frame.Slot) (x *Exit, why error) {
	for n := range l.Exits {
		x := &l.Exits[n]
		if !x.About(function, record) {
			continue
		}
		fails, missing := false, error(nil)
		for _, c := range x.When {
			switch {
			case c.Operand < 0 || c.Operand >= len(slots): // the operand does not exist, so the exit is for another record
				fails = true
				if why == nil {
					why = fmt.Errorf("%s: exits[%d] compares live value %d, but record %d has %d", l.Name, n, c.Operand, record, len(slots))
				}
			case slots[c.Operand].Read():
				fails = fails || !Equals(&slots[c.Operand], c.Equals)
			case missing == nil:
				missing = frame.Errorf("%s: exits[%d] compares live value %d, which is unavailable: %v", l.Name, n, c.Operand, cmp.Or(slots[c.Operand].Why(), error(errors.New(string(slots[c.Operand].Status)))))
			}
		}
		switch {
		case fails:
		case missing != nil:
			return nil, missing
		default:
			return x, nil
		}
	}
	return nil, why
}

// Equals compares a slot with a number, which may be signed or unsigned.
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
