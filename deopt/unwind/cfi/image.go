package cfi

import (
	"bytes"

	"example.com/reframe/internal/machine/object"
)

// TableOf returns the table of an image, or nil if the image has no call frame information.
func TableOf(img *object.Image) (*Table, error) {
	sections, err := SectionsOf(img)
	if err != nil || sections.EHFrame.Data == nil && sections.DebugFrame.Data == nil {
		return nil, err
	}
	return NewTable(sections)
}

// SectionsOf returns the sections of an image that a [Table] needs.
func SectionsOf(img *object.Image) (Sections, error) {
	arch, err := img.Arch()
	if err != nil {
		return Sections{}, err
	}
	sections := Sections{Arch: arch}
	for _, s := range []struct {
		name string // in ELF, or in Mach-O
		into *Section
	}{
		{ehFrame, &sections.EHFrame}, {"__TEXT,__eh_frame", &sections.EHFrame},
		{ehFrameHdr, &sections.EHFrameHdr}, {debugFrame, &sections.DebugFrame},
	} {
		section, err := sectionOf(img, s.name)
		if err != nil {
			return Sections{}, err
		}
		if section.Data != nil {
			*s.into = section
		}
	}
	return sections, nil
}

// sectionOf returns a section of unwind information, relocated if the image is not linked.
func sectionOf(img *object.Image, name string) (Section, error) {
	s := img.Section(name)
	if s == nil || !s.Bits || s.Size == 0 {
		return Section{}, nil
	}
	if !img.Relocatable() {
		return Section{Addr: s.Loaded(), Bias: img.Bias, Data: s, Size: int64(s.Size)}, nil
	}
	data, _, err := s.Relocated()
	if err != nil {
		return Section{}, err
	}
	return Section{Addr: s.Loaded(), Data: bytes.NewReader(data), Size: int64(len(data))}, nil
}
