package object

import (
	"errors"
	"fmt"
	"io"
	"iter"
)

// Images opens each image in a file of size bytes: the file itself, the members of an archive, or the architectures of a universal file. Archives may
// contain universal files, and the reverse. They are named libx.a(member.o) and libx.a (arm64).
//
// An image that cannot be read yields its error, and the iteration continues. Archive members that are not images, such as the index, are skipped. If the
// file itself has an unknown format, the only error wraps [ErrNotObject]. Images reads only the headers of a member and the data that they require.
func Images(name string, r io.ReaderAt, size int64) iter.Seq2[*Image, error] {
	return func(yield func(*Image, error) bool) { images(name, r, size, holders{}, yield) }
}

// holders records the kinds of file around an image: an archive, a universal file, or both. A kind may not contain itself; no common tool writes
// that.
type holders struct{ archive, fat bool }

// images yields the images of one file, and returns false if the caller stops.
func images(name string, r io.ReaderAt, size int64, in holders, yield func(*Image, error) bool) bool {
	fail := func(format string, args ...any) bool {
		return yield(nil, &Error{name, "", -1, fmt.Errorf(format, args...)})
	}
	var magic [8]byte
	n, _ := r.ReadAt(magic[:min(size, 8)], 0)
	switch {
	case n == len(magic) && isArchive(magic):
		if in.archive {
			return fail("an archive in an archive is not supported")
		}
		in.archive = true
		for m, err := range members(name, r, size) {
			if err != nil {
				if !yield(nil, err) {
					return false
				}
				continue
			}
			if !images(m.name, m.data, m.data.Size(), in, yield) {
				return false
			}
		}
		return true
	}
	if n >= 4 && isFat([4]byte(magic[:4])) {
		list, err := fatSlices(r, size)
		switch {
		case err != nil && !errors.Is(err, ErrNotObject):
			return fail("%w", err)
		case err == nil && in.fat:
			return fail("a universal file in a universal file is not supported")
		case err == nil:
			in.fat = true
			for _, s := range list {
				if !images(name+" ("+s.arch+")", io.NewSectionReader(r, s.offset, s.size), s.size, in, yield) {
					return false
				}
			}
			return true
		}
	}
	img, err := New(name, r, size)
	if in.archive && errors.Is(err, ErrNotObject) {
		return true
	}
	return yield(img, err)
}
