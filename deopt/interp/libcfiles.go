package interp

import (
	"fmt"
	"strings"

	"reframe/deopt/machine"
)

// fileFuncs are POSIX's on descriptors and names of files: of <fcntl.h>, <unistd.h> and <stdio.h>. Without [Options].Files they
// are refused.
var fileFuncs = fileTable()

// hintFiles advises what to do about a call that requires files.
const hintFiles = "give the input on standard input, or the files in Options.Files"

// withFiles is a function of a run that has files.
func withFiles(f func(c *ccall) uint64) Builtin {
	return scalar(func(c *ccall) uint64 {
		if c.in.clib.files == nil {
			c.fail(unsupported(hintFiles, "a call of @%s", c.Name))
			return 0
		}
		return f(c)
	})
}

// named is a function of one that there is, by the name in argument i.
func named(i int, f func(c *ccall, at found) uint64) Builtin {
	return withFiles(func(c *ccall) uint64 {
		at, errno := c.path(i)
		if errno == 0 && at.node == nil {
			errno = errNoEntry
		}
		if errno != 0 || c.err != nil {
			return c.failed(errno)
		}
		return f(c, at)
	})
}

// described is a function of an open file, by the descriptor in argument 0.
func described(f func(c *ccall, file *openFile) uint64) Builtin {
	return withFiles(func(c *ccall) uint64 {
		fd := c.int(0)
		file := c.file(fd)
		if c.err != nil || file == nil {
			if fd >= 0 && fd < firstFile {
				return c.failed(errInvalid) // of a pipe
			}
			return c.failed(errBadFile)
		}
		return f(c, file)
	})
}

func fileTable() map[string]Builtin {
	done := func(*ccall, *openFile) uint64 { return 0 }
	table := map[string]Builtin{
		"open": withFiles(func(c *ccall) uint64 { return c.open(0) }), "openat": withFiles(openAt),
		"creat": withFiles(func(c *ccall) uint64 { return c.openWith(string(c.text(0)), openWrite|openCreate|openTruncate, 1) }),
		"pread": described(pread), "pwrite": described(pwrite), "ftruncate": described(ftruncate), "truncate": named(0, truncate),
		"fcntl": withFiles(fcntl), "dup": withFiles(dup), "flock": described(done), "fdatasync": described(done),
		"unlink": named(0, unlink), "rmdir": named(0, rmdir), "remove": named(0, remove), "rename": named(0, rename), "mkdir": withFiles(mkdir),
		"chdir": named(0, chdir), "getcwd": withFiles(getcwd), "umask": withFiles(umask), "mkstemp": withFiles(mkstemp),
		"readlink": named(0, func(c *ccall, _ found) uint64 { return c.failed(errInvalid) }), // there are no links
		"chmod":    named(0, func(c *ccall, at found) uint64 { return chmod(c, at.node) }),
		"fchmod":   described(func(c *ccall, f *openFile) uint64 { return chmod(c, f.node) }),
		"chown":    named(0, func(*ccall, found) uint64 { return 0 }), "fchown": described(done),
		"utime": named(0, func(*ccall, found) uint64 { return 0 }), "utimes": named(0, func(*ccall, found) uint64 { return 0 }),
	}
	for _, name := range []string{"open", "openat", "creat", "pread", "pwrite", "ftruncate", "truncate", "fcntl", "mkstemp"} {
		table[name+"64"] = table[name]
	}
	return table
}

// path follows the path that argument i points to.
func (c *ccall) path(i int) (found, uint64) {
	name := c.text(i)
	if c.err != nil {
		return found{}, errNoEntry
	}
	return c.in.clib.files.find(string(name))
}

// open is open(2) whose path is argument i.
func (c *ccall) open(i int) uint64 { return c.openWith(string(c.text(i)), c.uint(i+1), i+2) }

// openWith opens a file; argument mode is there if one can be made.
func (c *ccall) openWith(name string, flags uint64, mode int) uint64 {
	permissions := uint64(0)
	if flags&openCreate != 0 {
		permissions = c.uint(mode)
	}
	if c.err != nil {
		return eof
	}
	f, errno := c.openedFile(name, flags, permissions)
	if errno != 0 {
		return c.failed(errno)
	}
	return c.describe(f, firstFile)
}

// atWorking is AT_FDCWD.
const atWorking = -100

func openAt(c *ccall) uint64 {
	if c.int(0) != atWorking && !strings.HasPrefix(string(c.text(1)), "/") {
		c.fail(unsupported("open it by its whole name", "@%s of a name in a directory that is given by a descriptor", c.Name))
		return 0
	}
	return c.open(1)
}

// offset is argument i, an off_t, or notes why it cannot be one.
func (c *ccall) offset(i int) (uint64, bool) {
	at := c.int(i)
	if at < 0 && c.err == nil {
		c.setErrno(errInvalid)
	}
	return uint64(at), at >= 0 && c.err == nil
}

func pread(c *ccall, f *openFile) uint64 {
	at, ok := c.offset(3)
	switch {
	case !ok:
		return eof
	case !f.reads():
		return c.failed(errBadFile)
	case f.node.is(modeDirectory):
		return c.failed(errIsDir)
	}
	p := f.node.part(at, c.uint(2))
	c.write(c.addr(1), p)
	return uint64(len(p))
}

func pwrite(c *ccall, f *openFile) uint64 {
	at, ok := c.offset(3)
	switch {
	case !ok:
		return eof
	case !f.writes():
		return c.failed(errBadFile)
	}
	p := c.bytes(c.addr(1), c.uint(2))
	if f.flags&openAppend != 0 { // as Linux does, against POSIX (pwrite(2), BUGS)
		at = uint64(len(f.node.data))
	}
	c.store(f.node, at, p)
	return uint64(len(p))
}

func ftruncate(c *ccall, f *openFile) uint64 {
	size, ok := c.offset(1)
	switch {
	case !ok:
		return eof
	case !f.writes() || !f.node.is(modeFile):
		return c.failed(errInvalid)
	}
	c.resize(f.node, size)
	return 0
}

func truncate(c *ccall, at found) uint64 {
	size, ok := c.offset(1)
	switch {
	case !ok:
		return eof
	case at.node.is(modeDirectory):
		return c.failed(errIsDir)
	case !at.node.is(modeFile):
		return c.failed(errInvalid)
	}
	c.resize(at.node, size)
	return 0
}

// Commands of fcntl(2), with the numbers that a program for 32 bits has for the locks of large files.
const (
	fcntlDup        = 0
	fcntlGetFlags   = 3
	fcntlSetFlags   = 4
	fcntlGetLock    = 5
	fcntlGetLock64  = 12
	fcntlDupOnExec  = 1030
	unlocked        = 2 // F_UNLCK
	openKeepsOfMode = openAccess | openAppend
)

// fcntl implements copies of descriptors, flags and locks. No other process can hold a lock.
func fcntl(c *ccall) uint64 {
	fd, command := c.int(0), c.uint(1)
	file := c.file(fd)
	std := fd >= 0 && fd < firstFile
	if c.err != nil || file == nil && !std {
		return c.failed(errBadFile)
	}
	switch command {
	case fcntlDup, fcntlDupOnExec:
		return c.copied(file, c.int(2))
	case 1, 2: // F_GETFD, F_SETFD: nothing is executed
		return 0
	case fcntlGetFlags:
		if std {
			return uint64(min(fd, openWrite))
		}
		return file.flags & openKeepsOfMode
	case fcntlSetFlags:
		if file != nil {
			file.flags = file.flags&^openAppend | c.uint(2)&openAppend
		}
		return 0
	case fcntlGetLock, fcntlGetLock64:
		c.put(c.addr(2), 2, unlocked)
		return 0
	case 6, 7, 13, 14: // F_SETLK, F_SETLKW and those of large files
		return 0
	}
	return c.failed(errInvalid)
}

// copied is a further descriptor of a file.
func (c *ccall) copied(f *openFile, least int64) uint64 {
	switch {
	case f == nil:
		c.fail(unsupported("there are standard input, output and error once", "@%s of one of them", c.Name))
		return 0
	case least < 0 || least >= maxFiles:
		return c.failed(errInvalid)
	}
	return c.describe(f, int(least))
}

func dup(c *ccall) uint64 {
	fd := c.int(0)
	f := c.file(fd)
	if f == nil && (fd < 0 || fd >= firstFile) {
		return c.failed(errBadFile)
	}
	return c.copied(f, 0)
}

func unlink(c *ccall, at found) uint64 {
	if at.node.is(modeDirectory) {
		return c.failed(errIsDir)
	}
	delete(c.in.clib.files.names, at.full)
	c.in.view.release(nodeCost + uint64(len(at.full)))
	if at.node.links = 0; !at.node.given {
		c.forget(at.node)
	}
	return 0
}

func rmdir(c *ccall, at found) uint64 {
	fs := c.in.clib.files
	c.fail(c.in.work(uint64(64 * len(fs.names))))
	switch {
	case c.err != nil:
		return eof
	case !at.node.is(modeDirectory):
		return c.failed(errNotDir)
	case at.full == "/":
		return c.failed(errBusy)
	case fs.count(at.full) > 0:
		return c.failed(errNotEmpty)
	}
	delete(fs.names, at.full)
	c.in.view.release(nodeCost + uint64(len(at.full)))
	at.node.links = 0
	return 0
}

func remove(c *ccall, at found) uint64 {
	if at.node.is(modeDirectory) {
		return rmdir(c, at)
	}
	return unlink(c, at)
}

// rename is rename(2).
func rename(c *ccall, from found) uint64 {
	fs := c.in.clib.files
	to, errno := c.path(1)
	if c.fail(c.in.work(uint64(64 * len(fs.names)))); c.err != nil {
		return eof
	}
	dir := from.node.is(modeDirectory)
	switch {
	case errno != 0:
	case from.full == "/" || to.full == "/":
		errno = errBusy
	case to.node == nil && to.slash && !dir:
		errno = errNotDir
	case dir && below(to.full, from.full):
		errno = errInvalid
	case to.node == from.node:
		return 0
	case to.node == nil:
	case dir && !to.node.is(modeDirectory):
		errno = errNotDir
	case !dir && to.node.is(modeDirectory):
		errno = errIsDir
	case dir && fs.count(to.full) > 0:
		errno = errNotEmpty
	}
	if errno != 0 {
		return c.failed(errno)
	}
	n := uint64(1 + fs.count(from.full))
	if c.fail(c.in.view.charge(n * uint64(len(to.full)))); c.err == nil {
		fs.move(from.full, to.full)
		c.in.view.release(n * uint64(len(from.full)))
	}
	return 0
}

func mkdir(c *ccall) uint64 {
	at, errno := c.path(0)
	if errno == 0 && at.node != nil {
		errno = errExists
	}
	if errno == errNotDir && at.full == "" { // a file whose name ends in a slash
		if plain, _ := c.in.clib.files.find(strings.TrimRight(string(c.text(0)), "/")); plain.node != nil {
			errno = errExists
		}
	}
	if errno != 0 || c.err != nil {
		return c.failed(errno)
	}
	if c.fail(c.in.view.charge(nodeCost + uint64(len(at.full)))); c.err == nil {
		c.in.clib.files.add(at.full, modeDirectory|c.uint(1)&0o1777&^c.in.clib.files.mask)
	}
	return 0
}

func chdir(c *ccall, at found) uint64 {
	if !at.node.is(modeDirectory) {
		return c.failed(errNotDir)
	}
	c.in.clib.files.dir = at.full
	return 0
}

// getcwd takes memory for the name where it is given none.
func getcwd(c *ccall) uint64 {
	fs, to, size := c.in.clib.files, c.addr(0), c.uint(1)
	need := uint64(len(fs.dir)) + 1
	switch {
	case c.err != nil:
		return 0
	case fs.names[fs.dir] == nil:
		c.setErrno(errNoEntry)
		return 0
	case to == 0 && size == 0:
		return c.duplicate([]byte(fs.dir))
	case size == 0:
		c.setErrno(errInvalid)
		return 0
	case size < need:
		c.setErrno(errRange)
		return 0
	case to == 0:
		to = machine.Addr(c.allocate(size, 16, false))
	}
	return c.copyText(to, []byte(fs.dir))
}

func umask(c *ccall) uint64 {
	fs := c.in.clib.files
	old := fs.mask
	fs.mask = c.uint(0) & 0o777
	return old
}

func chmod(c *ccall, n *node) uint64 {
	n.mode = n.mode&modeKind | c.uint(1)&0o7777
	return 0
}

// mkstemp makes a file whose name ends in an unused number, which is the same in each run.
func mkstemp(c *ccall) uint64 {
	template, fs := string(c.text(0)), c.in.clib.files
	head, ok := strings.CutSuffix(template, "XXXXXX")
	if !ok {
		return c.failed(errInvalid)
	}
	for fs.made < 1e6 && c.err == nil {
		name := fmt.Sprintf("%s%06d", head, fs.made)
		fs.made++
		f, errno := c.openedFile(name, openBoth|openCreate|openExclusive, 0o600)
		switch errno {
		case 0:
			c.copyText(c.addr(0), []byte(name))
			return c.describe(f, firstFile)
		case errExists:
			c.fail(c.in.work(64))
		default:
			return c.failed(errno)
		}
	}
	return c.failed(errExists)
}

// allows reports whether access(2) allows a use of a file for root, who may execute what any user may execute.
func (n *node) allows(want uint64) bool {
	return want&1 == 0 || n.is(modeDirectory) || n.mode&0o111 != 0
}
