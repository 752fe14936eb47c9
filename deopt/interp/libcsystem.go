package interp

import (
	chacha "math/rand/v2"

	"reframe/deopt/machine"
)

// systemFuncs holds functions that ask the system for values that a run can compute: there are no files, one thread, and random bytes that are the
// same in each run.
var systemFuncs = map[string]Builtin{
	"access": scalar(access), "fdopen": scalar(fdopen),
	"getrandom":          scalar(func(c *ccall) uint64 { return c.randomBytes(c.addr(0), c.uint(1)) }),
	"getentropy":         scalar(getentropy),
	"pthread_mutex_init": scalar(mutexInit), "pthread_mutex_destroy": always(0), "pthread_mutexattr_destroy": always(0),
	"pthread_mutexattr_init": scalar(func(c *ccall) uint64 { c.put(c.addr(0), 4, 0); return 0 }), "pthread_mutexattr_settype": scalar(mutexType),
	"sem_init": scalar(semInit), "sem_destroy": always(0), "sem_post": scalar(semPost),
	"sem_wait": scalar(semWait), "sem_trywait": scalar(semTryWait), "sem_timedwait": scalar(semTimedWait), "sem_getvalue": scalar(semGetValue),
}

const (
	errNoEntry  = 2
	errIO       = 5
	errAgain    = 11
	errOverflow = 75
	errTimedOut = 110
)

// access finds nothing where there are no files.
func access(c *ccall) uint64 {
	switch c.text(0); {
	case c.uint(1)&^7 != 0:
		return c.failed(errInvalid)
	case c.in.clib.files == nil:
		return c.failed(errNoEntry)
	}
	at, errno := c.path(0)
	switch {
	case errno != 0:
		return c.failed(errno)
	case at.node == nil:
		return c.failed(errNoEntry)
	case !at.node.allows(c.uint(1)):
		return c.failed(errAccess)
	}
	return 0
}

// fdopen makes a FILE for a file, or one of the three descriptors, which are pipes: a mode that the descriptor is not open for is refused.
func fdopen(c *ccall) uint64 {
	fd, mode := c.int(0), string(c.text(1))
	if c.err != nil {
		return 0
	}
	switch {
	case mode == "" || mode[0] != 'r' && mode[0] != 'w' && mode[0] != 'a':
		c.setErrno(errInvalid)
		return 0
	case c.file(fd) != nil:
		return c.fileStream(fd, c.file(fd), mode)
	case fd < 0 || fd > 2:
		c.setErrno(errBadFile)
		return 0
	case (mode[0] == 'r') != (fd == 0) || len(mode) > 1 && (mode[1] == '+' || len(mode) > 2 && mode[2] == '+'):
		c.setErrno(errInvalid)
		return 0
	}
	return uint64(c.newFile(int(fd)))
}

// newFile makes a FILE for a stream.
func (c *ccall) newFile(stream int) machine.Addr {
	a := c.own(fileSize)
	if c.err == nil {
		c.err = c.in.view.charge(handlerCost)
	}
	if c.err == nil {
		if c.in.clib.opened == nil {
			c.in.clib.opened = map[machine.Addr]int{}
		}
		c.in.clib.opened[a] = stream
	}
	return a
}

// randomBytes fills memory from a generator that restarts with each run: any bytes are correct, and every run must have the same results.
func (c *ccall) randomBytes(a machine.Addr, n uint64) uint64 {
	if c.in.clib.entropy == nil {
		c.in.clib.entropy = chacha.NewChaCha8([32]byte{})
	}
	n = min(n, 1<<25-1) // what the system gives at once (getrandom(2))
	for left := n; left > 0 && c.err == nil; {
		var p [256]byte
		part := p[:min(left, uint64(len(p)))]
		_, _ = c.in.clib.entropy.Read(part) // never fails
		c.write(a, part)
		a, left = a+machine.Addr(len(part)), left-uint64(len(part))
	}
	return n
}

func getentropy(c *ccall) uint64 {
	if c.uint(1) > 256 {
		c.setErrno(errIO)
		return eof
	}
	c.randomBytes(c.addr(0), c.uint(1))
	return 0
}

// mutexInit initializes a mutex as glibc does (its struct_mutex.h of x86), though no thread waits for one: its kind follows four ints, three on i386,
// and is the int of a pthread_mutexattr_t.
func mutexInit(c *ccall) uint64 {
	size, kind := uint64(40), machine.Addr(16)
	if c.longSize() == 4 {
		size, kind = 24, 12
	}
	of := uint64(0)
	if a := c.addr(1); a != 0 {
		of = c.get(a, 4)
	}
	c.fill(c.addr(0), 0, size)
	c.put(c.addr(0)+kind, 4, of)
	return 0
}

// mutexType takes normal, recursive, error checking and adaptive mutexes.
func mutexType(c *ccall) uint64 {
	if c.uint(1) > 3 {
		return errInvalid
	}
	c.put(c.addr(0), 4, c.uint(1))
	return 0
}

// A semaphore is its count, 4 bytes at the start of a sem_t. There is one thread, so no thread waits.
const (
	semaphoreMax  = 1<<31 - 1
	semaphoreSize = 16 // what is used of a sem_t, on i386 all
)

func semInit(c *ccall) uint64 {
	if c.uint(2) > semaphoreMax {
		c.setErrno(errInvalid)
		return eof
	}
	c.fill(c.addr(0), 0, semaphoreSize)
	c.put(c.addr(0), 4, c.uint(2))
	return 0
}

func semPost(c *ccall) uint64 {
	n := c.get(c.addr(0), 4)
	if n >= semaphoreMax {
		c.setErrno(errOverflow)
		return eof
	}
	c.put(c.addr(0), 4, n+1)
	return 0
}

// taken takes one from the count, if it has one.
func (c *ccall) taken() bool {
	n := c.get(c.addr(0), 4)
	if n == 0 || c.err != nil {
		return false
	}
	c.put(c.addr(0), 4, n-1)
	return true
}

func semWait(c *ccall) uint64 {
	if !c.taken() {
		c.fail(unsupported(hintThread, "@%s waits for another thread, and", c.Name))
	}
	return 0
}

func semTryWait(c *ccall) uint64 {
	if c.taken() {
		return 0
	}
	c.setErrno(errAgain)
	return eof
}

// semTimedWait always times out on an empty semaphore, as no other thread can post.
func semTimedWait(c *ccall) uint64 {
	if c.taken() {
		return 0
	}
	size := c.longSize()
	if c.get(c.addr(1)+machine.Addr(size), size) >= 1e9 { // negative ones too
		c.setErrno(errInvalid)
		return eof
	}
	c.setErrno(errTimedOut)
	return eof
}

func semGetValue(c *ccall) uint64 {
	c.put(c.addr(1), 4, c.get(c.addr(0), 4))
	return 0
}
