package replay

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"math"
	"os"

	"github.com/klauspost/compress/zstd"

	"reframe/ptrace"
)

// zstdMagic begins a file that zstd compressed (RFC 8878, 3.1.1).
const zstdMagic = "\x28\xb5\x2f\xfd"

// maxZstdWindow bounds the memory that the beginning of a compressed file takes, in bytes: what zstd --long, as
// it is unless more is asked for, needs.
const maxZstdWindow = 128 << 20

// IsCore says whether the content of a file is that of a core, whole or not, compressed or not. What is wrong
// with one is found when it is opened.
func IsCore(path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // to open a pipe may take for ever
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := beginning(f)
	if bytes.HasPrefix(head, []byte(zstdMagic)) {
		z, err := zstd.NewReader(io.NewSectionReader(f, 0, math.MaxInt64), zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
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

// refuse makes the result of an item that is no core, and says whether it is none.
func (r *Result) refuse(item Item) (refused bool) {
	switch is, err := IsCore(item.Path); {
	case err != nil:
		r.Message = reason(err)
	case is:
		return false
	case item.Named:
		r.Message = ptrace.ErrNotCore.Error()
	default:
		r.Outcome = PassedOver
	}
	return true
}

// headSize is up to the end of the type in the header of an ELF file, in bytes.
const headSize = elf.EI_NIDENT + 2

// beginning reads the first bytes, fewer where there are no more.
func beginning(r io.Reader) []byte {
	b := make([]byte, headSize)
	n, _ := io.ReadFull(r, b)
	return b[:n]
}
