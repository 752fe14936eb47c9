package interp

import (
	"errors"
	"fmt"
	"strings"

	abstract "example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// Kind classifies why a run ended before its function returned.
type Kind uint8

// The kinds of error.
const (
	KindInternal    Kind = iota // a bug in the interpreter
	KindSteps                   // the run reached [Options].MaxSteps
	KindMemory                  // the run needs more than [Options].MaxMemory
	KindDepth                   // calls are nested deeper than [Options].MaxDepth
	KindUnsupported             // an instruction or a callee that the interpreter does not support
	KindFault                   // memory that cannot be read or written
	KindUnreachable             // the run reached unreachable or llvm.trap, or an llvm.assume was false
	KindDeoptimize              // the code would deoptimize: [*DeoptimizeError] has its values
	KindDivision                // division by zero, or of the lowest value by -1
	KindUndef                   // the run would depend on an undefined bit
	KindAbort                   // abort was called
	KindModule                  // the module is inconsistent
	KindArgument                // the caller passed an argument that the function does not accept
	KindContext                 // the context was cancelled
)

var kindNames = [...]string{
	"internal error", "step limit", "memory limit", "depth limit", "unsupported", "memory fault",
	"unreachable", "deoptimize", "division", "undefined value", "abort", "invalid module", "invalid argument", "stopped",
}

// String returns the name of the kind.
func (k Kind) String() string { return kindNames[k] }

// RunError reports why a run ended early, and at which instruction.
type RunError struct {
	Kind  Kind
	Func  string // without the @ sign
	Block string // without the % sign
	Instr string // such as "%x = sdiv i32"
	Line  int    // line of the instruction in the module's text
	Err   error
}

// Error returns the instruction and the reason on one line.
func (e *RunError) Error() string { return e.text(e.Err.Error()) }

// TextWith implements [abstract.Addressed].
func (e *RunError) TextWith(spell func(uint64) string) string {
	return e.text(abstract.TextWith(e.Err, spell))
}

func (e *RunError) text(why string) string {
	if e.Func == "" {
		return why
	}
	return fmt.Sprintf("@%s, block %%%s, line %d: %s: %s", e.Func, e.Block, e.Line, e.Instr, why)
}

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }

// MissingError names the missing values without which a frame cannot be resumed. The interpreter has not run any instruction.
type MissingError struct {
	Func, Block string
	Names       []string // spelled as operands: %i
}

// Error lists the names.
func (e *MissingError) Error() string {
	return fmt.Sprintf("cannot resume @%s in block %%%s: no value for %s", e.Func, e.Block, strings.Join(e.Names, ", "))
}

// FaultError is an access to memory that failed. Err is the error of the target's memory, or nil where the interpreter's own memory refused.
type FaultError struct {
	Addr  machine.Addr
	Size  uint64 // in bytes
	Write bool
	Why   string
	Err   error
}

// Error returns the kind of access, its size and address, and why it failed.
func (e *FaultError) Error() string { return e.text(e.Addr.String()) }

// TextWith implements [abstract.Addressed].
func (e *FaultError) TextWith(spell func(uint64) string) string {
	return e.text(e.Addr.TextWith(spell))
}

func (e *FaultError) text(at string) string {
	verb := "read"
	if e.Write {
		verb = "write"
	}
	return fmt.Sprintf("%s of %d bytes at %s: %s", verb, e.Size, at, e.Why)
}

// Unwrap returns the error of the target's memory.
func (e *FaultError) Unwrap() error { return e.Err }

// UnsupportedError reports a feature that the interpreter does not support.
type UnsupportedError struct {
	What string
	Hint string // advice on what to do, or ""
	what error  // What with its addresses, or nil
}

// Error returns the unsupported feature, and the hint if there is one.
func (e *UnsupportedError) Error() string { return e.text(e.What) }

// TextWith implements [abstract.Addressed].
func (e *UnsupportedError) TextWith(spell func(uint64) string) string {
	if e.what == nil {
		return e.Error()
	}
	return e.text(abstract.TextWith(e.what, spell))
}

func (e *UnsupportedError) text(what string) string {
	if e.Hint == "" {
		return what + " is not supported"
	}
	return what + " is not supported: " + e.Hint
}

// DeoptimizeError reports that the code reached its own deoptimization exit.
type DeoptimizeError struct {
	Callee string  // llvm.experimental.deoptimize.i64, __llvm_deoptimize, llvm.experimental.guard
	Args   []Value // arguments of the call
	Live   []Value // values of its "deopt" bundle
}

// Error names the exit that the code called, and counts its live values.
func (e *DeoptimizeError) Error() string {
	return fmt.Sprintf("the code deoptimizes: call of @%s with %d live values", e.Callee, len(e.Live))
}

// trouble is an error of a run that does not name an instruction yet. The loop adds the instruction.
type trouble struct {
	kind Kind
	err  error
}

func (t *trouble) Error() string { return t.err.Error() }
func (t *trouble) Unwrap() error { return t.err }

func (t *trouble) TextWith(spell func(uint64) string) string { return abstract.TextWith(t.err, spell) }

func troublef(k Kind, format string, args ...any) error {
	return &trouble{k, abstract.Errorf(format, args...)}
}

func unsupported(hint, format string, args ...any) error {
	what := abstract.Errorf(format, args...)
	return &trouble{KindUnsupported, &UnsupportedError{What: what.Error(), Hint: hint, what: what}}
}

func undefined(format string, args ...any) error {
	return troublef(KindUndef, format+" is undefined", args...)
}

// kindOf returns the kind of an error that does not name an instruction yet.
func kindOf(err error) Kind {
	var t *trouble
	if errors.As(err, &t) {
		return t.kind
	}
	return KindInternal
}
