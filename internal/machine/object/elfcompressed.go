package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Limits on what compressed sections may become.
const (
	// maxInflated bounds the bytes of all decompressed sections of one image. Unwind information, the largest data that is read, has some 10 MB in
	// the largest programs.
	maxInflated = 256 << 20
	// A byte of DEFLATE encodes at most 1032 bytes (258 bytes for two bits), and a block of Zstandard, which may have only 4 bytes, 128 KiB (RFC
	// 8878, 3.1.1.2.3).
	maxRatioZlib = 1032
	maxRatioZstd = 32 << 10
)

// gnuCompressed is the start of a section that GNU tools compressed before ELF had a flag for it: a
// magic word and the size of what follows, in big-endian in any image.
const gnuCompressed = "ZLIB"

const gnuHeader = len(gnuCompressed) + 8

// inflater is the reader of a compressed section (System V ABI, chapter 4, "Section Compression"). It
// decompresses the section once, when something is read. It is safe for concurrent use.
type inflater struct {
	section *elf.Section
	size    uint64     // bytes, decompressed, as its header claims
	left    *allowance // of the image

	once sync.Once
	data []byte
	err  error
}

// allowance holds how many bytes an image may still decompress.
type allowance struct {
	sync.Mutex
	bytes uint64
}

// take takes n bytes, if they are left.
func (a *allowance) take(n uint64) bool {
	a.Lock()
	defer a.Unlock()
	if n > a.bytes {
		return false
	}
	a.bytes -= n
	return true
}

// inflaterOf returns the reader of a compressed section, or nil. Only debug information may be compressed: compressed bytes of loaded sections
// would be unusable, and no tool compresses symbols.
func inflaterOf(s *elf.Section, left *allowance) *inflater {
	if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_ALLOC != 0 {
		return nil
	}
	if s.Flags&elf.SHF_COMPRESSED != 0 {
		return &inflater{section: s, size: s.Size, left: left}
	}
	if !strings.HasPrefix(s.Name, ".zdebug_") {
		return nil
	}
	var h [gnuHeader]byte
	if _, err := s.ReaderAt.ReadAt(h[:], 0); err != nil || !strings.HasPrefix(string(h[:]), gnuCompressed) {
		return nil
	}
	return &inflater{section: s, size: binary.BigEndian.Uint64(h[len(gnuCompressed):]), left: left}
}

// ReadAt implements [io.ReaderAt].
func (z *inflater) ReadAt(p []byte, off int64) (int, error) {
	data, err := z.bytes()
	if err != nil {
		return 0, err
	}
	return bytes.NewReader(data).ReadAt(p, off)
}

// bytes returns the section, decompressed. The caller must not change it.
func (z *inflater) bytes() ([]byte, error) {
	z.once.Do(func() {
		defer func() {
			if p := recover(); p != nil {
				z.data, z.err = nil, fmt.Errorf("malformed: %v", p)
			}
		}()
		z.data, z.err = z.inflate()
	})
	return z.data, z.err
}

func (z *inflater) inflate() ([]byte, error) {
	ratio := uint64(maxRatioZstd)
	if z.section.Flags&elf.SHF_COMPRESSED == 0 {
		ratio = maxRatioZlib
	}
	switch {
	case z.size/ratio > z.section.FileSize:
		return nil, fmt.Errorf("claims to be %d bytes, compressed to %d", z.size, z.section.FileSize)
	case !z.left.take(z.size):
		return nil, fmt.Errorf("claims to be %d bytes, decompressed; the limit for an image is %d", z.size, maxInflated)
	}
	// The allocation grows with the actual data, not with the claimed size.
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(z.section.Open(), int64(z.size)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompressing it: %w", err)
	case uint64(n) > z.size:
		return nil, fmt.Errorf("claims to be %d bytes, and decompresses to more", z.size)
	case uint64(n) < z.size:
		return nil, fmt.Errorf("claims to be %d bytes, and decompresses to %d", z.size, n)
	}
	return b.Bytes(), nil
}
