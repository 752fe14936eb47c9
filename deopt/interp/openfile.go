package interp

// openFile is an open file description, as open(2) makes: several descriptors may share it.
type openFile struct {
	node  *node
	at    uint64 // where the next read or write is
	flags uint64 // of open
	users int    // descriptors
}

// Flags of open(2) on x86.
const (
	openAccess    = 3
	openWrite     = 1
	openBoth      = 2
	openCreate    = 0o100
	openExclusive = 0o200
	openTruncate  = 0o1000
	openAppend    = 0o2000
	openDirectory = 0o200000
	openNameless  = 0o20000000
)

func (f *openFile) reads() bool  { return f.flags&openAccess != openWrite }
func (f *openFile) writes() bool { return f.flags&openAccess != 0 }

// maxFiles bounds the open descriptors, as RLIMIT_NOFILE mostly does.
const maxFiles = 1024

// firstFile is the first descriptor after standard input, output and error.
const firstFile = 3

// file returns the file of a descriptor, or nil if it has none.
func (c *ccall) file(fd int64) *openFile {
	if k := fd - firstFile; k >= 0 && k < int64(len(c.in.clib.fds)) {
		return c.in.clib.fds[k]
	}
	return nil
}

// describe gives a file its descriptor, the lowest from some number on.
func (c *ccall) describe(f *openFile, least int) uint64 {
	fds := &c.in.clib.fds
	k := max(least-firstFile, 0)
	for k < len(*fds) && (*fds)[k] != nil {
		k++
	}
	if k >= maxFiles-firstFile {
		return c.failed(errManyFiles)
	}
	for k >= len(*fds) {
		*fds = append(*fds, nil)
	}
	(*fds)[k] = f
	f.users++
	return uint64(k + firstFile)
}

// failed is the -1 of a call, with its reason.
func (c *ccall) failed(errno uint64) uint64 {
	c.setErrno(errno)
	return eof
}

// openedFile finds or makes the file of a path.
func (c *ccall) openedFile(name string, flags, mode uint64) (*openFile, uint64) {
	fs := c.in.clib.files
	at, errno := fs.find(name)
	creates := flags&openCreate != 0
	switch {
	case flags&openNameless == openNameless:
		return nil, errNoSupport
	case errno != 0:
		return nil, errno
	case at.node == nil && !creates:
		return nil, errNoEntry
	case at.node == nil && at.slash:
		return nil, errIsDir
	case at.node != nil && creates && flags&openExclusive != 0:
		return nil, errExists
	case at.node != nil && at.node.is(modeDirectory) && (creates || flags&openAccess != 0):
		return nil, errIsDir
	case at.node != nil && !at.node.is(modeDirectory) && flags&openDirectory != 0:
		return nil, errNotDir
	case at.node == nil:
		if c.fail(c.in.view.charge(nodeCost + uint64(len(at.full)))); c.err != nil {
			return nil, errNoMemory
		}
		at.node = fs.add(at.full, modeFile|mode&0o7777&^fs.mask)
	case flags&openTruncate != 0 && at.node.is(modeFile):
		c.resize(at.node, 0)
	}
	return &openFile{node: at.node, flags: flags}, 0
}

// resize makes a file shorter, or longer by zeros.
func (c *ccall) resize(n *node, size uint64) {
	have := uint64(len(n.data))
	switch {
	case c.err != nil:
	case size < have && n.given:
		n.data = n.data[:size:size] // still the caller's, whose bytes stay
	case size < have:
		c.in.view.release(have - size)
		n.data = n.data[:size]
	case size > have:
		c.ownBytes(n)
		if c.fail(c.in.view.charge(size - have)); c.err == nil {
			n.data = append(n.data, make([]byte, size-have)...)
		}
	}
}

// ownBytes makes a file's bytes the run's own, before they change.
func (c *ccall) ownBytes(n *node) {
	if c.err != nil || !n.given {
		return
	}
	if c.fail(c.in.view.charge(uint64(len(n.data)))); c.err == nil {
		n.data, n.given = append([]byte(nil), n.data...), false
	}
}

// store writes to a file at an offset.
func (c *ccall) store(n *node, at uint64, p []byte) {
	if n.is(modeDevice) || len(p) == 0 || c.err != nil {
		return
	}
	end := at + uint64(len(p)) // at has 63 bits, and p fits into memory
	c.fail(c.in.work(uint64(len(p))))
	if c.ownBytes(n); c.err == nil && end > uint64(len(n.data)) {
		c.resize(n, end)
	}
	if c.err == nil {
		copy(n.data[at:], p)
	}
}

// append writes at the position of a file.
func (c *ccall) append(f *openFile, p []byte) {
	if f.flags&openAppend != 0 {
		f.at = uint64(len(f.node.data))
	}
	c.store(f.node, f.at, p)
	f.at += uint64(len(p))
}

// part returns the bytes of a file at an offset, at most size of them.
func (n *node) part(at, size uint64) []byte {
	have := uint64(len(n.data))
	if at >= have {
		return nil
	}
	return n.data[at:][:min(size, have-at)]
}

// take reads at the position of a file.
func (c *ccall) take(f *openFile, size uint64) []byte {
	p := f.node.part(f.at, size)
	f.at += uint64(len(p))
	return p
}

// seek moves a file's position (lseek(2)). back counts the bytes that the stream has pushed back: it is so many bytes before that position.
func (c *ccall) seek(f *openFile, offset, whence int64, back uint64) uint64 {
	base := int64(0)
	switch whence {
	case 0:
	case 1:
		base = int64(f.at - back)
	case 2:
		base = int64(len(f.node.data))
	default:
		return c.failed(errInvalid)
	}
	to := base + offset
	switch {
	case offset > 0 && to < base:
		return c.failed(errOverflow)
	case to < 0:
		return c.failed(errInvalid)
	}
	f.at = uint64(to)
	return f.at
}

// closeFile is the end of one descriptor of a file.
func (c *ccall) closeFile(fd int64) bool {
	f := c.file(fd)
	if f == nil {
		return false
	}
	c.in.clib.fds[fd-firstFile] = nil
	if f.users--; f.users == 0 && f.node.links == 0 && !f.node.given {
		c.forget(f.node)
	}
	return true
}

// forget releases the memory of a file without a name once no descriptor has it open.
func (c *ccall) forget(n *node) {
	for _, f := range c.in.clib.fds {
		if f != nil && f.node == n {
			return
		}
	}
	c.in.view.release(uint64(len(n.data)))
	n.data = nil
}
