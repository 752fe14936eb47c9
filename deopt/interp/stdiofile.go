package interp

import "bytes"

// openFuncs holds the functions that open files as streams (C17 7.21.5.3). Streams have no buffers: a write reaches the file at once, and input that
// was not read stays there.
var openFuncs = map[string]Builtin{
	"fopen": withFiles(fopen), "fopen64": withFiles(fopen), "tmpfile": withFiles(tmpfile), "tmpfile64": withFiles(tmpfile),
}

// streamMode returns the flags of open for a mode of fopen, and false for an invalid mode.
func streamMode(mode []byte) (flags uint64, ok bool) {
	if len(mode) == 0 {
		return 0, false
	}
	switch mode[0] {
	case 'r':
	case 'w':
		flags = openWrite | openCreate | openTruncate
	case 'a':
		flags = openWrite | openCreate | openAppend
	default:
		return 0, false
	}
	rest, _, _ := bytes.Cut(mode[1:], []byte{','}) // of glibc: ",ccs="
	if bytes.IndexByte(rest, '+') >= 0 {
		flags = flags&^openAccess | openBoth
	}
	if bytes.IndexByte(rest, 'x') >= 0 {
		flags |= openExclusive
	}
	return flags, true
}

func fopen(c *ccall) uint64 {
	name, mode := c.text(0), c.text(1)
	flags, ok := streamMode(mode)
	if !ok && c.err == nil {
		c.setErrno(errInvalid)
	}
	if !ok || c.err != nil {
		return 0
	}
	f, errno := c.openedFile(string(name), flags, 0o666)
	if errno != 0 {
		c.setErrno(errno)
		return 0
	}
	return c.newStream(f, flags)
}

// tmpfile is a file without a name (C17 7.21.4.3).
func tmpfile(c *ccall) uint64 {
	if c.fail(c.in.view.charge(nodeCost)); c.err != nil {
		return 0
	}
	c.in.clib.files.last++
	n := &node{mode: modeFile | 0o600, number: c.in.clib.files.last}
	return c.newStream(&openFile{node: n, flags: openBoth}, openBoth)
}

// newStream gives an open file a descriptor and a stream.
func (c *ccall) newStream(f *openFile, access uint64) uint64 {
	fd := c.describe(f, firstFile)
	if fd == eof || c.err != nil {
		return 0
	}
	return c.addStream(int64(fd), access)
}

// fileStream is fdopen of a file.
func (c *ccall) fileStream(fd int64, f *openFile, mode string) uint64 {
	flags, _ := streamMode([]byte(mode))
	if reads, writes := flags&openAccess != openWrite, flags&openAccess != 0; reads && !f.reads() || writes && !f.writes() {
		c.setErrno(errInvalid)
		return 0
	}
	f.flags |= flags & openAppend
	return c.addStream(fd, flags)
}

// addStream makes a stream of a descriptor, under the first number that is free.
func (c *ccall) addStream(fd int64, access uint64) uint64 {
	l := &c.in.clib
	k := 0
	for k < len(l.others) && l.others[k] != nil {
		k++
	}
	a := c.newFile(k + firstFile)
	if c.err != nil {
		return 0
	}
	if k == len(l.others) {
		l.others = append(l.others, nil)
	}
	l.others[k] = &stream{addr: a, fd: fd, access: access & openAccess}
	return uint64(a)
}

// endStream closes the descriptor of a stream whose FILE is gone.
func (c *ccall) endStream(n int) uint64 {
	s := c.in.clib.stream(n)
	c.in.clib.others[n-firstFile] = nil
	c.in.view.release(handlerCost)
	if !c.closeFile(s.fd) {
		return c.failed(errBadFile)
	}
	return 0
}

// broken notes an error of a stream.
func (c *ccall) broken(n int, errno uint64) {
	c.mark(n, c.in.clib.stream(n).flags|streamError)
	c.setErrno(errno)
}

// printFile writes to a stream of a file.
func (c *ccall) printFile(s *stream, n int, p []byte) bool {
	f := c.file(s.fd)
	if s.access == 0 || f == nil || !f.writes() {
		c.broken(n, errBadFile)
		return false
	}
	if k := uint64(len(s.pushed)); k > 0 { // the place is where they were put back
		f.at -= min(k, f.at)
		s.pushed = nil
	}
	c.append(f, p)
	return c.err == nil
}

// unreadable is the error of reading a file, or 0.
func (f *openFile) unreadable() uint64 {
	switch {
	case f == nil || !f.reads():
		return errBadFile
	case f.node.is(modeDirectory):
		return errIsDir
	}
	return 0
}

// takeFile reads from a stream of a file, and notes its end.
func (c *ccall) takeFile(s *stream, n int, size uint64) []byte {
	f := c.file(s.fd)
	errno := f.unreadable()
	if s.access == openWrite {
		errno = errBadFile
	}
	if errno != 0 {
		c.broken(n, errno)
		return nil
	}
	if s.flags&streamEOF != 0 { // it sticks (C17 7.21.7.1)
		return nil
	}
	p := c.take(f, size)
	if uint64(len(p)) < size {
		c.mark(n, s.flags|streamEOF)
	}
	return p
}

// seeks is the file of a stream, nil of one that is a pipe.
func (c *ccall) seeks(n int) (*stream, *openFile) {
	if c.err != nil || n < firstFile {
		return nil, nil
	}
	s := c.in.clib.stream(n)
	return s, c.file(s.fd)
}

func fseek(c *ccall) uint64 { return c.seekStream(c.int(1), c.int(2)) }

// seekStream moves a stream, and drops its pushed-back bytes and its end-of-file state.
func (c *ccall) seekStream(offset, whence int64) uint64 {
	n := c.stream(0)
	s, f := c.seeks(n)
	if f == nil || c.err != nil {
		return c.nowhere(s)
	}
	if c.seek(f, offset, whence, min(uint64(len(s.pushed)), f.at)) == eof {
		return eof
	}
	s.pushed = nil
	c.mark(n, s.flags&^streamEOF)
	return 0
}

// nowhere returns the result for a stream without a position: a pipe, or a stream whose descriptor is closed.
func (c *ccall) nowhere(s *stream) uint64 {
	if s != nil {
		return c.failed(errBadFile)
	}
	return c.failed(errSeek)
}

func ftell(c *ccall) uint64 {
	s, f := c.seeks(c.stream(0))
	if f == nil {
		return c.nowhere(s)
	}
	return f.at - min(uint64(len(s.pushed)), f.at)
}

// An fpos_t begins with the place, of eight bytes, or four on i386 without large files.
func (c *ccall) placeSize() int {
	if c.longSize() == 4 && c.Name[len(c.Name)-1] != '4' {
		return 4
	}
	return 8
}

func fgetpos(c *ccall) uint64 {
	at := ftell(c)
	if at == eof {
		return eof
	}
	c.fill(c.addr(1), 0, uint64(c.placeSize()+8)) // with an mbstate_t
	c.put(c.addr(1), c.placeSize(), at)
	return 0
}

func fsetpos(c *ccall) uint64 {
	if _, f := c.seeks(c.stream(0)); f == nil {
		return ftell(c)
	}
	return c.seekStream(int64(c.get(c.addr(1), c.placeSize())), 0)
}

func rewind(c *ccall) {
	c.seekStream(0, 0)
	c.mark(max(c.stream(0), 0), 0)
}

func lseek(c *ccall) uint64 {
	fd := c.int(0)
	f := c.file(fd)
	switch {
	case c.err != nil:
		return eof
	case f == nil && (fd < 0 || fd >= firstFile):
		return c.failed(errBadFile)
	case f == nil:
		return c.failed(errSeek)
	}
	return c.seek(f, c.int(1), c.int(2), 0)
}

func fileno(c *ccall) uint64 {
	n := c.stream(0)
	if n >= firstFile {
		return uint64(c.in.clib.stream(n).fd)
	}
	return uint64(int64(n))
}

// closeDescriptor implements close(2). The standard three stay open, as later output needs a destination.
func closeDescriptor(c *ccall) uint64 {
	if fd := c.int(0); c.err == nil && (fd < 0 || fd >= firstFile) && !c.closeFile(fd) {
		return c.failed(errBadFile)
	}
	return 0
}
