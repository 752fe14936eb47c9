package holder

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// counted is memory of size bytes, starting at address 0. Each byte is the number of its page.
type counted struct{ size, requests int }

func (m *counted) Read(p []byte, addr machine.Addr) (int, error) {
	m.requests++
	for i := range p {
		if int(addr)+i >= m.size {
			return i, errors.New("unmapped")
		}
		p[i] = byte((int(addr) + i) / page)
	}
	return len(p), nil
}

// TestCacheReadsAhead requires that memory which is read page by page takes one request for many pages, and returns the same bytes, up to the same
// end, as without a cache.
func TestCacheReadsAhead(t *testing.T) {
	m := &counted{size: 100*page + 10}
	c := NewCache(m, true)
	b := make([]byte, page)
	for i := range 100 {
		n, err := c.Read(b, machine.Addr(i*page))
		require.NoError(t, err)
		require.Equal(t, page, n)
		require.Equal(t, []byte{byte(i), byte(i)}, []byte{b[0], b[page-1]})
	}
	require.Less(t, m.requests, 100/16+3)
	n, err := c.Read(b, 100*page)
	require.ErrorContains(t, err, "unmapped")
	require.Equal(t, 10, n)
	n, err = c.Read(b, 101*page)
	require.ErrorContains(t, err, "unmapped")
	require.Zero(t, n)
}
