package stackmap

import (
	"errors"
	"fmt"
)

// Error is an error in a section, with its position.
type Error struct {
	Offset int64 // position in the section
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf(".llvm_stackmaps+%#x: %v", e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// ErrTruncated is wrapped by errors about a count or a part that exceeds the section.
var ErrTruncated = errors.New("the section ends inside a map")
