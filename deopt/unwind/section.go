package unwind

import (
	"errors"
	"fmt"
	"io"

	"reframe/deopt/machine"
)

const (
	ehFrame    = ".eh_frame"
	ehFrameHdr = ".eh_frame_hdr"
)

// maxEntry bounds the length of one CIE or FDE. The longest in libLLVM has a
// few kilobytes.
const maxEntry = 1 << 20

// FormatError is unwind information that is not what it should be, or cannot
// be read.
type FormatError struct {
	Section string // .eh_frame or .eh_frame_hdr
	Offset  int64  // in the section
	Err     error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s at offset %#x: %v", e.Section, e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// Section is one section of an image as it lies in the target. Relocations
// have been applied.
type Section struct {
	Addr machine.Addr // where it is loaded: what pc-relative pointers refer to
	Data io.ReaderAt  // nil where the image has no such section
	Size int64        // bytes
}

// Sections is what a [Table] is made of.
type Sections struct {
	Arch       *machine.Arch
	EHFrame    Section
	EHFrameHdr Section // optional: saves walking all of EHFrame

	// Bases of pointers encoded as textrel and datarel in EHFrame. Zero where
	// they are not known: such a pointer is then an error. No x86-64 compiler
	// writes them.
	Text, Data machine.Addr
}

// errTruncated is a structure that goes on past the bytes that hold it.
var errTruncated = errors.New("truncated")

// read returns n bytes from off on, and never allocates more than the section has.
func (s *Section) read(name string, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > s.Size || n > s.Size-off {
		return nil, &FormatError{name, off, errTruncated}
	}
	b := make([]byte, n)
	if got, err := s.Data.ReadAt(b, off); got < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = errTruncated
		}
		return nil, &FormatError{name, off + int64(got), err}
	}
	return b, nil
}
