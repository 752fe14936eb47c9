package object

import "debug/elf"

// hidden returns a function that reports whether a row of a .dynsym is a non-default version of its name (.gnu.version; Linux Standard Base, "Symbol
// Versioning"). Only programs linked against that version refer to it. hidden returns nil if no row has a version.
func (f *elfFormat) hidden(n int) func(row uint64) bool {
	for at, s := range f.file.Sections {
		if s.Type != elf.SHT_GNU_VERSYM || int(s.Link) != n {
			continue
		}
		versions := f.image.all[at]
		if versions.Readable() != nil {
			return nil
		}
		return func(row uint64) bool {
			const hidden = 1 << 15 // VERSYM_HIDDEN of glibc's elf.h
			var b [2]byte
			got, _ := versions.ReadAt(b[:], int64(2*row))
			return got == len(b) && f.file.ByteOrder.Uint16(b[:])&hidden != 0
		}
	}
	return nil
}
