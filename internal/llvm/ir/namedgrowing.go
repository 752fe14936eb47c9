package ir

import (
	"errors"
	"slices"
)

// ReadGrowing reads the modules that names match while a process may still write more. Folders and patterns may match no module yet, or files that cannot be
// read because they are being written. grows reports whether one of the names is such a folder or pattern.
func ReadGrowing(names []string) (modules []*Module, notes []string, grows bool, err error) {
	var there []string
	named := false
	for _, name := range names {
		list, err := Files([]string{name})
		grows = grows || errors.Is(err, ErrNoFile) || slices.ContainsFunc(list, func(f NamedFile) bool { return f.Found })
		if errors.Is(err, ErrNoFile) {
			continue
		}
		there = append(there, name)
		named = named || err != nil || slices.ContainsFunc(list, func(f NamedFile) bool { return !f.Found })
	}
	modules, notes, err = ReadNamed(there)
	if err != nil && !named {
		return nil, []string{err.Error()}, grows, nil
	}
	return modules, notes, grows, err
}
