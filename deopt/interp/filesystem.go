package interp

import (
	"bytes"
	"path"
	"strings"
)

// fileSystem holds the files that a program sees: names and bytes in memory of this run alone. There are no links. The only user is root, who may do
// everything. The time is constant.
type fileSystem struct {
	names map[string]*node // by absolute paths without "." and ".."
	dir   string           // the working directory
	mask  uint64           // of umask(2)
	last  uint64           // inode number
	made  uint64           // names that mkstemp gave
}

// node is a file, a directory or the null device.
type node struct {
	mode   uint64 // st_mode: what it is, and its permissions
	number uint64 // inode
	links  uint64 // 0 once its name is gone
	data   []byte // of a file
	given  bool   // data is the caller's, who keeps it
}

// Of st_mode (stat(2), inode(7)).
const (
	modeKind      = 0o170000
	modeFile      = 0o100000
	modeDirectory = 0o040000
	modeDevice    = 0o020000
	modePipe      = 0o010000
)

func (n *node) is(kind uint64) bool { return n.mode&modeKind == kind }

const (
	maxPath = 4096 // PATH_MAX of Linux, the ending zero included
	maxName = 255  // NAME_MAX
	// nodeCost is the number of bytes that a file takes of the run's memory in addition to its name and its content.
	nodeCost = 256
)

// newFileSystem has the given files, by name; a name that ends in a slash is a directory. Directories on the way are there too.
func newFileSystem(given map[string][]byte) *fileSystem {
	fs := &fileSystem{names: map[string]*node{}, dir: "/", mask: 0o022}
	fs.add("/", modeDirectory|0o755)
	fs.directories("/tmp")
	fs.names["/tmp"].mode |= 0o1777
	fs.directories("/dev")
	fs.add("/dev/null", modeDevice|0o666)
	for name, data := range given {
		full := path.Join("/", name)
		if strings.HasSuffix(name, "/") {
			fs.directories(full)
			continue
		}
		fs.directories(path.Dir(full))
		n := fs.add(full, modeFile|0o644)
		n.data, n.given = data, true
	}
	return fs
}

func (fs *fileSystem) add(full string, mode uint64) *node {
	fs.last++
	n := &node{mode: mode, number: fs.last, links: 1}
	fs.names[full] = n
	return n
}

// directories makes a directory and those above it, where they are not there.
func (fs *fileSystem) directories(full string) {
	for ; fs.names[full] == nil || !fs.names[full].is(modeDirectory); full = path.Dir(full) {
		fs.add(full, modeDirectory|0o755)
	}
}

// found is the result of looking up a path.
type found struct {
	full  string
	node  *node // nil where there is nothing, but the directory for it is
	slash bool  // the path ends in a slash, as those of directories may
}

// Error numbers of files (errno(3)), on all of Linux but alpha, mips and sparc.
const (
	errExists    = 17
	errBusy      = 16
	errNotDir    = 20
	errIsDir     = 21
	errManyFiles = 24
	errNameLong  = 36
	errNotEmpty  = 39
	errAccess    = 13
	errNoSupport = 95
)

// find follows a path as path_resolution(7) says; the second result is an error number, or 0.
func (fs *fileSystem) find(name string) (found, uint64) {
	switch {
	case name == "":
		return found{}, errNoEntry
	case len(name) >= maxPath:
		return found{}, errNameLong
	}
	full := fs.dir
	if name[0] == '/' {
		full = "/"
	}
	at := fs.names[full]
	for part := range strings.SplitSeq(name, "/") {
		if part == "" {
			continue
		}
		switch {
		case at == nil:
			return found{}, errNoEntry
		case !at.is(modeDirectory):
			return found{}, errNotDir
		case len(part) > maxName:
			return found{}, errNameLong
		}
		full = path.Join(full, part)
		at = fs.names[full]
	}
	slash := strings.HasSuffix(name, "/")
	if slash && at != nil && !at.is(modeDirectory) {
		return found{}, errNotDir
	}
	return found{full, at, slash}, 0
}

// below reports whether a name lies in a directory or one of its own.
func below(name, dir string) bool {
	return strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/") && name != dir
}

// count returns the number of names in a directory and its subdirectories.
func (fs *fileSystem) count(dir string) (n int) {
	for name := range fs.names {
		if below(name, dir) {
			n++
		}
	}
	return n
}

// move renames a file or a directory with its content. An existing file with the new name is removed.
func (fs *fileSystem) move(from, to string) {
	if old := fs.names[to]; old != nil {
		old.links = 0
	}
	moved := map[string]*node{to: fs.names[from]}
	delete(fs.names, from)
	for name, n := range fs.names {
		if below(name, from) {
			moved[to+name[len(from):]] = n
			delete(fs.names, name)
		}
	}
	for name, n := range moved {
		fs.names[name] = n
	}
}

// Files returns the files of [Options].Files as the runs so far left them, with those that were made; a directory in which
// nothing lies has a name that ends in a slash. Names are absolute. It is nil where the option is.
func (in *Interp) Files() map[string][]byte {
	if in.clib.files == nil {
		return nil
	}
	out := map[string][]byte{}
	for name, n := range in.clib.files.names {
		switch {
		case n.is(modeFile):
			out[name] = bytes.Clone(n.data)
		case n.is(modeDirectory) && in.clib.files.count(name) == 0:
			out[strings.TrimSuffix(name, "/")+"/"] = nil
		}
	}
	return out
}
