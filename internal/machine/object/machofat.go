package object

import (
	"debug/macho"
	"encoding/binary"
	"fmt"
	"io"
)

// slice is one image of a universal file.
type slice struct {
	arch         string // name in Apple's tools
	offset, size int64
}

const (
	fatMagic64 = macho.MagicFat + 1
	// maxSlices is below the least version of a Java class file. That starts with the same magic number, and has its version where a universal file has the
	// number of slices.
	maxSlices = 42
)

// isFat reports whether a file begins with the magic number of a universal file.
func isFat(magic [4]byte) bool {
	n := binary.BigEndian.Uint32(magic[:])
	return n == macho.MagicFat || n == fatMagic64
}

// fatSlices returns the images of a universal file of size bytes (mach-o/fat.h; its header is big-endian). It returns ErrNotObject for other files.
func fatSlices(r io.ReaderAt, size int64) ([]slice, error) {
	var head [8]byte
	if n, _ := r.ReadAt(head[:], 0); n < len(head) || !isFat([4]byte(head[:4])) {
		return nil, ErrNotObject
	}
	wide := binary.BigEndian.Uint32(head[:]) == fatMagic64
	count := binary.BigEndian.Uint32(head[4:])
	if count > maxSlices {
		return nil, ErrNotObject
	}
	row := 20
	if wide {
		row = 32
	}
	b := make([]byte, int(count)*row)
	if n, _ := r.ReadAt(b, int64(len(head))); n < len(b) {
		return nil, fmt.Errorf("it ends inside the headers of its %d images", count)
	}
	var list []slice
	for ; len(b) > 0; b = b[row:] {
		order := binary.BigEndian
		off, length := uint64(order.Uint32(b[8:])), uint64(order.Uint32(b[12:]))
		if wide {
			off, length = order.Uint64(b[8:]), order.Uint64(b[16:])
		}
		name := cpuName(macho.Cpu(order.Uint32(b)), order.Uint32(b[4:]))
		if off > uint64(size) || length > uint64(size)-off {
			return nil, fmt.Errorf("it is cut short or damaged: its image for %s has %#x bytes at offset %#x, but the file has only %#x bytes", name, length, off, size)
		}
		list = append(list, slice{name, int64(off), int64(length)})
	}
	return list, nil
}
