package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
)

// These describe an archive: a magic string and members, each with a header of 60 bytes of text (ar(5)). A name that does not fit in the header is in
// the member "//" (GNU) or before the member's bytes (BSD). Import libraries of Windows are GNU archives with a second index.
const (
	archiveMagic = "!<arch>\n"
	thinMagic    = "!<thin>\n"
	memberHeader = 60
)

func isArchive(magic [8]byte) bool {
	return string(magic[:]) == archiveMagic || string(magic[:]) == thinMagic
}

// member is one file of an archive.
type member struct {
	name string // in the form libx.a(member.o)
	data *io.SectionReader
}

// members yields the members of an archive that are files. The iteration ends after the first malformed member, because the start of the next one is
// unknown then.
func members(name string, r io.ReaderAt, size int64) iter.Seq2[member, error] {
	return func(yield func(member, error) bool) {
		a := archive{name: name, r: r, size: size}
		var magic [8]byte
		_, _ = r.ReadAt(magic[:], 0)
		a.thin = string(magic[:]) == thinMagic
		for at := int64(len(magic)); at < size; {
			m, next, err := a.member(at)
			if err != nil {
				yield(member{}, &Error{name, "", at, err})
				return
			}
			if m.data != nil && !yield(m, nil) {
				return
			}
			at = next
		}
	}
}

type archive struct {
	name  string
	r     io.ReaderAt
	size  int64
	thin  bool
	names *io.SectionReader // the long names, after the member "//" was read
}

// member reads the member whose header is at offset at, and returns the offset of the next header. A member that belongs to the archive itself, such as
// its index, has no data.
func (a *archive) member(at int64) (m member, next int64, err error) {
	var h [memberHeader]byte
	if n, _ := a.r.ReadAt(h[:], at); n < len(h) {
		return m, 0, errors.New("it ends inside the header of a member")
	}
	if h[58] != '`' || h[59] != '\n' {
		return m, 0, errors.New("malformed member header")
	}
	field := strings.TrimRight(string(h[48:58]), " ")
	length, err := strconv.ParseInt(field, 10, 64)
	if err != nil || length < 0 {
		return m, 0, fmt.Errorf("%q is not a valid member size", field)
	}
	name := strings.TrimRight(string(h[:16]), " ")
	start := at + memberHeader
	// In a thin archive only members that belong to the archive itself have bytes.
	own := name == "/" || name == "//" || name == "/SYM64/"
	if a.thin && !own {
		if name, err = a.longName(name); err != nil {
			return m, 0, err
		}
		return m, 0, fmt.Errorf("a thin archive, which has no contents: give its members instead; the first is %q", name)
	}
	if length > a.size-start {
		return m, 0, fmt.Errorf("a member of %d bytes, but only %d are left", length, a.size-start)
	}
	// Members start at even offsets.
	next = start + length + length&1
	data := io.NewSectionReader(a.r, start, length)
	switch {
	case name == "//":
		a.names = data
		return m, next, nil
	case own || strings.HasPrefix(name, "/<"): // such as </ECSYMBOLS/> and </HYBRIDMAP/>
		return m, next, nil
	case strings.HasPrefix(name, "#1/"):
		n, err := strconv.ParseInt(name[3:], 10, 64)
		if err != nil || n < 0 || n > length {
			return m, 0, fmt.Errorf("%q is not a valid name length in a member of %d bytes", name, length)
		}
		b := make([]byte, min(n, maxName))
		if _, err := a.r.ReadAt(b, start); err != nil && len(b) > 0 {
			return m, 0, err
		}
		b, _, _ = bytes.Cut(b, []byte{0})
		name, data = string(b), io.NewSectionReader(a.r, start+n, length-n)
	default:
		if name, err = a.longName(name); err != nil {
			return m, 0, err
		}
	}
	if strings.HasPrefix(name, "__.SYMDEF") {
		return m, next, nil
	}
	return member{a.name + "(" + name + ")", data}, next, nil
}

// longName returns the name of a member in GNU's form: a name that ends with a slash, or an offset in the long names. A long name ends with a slash and a
// newline, or on Windows with a zero byte.
func (a *archive) longName(name string) (string, error) {
	digits, long := strings.CutPrefix(name, "/")
	if !long {
		return strings.TrimSuffix(name, "/"), nil
	}
	at, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || a.names == nil || at < 0 || at >= a.names.Size() {
		return "", fmt.Errorf("%q is not a valid member name", name)
	}
	b := make([]byte, min(a.names.Size()-at, maxName))
	if _, err := a.names.ReadAt(b, at); err != nil && err != io.EOF {
		return "", err
	}
	if end := bytes.IndexAny(b, "\x00\n"); end >= 0 {
		b = b[:end]
	}
	return string(bytes.TrimSuffix(b, []byte("/"))), nil
}
