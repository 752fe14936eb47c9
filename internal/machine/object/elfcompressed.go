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

// These limit the size of decompressed sections.
const (
	// maxInflated limits the bytes of all decompressed sections of an image. Unwind information, the largest data that is read, takes some 10 MB in the
	// largest programs.
	maxInflated = 256 << 20
	// One byte of DEFLATE encodes at most 1032 bytes (258 bytes for two bits). A block of Zstandard may have only 4 bytes, and encodes at most 128 KiB (RFC
	// 8878, 3.1.1.2.3).
	maxRatioZlib = 1032
	maxRatioZstd = 32 << 10
)

// gnuCompressed begins a section that GNU tools compressed before ELF had a flag for it. The size of the decompressed data follows, big-endian in every
// image.
const gnuCompressed = "ZLIB"

const gnuHeader = len(gnuCompressed) + 8

// inflater reads a compressed section (System V ABI, chapter 4, "Section Compression"). It decompresses the section once, on the first read. It is safe
// for concurrent use.
type inflater struct {
	section *elf.Section
	size    uint64     // decompressed size in bytes, as the header claims
	left    *allowance // shared by all sections of the image

	once sync.Once
	data []byte
	err  error
}

// allowance is the number of bytes that may still be decompressed.
type allowance struct {
	sync.Mutex
	bytes uint64
}

// take subtracts n bytes, and returns false if fewer are left.
func (a *allowance) take(n uint64) bool {
	a.Lock()
	defer a.Unlock()
	if n > a.bytes {
		return false
	}
	a.bytes -= n
	return true
}

// inflaterOf returns the reader of a compressed section, or nil. It accepts only debug information: loaded sections cannot be compressed, and no tool
// compresses symbols.
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

// bytes returns the decompressed section. The caller must not change it.
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
