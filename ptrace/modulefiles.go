package ptrace

import (
	"io"
	"os"
	"slices"
	"sync"

	"example.com/reframe/internal/machine/object"
)

// ModuleFiles keeps files of cores' modules open, with what was read of them, for opening many cores of few programs, one after another or several
// at once. A file serves one target at a time; [Target.Close] returns it. A changed file is opened again.
type ModuleFiles struct {
	mu     sync.Mutex
	idle   []*moduleFile // the one that was returned last is the last
	closed bool
}

// Bounds of what is kept while no target has it.
const (
	maxIdleFiles = 256
	maxIdleBytes = 64 << 20
)

// moduleFile is a file and what is known of it, whichever target it serves.
type moduleFile struct {
	path  string // by which the core names it: messages of its image have that
	debug string // where separate symbols were looked for
	info  os.FileInfo
	file  *os.File
	data  io.ReaderAt
	disk  *identity
	image *object.Image
	also  *os.File // that the image's symbols come from, nil where they do not
	held  int64    // bytes that the image has in memory
}

// take returns an open file that is the same as the one which info is about, or nil.
func (f *ModuleFiles) take(path, debug string, info os.FileInfo) *moduleFile {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := len(f.idle) - 1; n >= 0; n-- {
		o := f.idle[n]
		if o.path == path && o.debug == debug && o.info.Size() == info.Size() && o.info.ModTime().Equal(info.ModTime()) && os.SameFile(o.info, info) {
			f.idle = slices.Delete(f.idle, n, n+1)
			return o
		}
	}
	return nil
}

// give takes back a file that a target no longer needs.
func (f *ModuleFiles) give(o *moduleFile) {
	o.image.Rebase(0) // and drop what belongs to the target
	o.held = o.image.Held()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		o.close()
		return
	}
	f.idle = append(f.idle, o)
	held := int64(0)
	for n := len(f.idle) - 1; n >= 0; n-- {
		if held += f.idle[n].held; held > maxIdleBytes || len(f.idle)-n > maxIdleFiles {
			for _, old := range f.idle[:n+1] {
				old.close()
			}
			f.idle = slices.Delete(f.idle, 0, n+1)
			return
		}
	}
}

// Close closes all files that no target uses, and makes those that are returned later close.
func (f *ModuleFiles) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, o := range f.idle {
		o.close()
	}
	f.idle = nil
}

func (o *moduleFile) close() {
	o.file.Close()
	if o.also != nil {
		o.also.Close()
	}
}
