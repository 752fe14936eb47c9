package cfi

import (
	"errors"

	"example.com/reframe/internal/machine"
)

// ErrNoFDE reports that an image has no unwind information for a pc.
var ErrNoFDE = errors.New("no unwind information covers this address")

// Table is the unwind information of one image. Any number of goroutines may use it.
type Table struct {
	sections []*frames // in search order
}

// NewTable returns the table of an image. Entries are read on demand; an unusable .eh_frame_hdr is ignored. It returns an error if there is no
// section, or the architecture is not supported.
func NewTable(s Sections) (*Table, error) {
	if s.Arch == nil || s.Arch.Pointer != 8 {
		return nil, errors.New("unwind: only architectures with addresses of 8 bytes are supported")
	}
	t := &Table{}
	if s.EHFrame.Data != nil {
		eh := &frames{Section: s.EHFrame, name: ehFrame, eh: true, arch: s.Arch,
			bases: bases{abs: s.EHFrame.Bias, text: s.Text, data: s.Data}}
		if s.EHFrameHdr.Data != nil {
			eh.search, _ = readHdr(s.EHFrameHdr, s.Arch, s.EHFrame.Addr)
		}
		t.sections = append(t.sections, eh)
	}
	if s.DebugFrame.Data != nil {
		t.sections = append(t.sections, &frames{Section: s.DebugFrame, name: debugFrame, arch: s.Arch,
			bases: bases{abs: s.DebugFrame.Bias}})
	}
	if t.sections == nil {
		return nil, errors.New("unwind: the image has neither .eh_frame nor .debug_frame")
	}
	return t, nil
}

// Find returns the FDE that covers pc. It returns [ErrNoFDE] if there is none, and a [*FormatError] if the table is malformed.
func (t *Table) Find(pc machine.Addr) (*FDE, error) {
	none := ErrNoFDE
	for _, s := range t.sections {
		f, err := s.find(pc)
		if err == nil {
			return f, nil
		}
		if none == ErrNoFDE {
			none = err // a later section may still have the FDE
		}
	}
	return nil, none
}

// fdeAt returns the FDE at an offset of .eh_frame, whatever code it covers.
func (t *Table) fdeAt(offset int64) (*FDE, error) {
	if s := t.sections[0]; s.eh {
		return s.fdeAt(offset)
	}
	return nil, errors.New("unwind: the image has no .eh_frame")
}
