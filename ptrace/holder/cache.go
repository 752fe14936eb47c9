package holder

import (
	"errors"

	"example.com/reframe/internal/machine"
)

// ErrLost is wrapped in the errors of a debugger that no longer answers.
var ErrLost = errors.New("the debugger no longer answers")

const (
	// page is the unit of the cache. On each supported architecture, protection changes only at multiples of it.
	page = 4 << 10
	// most is the maximum number of pages in the cache.
	most = 64 << 10
)

// Cache is memory of which each page is read only once. It reads adjacent pages with one request.
type Cache struct {
	from  Memory
	ahead bool
	pages map[machine.Addr]cached
	lost  error
}

// cached is a page, or the reason why it cannot be read.
type cached struct {
	data []byte // bytes up to the first one that cannot be read
	err  error  // nil if data is a complete page
}

// NewCache returns a cache for the memory of a stopped process. If ahead is set, the cache also reads pages that were not requested. It must not be
// set for a machine without an operating system, where such a read could reach device registers.
func NewCache(from Memory, ahead bool) *Cache {
	return &Cache{from: from, ahead: ahead, pages: map[machine.Addr]cached{}}
}

// Forget drops all pages, because the process has run.
func (c *Cache) Forget() { clear(c.pages) }

// Lost returns the error after which the debugger no longer answered, or nil.
func (c *Cache) Lost() error { return c.lost }

// Read implements [Memory].
func (c *Cache) Read(p []byte, addr machine.Addr) (n int, err error) {
	for n < len(p) {
		at := addr + machine.Addr(n)
		if at < addr {
			return n, errors.New("past the end of the address space")
		}
		start := at &^ (page - 1)
		got, known := c.pages[start]
		if !known {
			if c.lost != nil {
				return n, c.lost
			}
			c.fetch(start, len(p)-n+int(at-start))
			continue
		}
		inside := int(at - start)
		if inside < len(got.data) {
			n += copy(p[n:], got.data[inside:])
			continue
		}
		return n, got.err
	}
	return n, nil
}

// batch bounds the number of bytes in one request.
const batch = 64 << 10

// fetch reads at least the page at start, and up to size bytes of pages that are not in the cache. If the previous page was read, it reads further
// ahead, because callers that compare memory with a file read it page by page.
func (c *Cache) fetch(start machine.Addr, size int) {
	if before, known := c.pages[start-page]; c.ahead && known && before.err == nil {
		size = batch
	}
	count := 1
	for count < min(batch, size+page-1)/page {
		next := start + machine.Addr(count*page)
		if _, known := c.pages[next]; known || next < start {
			break
		}
		count++
	}
	if len(c.pages)+count > most {
		clear(c.pages)
	}
	b := make([]byte, count*page)
	n, err := c.from.Read(b, start)
	n = min(n, len(b))
	if n < len(b) && err == nil {
		err = errors.New("the debugger sent fewer bytes")
	}
	if errors.Is(err, ErrLost) {
		c.lost = err
	}
	whole := n / page
	for i := range whole {
		c.pages[start+machine.Addr(i*page)] = cached{data: b[i*page : (i+1)*page : (i+1)*page]}
	}
	if whole < count {
		c.pages[start+machine.Addr(whole*page)] = cached{b[whole*page : n], err}
	}
}
