package elfcore

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"example.com/reframe/internal/base/filekind"
)

// File is the destination of a core. Bytes between the written parts are zero.
type File interface {
	io.WriterAt
	Truncate(size int64) error
}

// Page is the page size in a core, even if the core's machine has larger pages.
const Page = 4096

var zeroPage [Page]byte

// IsZero reports whether a page, or a part of one, is all zeros.
func IsZero(b []byte) bool { return bytes.Equal(b, zeroPage[:len(b)]) }

// isCompressed reports whether a file with this beginning is compressed by zstd, the only supported format.
func isCompressed(head []byte) bool { return filekind.Compressor(head) == filekind.Zstd }

// IsCompressed reports whether a file is compressed by zstd.
func IsCompressed(f io.ReaderAt) bool {
	return isCompressed(beginning(io.NewSectionReader(f, 0, headSize)))
}

// IsCore reports whether a file begins like a core, complete or truncated, compressed or not. Other errors are found when the core is opened.
func IsCore(f io.ReaderAt) (bool, error) {
	all := io.NewSectionReader(f, 0, math.MaxInt64)
	head := beginning(all)
	if isCompressed(head) {
		if _, err := all.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
		z, err := zstd.NewReader(all, zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return false, err
		}
		defer z.Close()
		head = beginning(z)
	}
	if len(head) < headSize || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return false, nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	return elf.Type(order.Uint16(head[elf.EI_NIDENT:])) == elf.ET_CORE, nil
}

// headSize is the number of bytes up to the end of the type in the header of an ELF file.
const headSize = elf.EI_NIDENT + 2

// beginning reads the first headSize bytes, or fewer if the file is shorter.
func beginning(r io.Reader) []byte {
	b := make([]byte, headSize)
	n, _ := io.ReadFull(r, b)
	return b[:n]
}

// WriteCompressed calls write to write a core, and compresses the core into a file. Because write does not write sequentially, it gets a temporary
// file that no other process can open.
func WriteCompressed(ctx context.Context, into *os.File, write func(File) error) (err error) {
	between, err := newTemporary(filepath.Dir(into.Name()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, between.Close()) }()
	if err := write(between.File); err != nil {
		return err
	}
	if _, err := between.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := zstd.NewWriter(into)
	if err != nil {
		return err
	}
	if _, err = io.Copy(z, untilDone{ctx, between}); err != nil {
		_ = z.Close()
		return err
	}
	return z.Close()
}

// untilDone reads until a context is done.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (u untilDone) Read(p []byte) (int, error) {
	if err := context.Cause(u.ctx); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// temporary is a file that no other process can open, and that is removed when it is closed.
type temporary struct {
	*os.File
	left bool // the file still has a name, because the system cannot remove the name of an open file
}

func newTemporary(dir string) (*temporary, error) {
	f, err := os.CreateTemp(dir, ".reframe.*")
	if err != nil {
		return nil, err
	}
	return &temporary{f, os.Remove(f.Name()) != nil}, nil
}

// Close closes and removes the file.
func (t *temporary) Close() error {
	err := t.File.Close()
	if t.left {
		err = errors.Join(err, os.Remove(t.Name()))
	}
	return err
}

// Limits on the decompressed size of a core: alwaysExpanded bytes, or a multiple of its compressed size if that is larger.
const (
	maxInMemory    = 16 << 20
	alwaysExpanded = 1 << 30
	expandedBy     = 500
	maxExpanded    = 1 << 40
	maxZstdWindow  = 128 << 20 // enough for zstd --long=27, the maximum without special options
)

// Decompress decompresses a core, into memory if it is small, or else into a temporary file with holes for pages of zeros. The caller closes end.
func Decompress(f io.Reader, size int64) (r io.ReaderAt, length int64, end io.Closer, err error) {
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, 0, nil, err
	}
	defer z.Close()
	var small bytes.Buffer
	if n, err := io.Copy(&small, io.LimitReader(z, maxInMemory)); err != nil {
		return nil, 0, nil, fmt.Errorf("cannot be decompressed: %w", err)
	} else if n < maxInMemory {
		return bytes.NewReader(small.Bytes()), n, io.NopCloser(nil), nil
	}
	t, err := newTemporary("")
	if err != nil {
		return nil, 0, nil, err
	}
	out := &holes{file: t.File, room: min(max(alwaysExpanded, size*expandedBy), maxExpanded)}
	if _, err = io.Copy(out, io.MultiReader(&small, z)); err == nil {
		err = t.Truncate(out.at)
	}
	if err != nil {
		return nil, 0, nil, fmt.Errorf("cannot be decompressed: %w", errors.Join(err, t.Close()))
	}
	return t, out.at, t, nil
}

// holes writes a file with holes for pages of zeros.
type holes struct {
	file *os.File
	at   int64
	room int64 // number of bytes that may still be written
}

// Write implements [io.Writer].
func (h *holes) Write(p []byte) (n int, err error) {
	if int64(len(p)) > h.room {
		return 0, errors.New("the decompressed core is too large")
	}
	h.room -= int64(len(p))
	for n < len(p) {
		piece := p[n:min(len(p), n+Page-int(h.at&(Page-1)))]
		if !IsZero(piece) {
			if _, err := h.file.WriteAt(piece, h.at); err != nil {
				return n, err
			}
		}
		n, h.at = n+len(piece), h.at+int64(len(piece))
	}
	return n, nil
}
