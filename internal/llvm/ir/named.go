package ir

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// NamedFile is one that a name leads to.
type NamedFile struct {
	Path string
	// Found says that a folder or pattern led to it: it may be of another process, or an earlier version.
	Found bool
}

// Bounds on what a folder or pattern leads to.
const (
	maxFiles = 20_000
	maxDepth = 16
	maxBytes = 1 << 30
	maxNotes = 8
)

// checkedWhole is how large a module may be, in bytes, for all of its functions to be read at once, so that a
// mistake is found early. It takes a few milliseconds.
const checkedWhole = 128 << 10

// Files lists what names lead to, in their order. Each is a file; a folder, of which all files *.ll and *.bc are meant, those of
// folders in it too; or a pattern ([filepath.Match]) of files and folders.
func Files(names []string) ([]NamedFile, error) {
	var all []NamedFile
	for _, name := range names {
		some, err := files(name)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(all) > maxFiles {
			return nil, fmt.Errorf("%s: over %d files; name those that are meant", name, maxFiles)
		}
	}
	return all, nil
}

func files(name string) ([]NamedFile, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return folder(name)
	case err == nil || !errors.Is(err, fs.ErrNotExist) || !strings.ContainsAny(name, "*?["):
		return []NamedFile{{Path: name}}, nil
	}
	paths, err := filepath.Glob(name) // ascending
	if err == nil && len(paths) == 0 {
		err = ErrNoFile
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []NamedFile
	for _, path := range paths {
		some := []NamedFile{{path, true}}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if some, err = folder(path); err != nil {
				return nil, err
			}
		}
		all = append(all, some...)
	}
	return all, nil
}

// ErrNoFile is wrapped where a folder or a pattern leads to no module, and a process may still write one.
var ErrNoFile = errors.New("no file is called so")

// noneError is [ErrNoFile] of a folder.
type noneError struct{ dir string }

func (e *noneError) Error() string { return e.dir + ": no file *.ll or *.bc is in it" }

// Is reports to [errors.Is] that the error is an [ErrNoFile].
func (e *noneError) Is(target error) bool { return target == ErrNoFile }

// folder lists the modules in a folder.
func folder(dir string) (all []NamedFile, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if below, _ := filepath.Rel(dir, path); strings.Count(below, string(filepath.Separator)) >= maxDepth {
				return filepath.SkipDir
			}
		case IsFile(path) && d.Type().IsRegular():
			if all = append(all, NamedFile{path, true}); len(all) > maxFiles {
				return fs.SkipAll
			}
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = &noneError{dir}
	}
	return all, err
}

// IsFile reports whether a name is that of a module, by how it ends.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".ll") || strings.HasSuffix(name, ".bc")
}

// ReadNamed reads the modules that names lead to ([Files]): text, or bitcode where llvm-dis is installed. A file that was named has to be
// sound; of those that were found one at least, and notes say what is wrong with others. What has the same text as another is read once.
func ReadNamed(names []string) (modules []*Module, notes []string, err error) {
	files, err := Files(names)
	if err != nil {
		return nil, nil, err
	}
	r := &reader{seen: map[uint64]bool{}, seed: maphash.MakeSeed()}
	var why error
	for _, f := range files {
		m, err := r.read(f)
		switch {
		case err != nil && !f.Found:
			return nil, nil, err
		case err != nil:
			if r.bad++; r.bad == 1 {
				why = err
			}
			if r.bad <= maxNotes {
				notes = append(notes, err.Error())
			}
		case m != nil:
			modules = append(modules, m)
		}
	}
	if len(modules) == 0 && why != nil {
		return nil, nil, why
	}
	if r.bad > maxNotes {
		notes = append(notes, fmt.Sprintf("and %d more files could not be read", r.bad-maxNotes))
	}
	return modules, notes, nil
}

type reader struct {
	seen  map[uint64]bool // hashes of texts that were found
	seed  maphash.Seed
	bytes int64
	bad   int
}

// read reads one file, nil for one whose text was read before.
func (r *reader) read(f NamedFile) (*Module, error) {
	if f.Found {
		info, err := os.Stat(f.Path)
		if err != nil {
			return nil, err
		}
		if r.bytes += info.Size(); r.bytes > maxBytes {
			return nil, fmt.Errorf("%s: with it there are over %d MiB of modules; name those that are meant", f.Path, maxBytes>>20)
		}
	}
	m, err := ParseFile(f.Path)
	if err == nil && !f.Found && m.Size() <= checkedWhole {
		err = m.Check()
	}
	if err != nil {
		return nil, err
	}
	if f.Found {
		same := maphash.String(r.seed, m.Text())
		if r.seen[same] {
			return nil, nil
		}
		r.seen[same], m.Found = true, true
	}
	return m, nil
}
