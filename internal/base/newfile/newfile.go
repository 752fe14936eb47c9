// Package newfile creates output files without losing existing ones. It replaces existing content only on request. A [File], the main type, appears
// under its name only when it is complete. The package reads no input; it trusts the folder in which it creates a file.
package newfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// File is a file that is being written. Until it is complete it has a hidden name in its final folder.
type File struct {
	*os.File
	path    string
	replace bool
}

// Free returns an error that wraps [os.ErrExist] if a regular file at path must not be overwritten. That is a file that is not empty, or one of
// another user, who may have created it to read the output. Free follows symbolic links.
func Free(path string) error {
	switch info, err := os.Stat(path); {
	case err != nil || !info.Mode().IsRegular():
		return nil
	case info.Size() > 0:
		return &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
	case foreign(info):
		return &os.PathError{Op: "create", Path: path, Err: fmt.Errorf("%w: it belongs to another user", syscall.EEXIST)}
	}
	return nil
}

// Regular reports whether [Create] may write to path: path does not exist, or is a regular file.
func Regular(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// Unused calls make with dir/name, then with name-2, name-3 and so on before the extension, until make succeeds or its error does not wrap
// [os.ErrExist]. It makes at most `most` calls. It returns the last path and its error.
func Unused(dir, name string, most int, make func(path string) error) (path string, err error) {
	ext := filepath.Ext(name)
	for n := 1; n <= most; n++ {
		as := name
		if n > 1 {
			as = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
		}
		path = filepath.Join(dir, as)
		if err = make(path); !errors.Is(err, os.ErrExist) {
			break
		}
	}
	return path, err
}

// Create starts a file that will appear at path, or at the target of a symbolic link. It replaces an existing file only if replace is set or that file is
// empty; otherwise the error wraps [os.ErrExist]. It does not replace devices, pipes and directories. Only the owner may read the file, unless
// [os.File.Chmod] changes that.
func Create(path string, replace bool) (*File, error) {
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return nil, &os.PathError{Op: "create", Path: path, Err: fmt.Errorf("%w: it is not a regular file", syscall.EEXIST)}
	case err == nil:
		if !replace && Free(path) != nil {
			return nil, Free(path)
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".reframe.*") // its error reports other problems with the path
	if err != nil {
		return nil, err
	}
	return &File{f, path, replace}, nil
}

// Stream opens a file that can be read while it is written: a new file, a device or a pipe. It treats an existing file as [Create] does. Only the owner may
// read a new file, because it holds memory of a process. Opening a pipe waits for a reader (fifo(7)) until ctx is done, and then returns the cause of ctx.
func Stream(ctx context.Context, path string, replace bool) (*os.File, error) {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if info, err := os.Stat(path); err == nil {
		if err := Free(path); err != nil && !replace {
			return nil, err
		}
		mode = os.O_WRONLY | os.O_TRUNC
		if info.Mode()&os.ModeNamedPipe != 0 {
			return pipe(ctx, path)
		}
	}
	return os.OpenFile(path, mode, 0o600)
}

// pipe opens a named pipe for writing.
func pipe(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
		// Opening the pipe for reading unblocks the pending open(2) above.
		if reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			go func() {
				if o := <-done; o.file != nil {
					o.file.Close()
				}
				reader.Close()
			}()
		}
		return nil, context.Cause(ctx)
	}
}

// Finish closes the file and gives it its final name. If err is not nil, or a step fails, it removes the new file and leaves an earlier one unchanged. It
// returns all errors, including err.
func (f *File) Finish(err error) error {
	err = errors.Join(err, f.Close())
	if err == nil {
		err = f.name()
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// name gives the file its final name. It does not overwrite a file that has appeared there in the meantime.
func (f *File) name() error {
	if !f.replace {
		switch err := os.Link(f.Name(), f.path); {
		case err == nil:
			_ = os.Remove(f.Name()) // the file also has its final name now
			return nil
		case Free(f.path) != nil:
			return Free(f.path)
		}
		// The existing file is empty, or the file system does not support hard links.
	}
	return os.Rename(f.Name(), f.path)
}

// Same reports whether two names refer to one file, through links too. The file need not exist yet.
func Same(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	if err == nil && err2 == nil {
		return os.SameFile(one, other)
	}
	a, err = filepath.Abs(a)
	b, err2 = filepath.Abs(b)
	return err == nil && err2 == nil && a == b
}
