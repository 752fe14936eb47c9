package files

import (
	"io"
	"sync"
	"sync/atomic"
)

// Size and number of the cached blocks of a file.
const (
	cacheBlock  = 1 << 10 // bytes
	cacheBlocks = 64
)

// Cache caches a file of which mostly a few scattered bytes are read, such as headers, rows of a search table, and the code of a stub. It stores the
// blocks that contain them.
type Cache struct {
	File   io.ReaderAt
	Reads  atomic.Int64 // number of reads of the file itself
	mu     sync.Mutex
	blocks [cacheBlocks]cachedBlock // indexed by the block number modulo cacheBlocks
}

// cachedBlock is a block of a file; the last one may be shorter.
type cachedBlock struct {
	number int64
	data   []byte // nil if the slot is empty
}

// ReadAt implements [io.ReaderAt].
func (c *Cache) ReadAt(p []byte, off int64) (n int, err error) {
	if len(p) >= cacheBlock || off < 0 {
		c.Reads.Add(1)
		return c.File.ReadAt(p, off)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(p) {
		at := off + int64(n)
		b, err := c.block(at / cacheBlock)
		if err != nil {
			return n, err
		}
		skip := int(at % cacheBlock)
		if skip >= len(b) {
			return n, io.EOF
		}
		n += copy(p[n:], b[skip:])
	}
	return n, nil
}

// block returns a block of the file. It is empty beyond the end of the file.
func (c *Cache) block(number int64) ([]byte, error) {
	b := &c.blocks[number%cacheBlocks]
	if b.data != nil && b.number == number {
		return b.data, nil
	}
	if b.data == nil {
		b.data = make([]byte, cacheBlock)
	}
	c.Reads.Add(1)
	n, err := c.File.ReadAt(b.data[:cacheBlock], number*cacheBlock)
	if err != nil && err != io.EOF {
		b.data = nil
		return nil, err
	}
	b.number, b.data = number, b.data[:n]
	return b.data, nil
}
