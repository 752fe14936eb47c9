package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

var (
	errNotRegular = errors.New("not a regular file")
	errLinks      = errors.New("too many symbolic links")
)

// Sysroot is a directory that contains the files of another machine at their paths. Symbolic links in it are resolved as on that machine. No link
// leads out of the directory ([os.Root]).
type Sysroot struct{ root *os.Root }

func OpenSysroot(dir string) (*Sysroot, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Sysroot{root}, nil
}

// Close closes the directory. Files that were opened in it stay open.
func (s *Sysroot) Close() { s.root.Close() }

// maxLinks bounds the number of symbolic links in a path; it is Linux's limit (path_resolution(7)).
const maxLinks = 40

// Open opens a regular file by its absolute path on the other machine.
func (s *Sysroot) Open(name string) (*os.File, error) {
	rest := strings.Split(path.Clean("/"+name), "/")[1:]
	at := "." // the part of the path that is already resolved
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at) // the parent of "." is "."
			continue
		}
		here := path.Join(at, part)
		info, err := s.root.Lstat(here)
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = here
			continue
		}
		if links++; links > maxLinks {
			return nil, errLinks
		}
		to, err := s.root.Readlink(here)
		if err != nil {
			return nil, err
		}
		if path.IsAbs(to) {
			at = "."
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	info, err := s.root.Lstat(at)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := s.root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0) // another process may have replaced the file by a pipe
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		f.Close()
		return nil, errNotRegular
	}
	return f, nil
}
