package sites

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace"
)

// bitcodeSection is the section in which clang -fembed-bitcode and some JIT compilers store the module of an object.
const bitcodeSection = ".llvmbc"

// These limit the bitcode of one target.
const (
	maxEmbedded      = 256
	maxEmbeddedBytes = 64 << 20
)

// ErrNoBitcode is wrapped by the error for a target that contains no module of LLVM IR.
var ErrNoBitcode = errors.New("no file or registered object that was read has a section " + bitcodeSection)

// EmbeddedIR reads the modules in a target's files, and in the registered objects that were read (in a running target only those on a stack). It
// requires llvm-dis. The author of the code also writes the bitcode, and the code may have been compiled from another module. So the modules count as
// found ([ir.Module].Found). notes lists the modules that could not be read. If none could be read, it returns an error.
func EmbeddedIR(t *ptrace.Target) (modules []*ir.Module, notes []string, err error) {
	e := &embedded{}
	EachImage(t, e.image)
	switch {
	case len(e.modules) == 0 && len(e.notes) > 0:
		return nil, nil, errors.New(e.notes[0])
	case len(e.modules) == 0:
		return nil, nil, fmt.Errorf("%v: %w", t, ErrNoBitcode)
	}
	return e.modules, e.notes, nil
}

// EachImage calls each for every image of a target: registered objects, objects given by the user, and files. The image is nil if it was not read.
func EachImage(t *ptrace.Target, each func(name string, img *object.Image)) {
	for _, r := range t.Registries {
		for n, entry := range r.Entries {
			each(fmt.Sprintf("JIT object %d", n+1), entry.Image())
		}
	}
	for _, img := range t.Given() {
		each(img.Name, img)
	}
	for _, m := range t.Modules {
		each(m.Path, m.Image)
	}
}

// TextSection is the section in which a self-describing JIT compiler stores the text of the module, plain or compressed with zstd.
const TextSection = ".reframe.ir"

// OwnText returns the text of the module that an image contains, or nil. It returns an error if the text exceeds most bytes.
func OwnText(img *object.Image, most int) ([]byte, error) {
	s := img.Section(TextSection)
	if s == nil {
		return nil, nil
	}
	if s.Size > uint64(most) {
		return nil, fmt.Errorf("%d bytes; the limit is %d", s.Size, most)
	}
	text, err := s.Data()
	if err == nil && bytes.HasPrefix(text, []byte{0x28, 0xb5, 0x2f, 0xfd}) { // magic number of zstd (RFC 8878, 3.1.1)
		text, err = unpacked(text, most)
	}
	return bytes.TrimRight(text, "\x00"), err
}

// maxRatio limits the buffer that is allocated for a text before it is decompressed, relative to its compressed size. IR compresses to a tenth, and many
// similar functions to a hundredth.
const maxRatio = 1024

// unpacked decompresses a text. If the header states the size, it decompresses into one buffer of that size, which needs no further memory.
func unpacked(packed []byte, most int) ([]byte, error) {
	if size := statedSize(packed, most); size > 0 {
		r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(size)), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		if text, err := r.DecodeAll(packed, make([]byte, 0, size)); err == nil {
			return text, nil
		}
	}
	r, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxMemory(maxEmbeddedBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("over %d bytes", most)
	}
	return text, nil
}

// statedSize returns the decompressed size in the header, or 0 if it is missing or improbable.
func statedSize(packed []byte, most int) int {
	var head zstd.Header
	if head.Decode(packed) != nil || !head.HasFCS || head.FrameContentSize > min(uint64(most), maxRatio*uint64(len(packed))) {
		return 0
	}
	return int(head.FrameContentSize)
}

type embedded struct {
	modules []*ir.Module
	notes   []string
	tried   int
	bytes   int
}

// image reads the modules in one image.
func (e *embedded) image(name string, img *object.Image) {
	if img == nil {
		return
	}
	s := img.Section(bitcodeSection)
	if s == nil {
		return
	}
	name += ", " + bitcodeSection
	data, err := s.Data()
	var parts [][]byte
	if err == nil {
		parts, err = ir.SplitBitcode(data)
	}
	if err != nil {
		e.note(name, err)
	}
	for n, part := range parts {
		if e.tried, e.bytes = e.tried+1, e.bytes+len(part); e.tried > maxEmbedded || e.bytes > maxEmbeddedBytes {
			e.note(name, fmt.Errorf("over %d modules or %d MiB of bitcode; the rest is not read", maxEmbedded, maxEmbeddedBytes>>20))
			return
		}
		called := name
		if len(parts) > 1 {
			called = fmt.Sprintf("%s, module %d", name, n+1)
		}
		m, err := ir.ParseBitcode(called, part)
		if err != nil {
			e.note(called, err)
			continue
		}
		m.Found = true
		e.modules = append(e.modules, m)
	}
}

// note records an error; only the first few are kept.
func (e *embedded) note(name string, err error) {
	const enough = 8
	if len(e.notes) < enough {
		e.notes = append(e.notes, fmt.Sprintf("%s: %v", name, err))
	}
}
