package ir

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unsafe"

	"reframe/internal/filekind"
)

// maxSource bounds what is read from a file or from llvm-dis.
const maxSource = 512 << 20

// errTooLarge says that there is more than maxSource.
var errTooLarge = fmt.Errorf("larger than %d MiB", maxSource>>20)

// ParseFile reads and parses a module of at most 512 MiB. See [Parse]. The file may be
// bitcode: then llvm-dis, which must be installed, writes the text that is parsed, and the
// lines of errors are those of that text. The newest release that can read the file is
// taken. It brings the module up to date as it does, its data layout too: see
// [ParseDataLayout].
func ParseFile(path string) (*Module, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var src bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() <= maxSource {
		src.Grow(int(info.Size()) + bytes.MinRead) // or it would be copied as it grows
	}
	if err := readAll(&src, f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if isBitcode(src.Bytes()) {
		return ParseBitcode(path, src.Bytes())
	}
	head := src.Bytes()[:min(src.Len(), filekind.Head)]
	if kind, ok := filekind.Of(head); ok && (kind.What == "JSON" || bytes.IndexByte(head, 0) >= 0) {
		return nil, fmt.Errorf("%s: %s; llvm-dis and clang -S -emit-llvm write IR", path, kind.Instead("IR"))
	}
	return parseText(path, bytesText(src.Bytes()))
}

func readAll(into *bytes.Buffer, from io.Reader) error {
	if _, err := into.ReadFrom(io.LimitReader(from, maxSource+1)); err != nil {
		return err
	}
	if into.Len() > maxSource {
		return errTooLarge
	}
	return nil
}

// bytesText is the text in a buffer that nobody writes to any more. To copy it would
// take longer than to find the functions in it.
func bytesText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
