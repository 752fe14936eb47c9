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

// NamedFile is a file that a name matches.
type NamedFile struct {
	Path string
	// Found reports whether a folder or pattern matched the file. Such a file may belong to another process or be an earlier version.
	Found bool
}

// These limit the files that folders and patterns match.
const (
	maxFiles = 20_000
	maxDepth = 16
	maxBytes = 1 << 30
	maxNotes = 8
)

// checkedWhole is the greatest size in bytes of a module whose functions are all parsed at once, to find errors early. This takes a few milliseconds.
const checkedWhole = 128 << 10

// Files returns the files that names match, in order. A name is a file, a folder (all its files *.ll and *.bc, also in subfolders), or a pattern
// ([filepath.Match]) of files and folders.
func Files(names []string) ([]NamedFile, error) {
	var all []NamedFile
	for _, name := range names {
		some, err := files(name)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(all) > maxFiles {
			return nil, fmt.Errorf("%s: over %d files; give fewer", name, maxFiles)
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
	paths, err := filepath.Glob(name) // in ascending order
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

// ErrNoFile is wrapped by the error for a folder or pattern that matches no module. A process may still write one.
var ErrNoFile = errors.New("no file matches")

// noneError is the error, an [ErrNoFile], for a folder without modules.
type noneError struct{ dir string }

func (e *noneError) Error() string { return e.dir + ": contains no *.ll or *.bc file" }

// Is reports to [errors.Is] that the error is an [ErrNoFile].
func (e *noneError) Is(target error) bool { return target == ErrNoFile }

// folder returns the modules in a folder.
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

// IsFile reports whether a file name has the extension of a module.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".ll") || strings.HasSuffix(name, ".bc")
}

// ReadNamed reads the modules that names match ([Files]): text, or bitcode if llvm-dis is installed. A file named by the user must be valid. Of the files
// that folders and patterns match, at least one must be valid; notes describe the errors in others. Files with the same text are read once.
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
	seen  map[uint64]bool // hashes of the texts already read from files that folders and patterns matched
	seed  maphash.Seed
	bytes int64
	bad   int
}

// read parses one file. It returns nil for a file with the same text as an earlier one.
func (r *reader) read(f NamedFile) (*Module, error) {
	if f.Found {
		info, err := os.Stat(f.Path)
		if err != nil {
			return nil, err
		}
		if r.bytes += info.Size(); r.bytes > maxBytes {
			return nil, fmt.Errorf("%s: with it there are over %d MiB of modules; give fewer", f.Path, maxBytes>>20)
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
