package object

import (
	"debug/elf"
	"errors"

	"example.com/reframe/internal/machine"
)

// Original returns up to n bytes of the image's code at a loaded address, fewer if the section ends before. fixed is true for bytes that neither a linker
// nor a loader relocates; memory has the same bytes unless the program overwrites them.
func (i *Image) Original(addr machine.Addr, n int) (code []byte, fixed []bool, err error) {
	s := i.CodeAt(addr)
	if s == nil {
		return nil, nil, &Error{i.Name, "", -1, errors.New("has no code at this address")}
	}
	if err := s.Readable(); err != nil {
		return nil, nil, err
	}
	from := uint64(addr - s.Loaded())
	n = int(min(uint64(n), s.Size-from))
	if !s.relocates() {
		code, fixed = make([]byte, n), make([]bool, n)
		for k := range fixed {
			fixed[k] = true
		}
		if got, err := s.ReadAt(code, int64(from)); got < n {
			return nil, nil, &Error{i.Name, s.Name, int64(from), err}
		}
		return code, fixed, nil
	}
	if s.original == nil && s.originalErr == nil {
		s.original, s.fixed, s.originalErr = s.Fixed()
	}
	if s.originalErr != nil {
		return nil, nil, s.originalErr
	}
	return s.original[from:][:n], s.fixed[from:][:n], nil
}

// relocates reports whether a linker or a loader may change bytes of a code section.
func (s *Section) relocates() bool {
	f, ok := s.image.format.(*elfFormat)
	return !ok || f.relocatable() || f.relocatesText()
}

// relocatesText reports whether the dynamic linker must write to code (DT_TEXTREL, or DF_TEXTREL in DT_FLAGS).
func (f *elfFormat) relocatesText() bool {
	_, tagged := f.dynamic(elf.DT_TEXTREL)
	flags, _ := f.dynamic(elf.DT_FLAGS)
	return tagged || flags&uint64(elf.DF_TEXTREL) != 0
}

// loaded returns the bytes of a section of a linked image; fixed is false for those that the dynamic linker changes.
func (f *elfFormat) loaded(s *Section) (data []byte, fixed []bool, err error) {
	if data, err = s.Data(); err != nil {
		return nil, nil, err
	}
	done, err := f.load(s, append([]byte(nil), data...))
	if err != nil {
		return nil, nil, err
	}
	fixed = make([]bool, len(data))
	for n := range fixed {
		fixed[n] = true
	}
	for _, r := range done {
		for at := r.Offset; at < min(r.Offset+uint64(f.word()), uint64(len(data))); at++ {
			fixed[at] = false
		}
	}
	return data, fixed, nil
}
