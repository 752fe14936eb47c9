package cfi

import (
	"errors"
	"fmt"
	"io"

	"example.com/reframe/internal/machine"
)

const (
	ehFrame    = ".eh_frame"
	ehFrameHdr = ".eh_frame_hdr"
	debugFrame = ".debug_frame"
)

// FormatError reports unwind information that is malformed or cannot be read.
type FormatError struct {
	Section string // such as .eh_frame
	Offset  int64  // offset in the section
	Err     error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s at offset %#x: %v", e.Section, e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// Section is one section of an image, decompressed.
type Section struct {
	Addr machine.Addr // load address, the base of pc-relative pointers
	// Bias is added to the absolute addresses in the section: the difference between the load address of the image and the address in its file. It is
	// zero if a loader or the caller has relocated them.
	Bias machine.Addr
	Data io.ReaderAt // nil if the image has no such section
	Size int64       // bytes
}

// Sections holds the sections for a [Table]. EHFrame or DebugFrame is required.
type Sections struct {
	Arch       *machine.Arch
	EHFrame    Section
	EHFrameHdr Section // optional: avoids walking all of EHFrame
	DebugFrame Section // searched for code that EHFrame does not cover

	// Bases of pointers encoded as textrel and datarel in EHFrame. If a base is zero, such a pointer is an error. No compiler for the supported
	// architectures writes them.
	Text, Data machine.Addr
}

// errTruncated reports a structure that exceeds its section.
var errTruncated = errors.New("truncated")

// read returns n bytes from off. It never allocates more than the section's size.
func (s *Section) read(name string, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > s.Size || n > s.Size-off {
		return nil, &FormatError{name, off, errTruncated}
	}
	b := make([]byte, n)
	return b, s.fill(name, b, off)
}

// fill reads len(b) bytes from off.
func (s *Section) fill(name string, b []byte, off int64) error {
	if off < 0 || off > s.Size || int64(len(b)) > s.Size-off {
		return &FormatError{name, off, errTruncated}
	}
	if got, err := s.Data.ReadAt(b, off); got < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = errTruncated
		}
		return &FormatError{name, off + int64(max(got, 0)), err}
	}
	return nil
}
