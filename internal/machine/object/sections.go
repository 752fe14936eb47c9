package object

// Sections returns the sections with a name, in the order of the image. An unlinked object may have many: LLVM writes a .stack_sizes for each code section.
func (i *Image) Sections(name string) []*Section {
	var list []*Section
	for _, s := range i.all {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

// Compressed reports whether the section is compressed. A read of any byte then decompresses all of it.
func (s *Section) Compressed() bool {
	_, ok := s.data.(*inflater)
	return ok
}
