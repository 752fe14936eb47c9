package ir

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Lookup returns the *Global, *Func or *Alias with a name (without the @ sign), or nil.
func (m *Module) Lookup(name string) Value {
	v, ok := m.globalsMap[name]
	if !ok {
		return nil
	}
	return v
}

// Func returns the function with a name, declared or defined, or nil.
func (m *Module) Func(name string) *Func {
	f, _ := m.globalsMap[name].(*Func)
	return f
}

// Check parses every body and returns the first [*Error].
func (m *Module) Check() error {
	for _, f := range m.Funcs {
		if f.Declared() {
			continue
		}
		if _, err := f.Body(); err != nil {
			return err
		}
	}
	addresses := slices.Clone(m.addresses)
	for _, f := range m.Funcs {
		if l := f.lazy.Load(); l != nil {
			addresses = append(addresses, l.body.addresses...)
		}
	}
	for _, a := range addresses {
		if err := a.check(m); err != nil {
			return err
		}
	}
	return nil
}

// extent is the position of a function's body in the module's source, without its braces.
type extent struct {
	present  bool
	pos, end int
	line     int // line number of pos
}

// lazyFunc holds results for a function with a body that are computed on first use, because most functions of a large module are not used.
type lazyFunc struct {
	body      lazyBody
	live      lazyLiveness
	relocated lazyRelocated
	described lazyDescriptions
}

// computed returns the lazily computed results. It is safe for concurrent use.
func (f *Func) computed() *lazyFunc {
	if l := f.lazy.Load(); l != nil {
		return l
	}
	f.lazy.CompareAndSwap(nil, &lazyFunc{})
	return f.lazy.Load()
}

// lazyBody holds the parsed body of a function.
type lazyBody struct {
	once      sync.Once
	err       error
	blocks    []*Block
	names     map[string]Value
	addresses []blockAddress // uses of blockaddress, checked by Module.Check
}

// Body returns the blocks of a function in program order, the entry first. It parses them on the first call; every call returns the same error, an
// [*Error].
func (f *Func) Body() ([]*Block, error) {
	if f.Declared() {
		return nil, fmt.Errorf("%s: %s is declared here and has no body", f.Module.Name, f.Ref())
	}
	b := &f.computed().body
	b.once.Do(func() { f.parseBody(b) })
	return b.blocks, b.err
}

// Block returns the block with a name (without the % sign), or nil if it does not exist or the body does not parse.
func (f *Func) Block(name string) *Block {
	b, _ := f.local(name).(*Block)
	return b
}

// Value returns the *Param or *Instr with a name (without the % sign), or nil if it does not exist or the body does not parse.
func (f *Func) Value(name string) Value {
	switch v := f.local(name).(type) {
	case *Param, *Instr:
		return v
	}
	return nil
}

func (f *Func) local(name string) Value {
	if f.Declared() {
		for _, p := range f.Params {
			if p.Name == name {
				return p
			}
		}
		return nil
	}
	if _, err := f.Body(); err != nil {
		return nil
	}
	return f.computed().body.names[name]
}

// LineText returns a line of the module's text, counted from 1, without surrounding white space; "" if it does not exist.
func (m *Module) LineText(line int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lines == nil {
		m.lines = []int{0}
		for k := 0; k < len(m.src); k++ {
			if m.src[k] == '\n' {
				m.lines = append(m.lines, k+1)
			}
		}
	}
	if line < 1 || line > len(m.lines) {
		return ""
	}
	text := m.src[m.lines[line-1]:]
	if line < len(m.lines) {
		text = m.src[m.lines[line-1]:m.lines[line]]
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "?")
}

// Text returns the module's text.
func (m *Module) Text() string { return m.src }

// TypedPointers reports whether the module writes pointers with their pointee types, as LLVM did before release 15.
func (m *Module) TypedPointers() bool { return m.typed }

// Size returns the length of the module's text in bytes.
func (m *Module) Size() int { return len(m.src) }
