package ptrace

import (
	"io"
	"os"
	"slices"
	"sync"

	"example.com/reframe/internal/machine/object"
)

// ModuleFiles keeps the files of cores' modules open, with the data read from them. It saves time if many cores of a few programs are opened, one
// after another or concurrently. A file serves one target at a time; [Target.Close] returns it. A file that has changed is opened again.
type ModuleFiles struct {
	mu     sync.Mutex
	idle   []*moduleFile // the file that was returned last is at the end
	closed bool
}

// Bounds of the files that are not used by a target.
const (
	maxIdleFiles = 256
	maxIdleBytes = 64 << 20
)

// moduleFile is a file and the data about it that does not depend on the target.
type moduleFile struct {
	path  string // the path in the core; messages of the image contain it
	debug string // the sysroot and the directories that are searched for separate symbols
	info  os.FileInfo
	file  *os.File
	data  io.ReaderAt
	disk  *identity
	image *object.Image
	also  *os.File // the file with the image's separate symbols, nil if there is none
	held  int64    // size of the image's data in memory
}

// take returns an open file that is the same as the one that info describes, or nil if there is none.
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

// give takes back a file that a target no longer uses.
func (f *ModuleFiles) give(o *moduleFile) {
	o.image.Rebase(0) // also drops data that belongs to the target
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

// Close closes all files that no target uses. Files that are returned later are closed immediately.
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
