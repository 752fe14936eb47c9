package ptrace

import (
	"encoding/hex"
	"os"
	"path"
	"path/filepath"

	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace/files"
)

// DebugDir is the directory where systems keep separate files of debug information, and where debuggers search for them.
const DebugDir = "/usr/lib/debug"

// debugFiles makes modules without a symbol table use separate debug files. These are found by build ID as in gdb ("Separate Debug Files" of its
// manual): DIR/.build-id/ab/cdef….debug. A file is opened when a symbol is needed.
func (t reading) debugFiles() {
	for _, m := range t.Modules {
		if m.Image != nil && !m.debugged {
			m.debugged = true
			m.Image.DebugFrom(func(id []byte) *object.Image { return m.openDebugFile(t.debug, id) })
		}
	}
}

// openDebugFile opens the first file for a build ID, or returns nil.
func (m *Module) openDebugFile(in []opener, id []byte) *object.Image {
	if len(id) < 2 {
		return nil
	}
	name := path.Join(".build-id", hex.EncodeToString(id[:1]), hex.EncodeToString(id[1:])+".debug")
	for _, open := range in {
		f, err := open(name)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil {
			if img, err := object.New(name, &files.Cache{File: f}, info.Size()); err == nil && string(img.BuildID()) == string(id) {
				m.debugFile = f
				return img
			}
		}
		f.Close()
	}
	return nil
}

// opener opens a regular file by its name, which may be relative to a directory.
type opener func(name string) (*os.File, error)

// debugDirs returns openers of directories with debug files; the default is [DebugDir].
func debugDirs(dirs []string) []opener {
	if dirs == nil {
		dirs = []string{DebugDir}
	}
	var list []opener
	for _, dir := range dirs {
		list = append(list, func(name string) (*os.File, error) { return files.OpenRegular(filepath.Join(dir, name), 0) })
	}
	return list
}
