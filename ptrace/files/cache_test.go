package files

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFileCache requires that all reads, in any order, return the bytes of the file, up to its end and beyond it.
func TestFileCache(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	for _, size := range []int{0, 1, cacheBlock - 1, cacheBlock, cacheBlock + 1, 3 * cacheBlocks * cacheBlock / 2} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		file := bytes.NewReader(data)
		cache := &Cache{File: file}
		for range 20_000 {
			off := random.Int64N(int64(size) + 10)
			want, got := make([]byte, random.IntN(2*cacheBlock)), make([]byte, 2*cacheBlock)
			got = got[:len(want)]
			n, err := file.ReadAt(want, off)
			m, err2 := cache.ReadAt(got, off)
			require.Equal(t, n, m)
			require.Equal(t, want[:n], got[:m])
			if len(want) > 0 { // io.ReaderAt does not define the result of a read of zero bytes at the end
				require.Equal(t, err, err2)
			}
		}
		_, err := cache.ReadAt(make([]byte, 1), -1)
		require.Error(t, err)
	}
}

// brokenFile is a file whose reads fail while broken is set.
type brokenFile struct {
	io.ReaderAt
	broken bool
}

var errBroken = errors.New("broken")

func (f *brokenFile) ReadAt(p []byte, off int64) (int, error) {
	if f.broken {
		return 0, errBroken
	}
	return f.ReaderAt.ReadAt(p, off)
}

// TestFileCacheErrors requires that the cache returns the file's error, and does not cache it.
func TestFileCacheErrors(t *testing.T) {
	file := &brokenFile{ReaderAt: bytes.NewReader([]byte("0123456789")), broken: true}
	cache := &Cache{File: file}
	b := make([]byte, 4)
	_, err := cache.ReadAt(b, 2)
	require.ErrorIs(t, err, errBroken)
	file.broken = false
	n, err := cache.ReadAt(b, 2)
	require.NoError(t, err)
	require.Equal(t, "2345", string(b[:n]))
	file.broken = true
	n, err = cache.ReadAt(b, 4)
	require.NoError(t, err, "it was kept")
	require.Equal(t, "4567", string(b[:n]))
}

// TestFileCacheConcurrently requires that several goroutines can read at once.
func TestFileCacheConcurrently(t *testing.T) {
	data := make([]byte, 4*cacheBlock*cacheBlocks)
	for i := range data {
		data[i] = byte(i / 7)
	}
	cache := &Cache{File: bytes.NewReader(data)}
	var wait sync.WaitGroup
	for n := range 4 {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(4, uint64(n)))
			b := make([]byte, 100)
			for range 5000 {
				off := random.IntN(len(data) - len(b))
				if _, err := cache.ReadAt(b, int64(off)); err != nil || !bytes.Equal(b, data[off:off+len(b)]) {
					t.Errorf("at %d: %v", off, err)
					return
				}
			}
		})
	}
	wait.Wait()
}
