// Package newfile makes files that are there under their name when they are whole, or not at all. The main type is
// [File]. Nothing is read; what is trusted is the folder that the file comes to.
package newfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// File is one that is being written, under a hidden name beside the one that it is to have.
type File struct {
	*os.File
	path string
}

// Create begins the file that is to come into being or to be replaced where path is given: what a symbolic link leads to.
// Devices, pipes and directories are not replaced. Nobody else may read it, unless [os.File.Chmod] lets them.
func Create(path string) (*File, error) {
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return nil, &os.PathError{Op: "create", Path: path, Err: fmt.Errorf("%w: it is not a regular file", syscall.EEXIST)}
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".reframe.*") // tells what else is wrong with the path
	if err != nil {
		return nil, err
	}
	return &File{f, path}, nil
}

// Finish closes the file and gives it its name. Where err is not nil, or that fails, it is gone, and what was there
// before is as it was. It returns what went wrong, err too.
func (f *File) Finish(err error) error {
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
