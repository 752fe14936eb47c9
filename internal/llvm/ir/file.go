package ir

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
	"unsafe"

	"example.com/reframe/internal/base/confine"
	"example.com/reframe/internal/base/filekind"
)

// maxSource limits the bytes read from a file or from llvm-dis.
const maxSource = 512 << 20

// errTooLarge is the error for a source of more than maxSource bytes.
var errTooLarge = fmt.Errorf("larger than %d MiB", maxSource>>20)

// ParseFile reads and parses a module of at most 512 MiB. See [Parse]. The file may be bitcode; then llvm-dis, which must be installed, converts it, and
// line numbers in errors are those of its output. ParseFile uses the newest installed release that can read the file. That release upgrades the module,
// including its data layout: see [ParseDataLayout].
func ParseFile(path string) (*Module, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var src bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() <= maxSource {
		src.Grow(int(info.Size()) + bytes.MinRead) // avoids copies while the buffer grows
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

// bytesText returns a buffer as text without a copy. The buffer must not change afterwards. A copy would take longer than finding the functions in it.
func bytesText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// These limit a run of llvm-dis.
const (
	maxComplaint   = 4 << 10
	disassembleFor = 2 * time.Minute
)

// disassembleIn returns the address space in bytes that llvm-dis may use for bitcode of a size. It needs some ten times the size, besides its libraries.
func disassembleIn(size int) uint64 { return 4<<30 + 64*uint64(size) }

// newestLLVM is the newest release whose text was tested.
const newestLLVM = 22

// These are the first bytes of bitcode, and of bitcode in a wrapper (LLVM Bitcode File Format, "Magic Numbers" and "Bitcode Wrapper Format").
const (
	magic   = "BC\xC0\xDE"
	wrapped = "\xDE\xC0\x17\x0B"
)

// isBitcode reports whether a file begins like bitcode.
func isBitcode(src []byte) bool {
	return bytes.HasPrefix(src, []byte(magic)) || bytes.HasPrefix(src, []byte(wrapped))
}

// ParseBitcode parses bitcode, as [ParseFile] does.
func ParseBitcode(name string, bitcode []byte) (*Module, error) {
	text, err := disassemble(bitcode)
	if err != nil {
		return nil, fmt.Errorf("%s is LLVM bitcode, and %w", name, err)
	}
	return parseText(name, bytesText(text))
}

// maxParts limits the modules in a section.
const maxParts = 1 << 12

// SplitBitcode splits a section .llvmbc into modules. A linker concatenates such sections of several objects. Zero bytes may lie between modules.
func SplitBitcode(section []byte) (modules [][]byte, err error) {
	for rest := section; ; {
		rest = bytes.TrimLeft(rest, "\x00")
		if len(rest) == 0 {
			return modules, nil
		}
		n := bitcodeSize(rest)
		if n == 0 || len(modules) == maxParts {
			return modules, fmt.Errorf("at byte %d the bitcode is incomplete", len(section)-len(rest))
		}
		modules = append(modules, rest[:n])
		rest = rest[n:]
	}
}

// bitcodeSize returns the number of bytes of the first module, or 0 if there is none. At the top level bitcode consists of blocks. Each begins with the
// abbreviation 1 in 2 bits, its number and the width of its abbreviations. The next 32-bit word holds the number of words that follow (LLVM Bitcode File
// Format, "ENTER_SUBBLOCK Encoding").
func bitcodeSize(b []byte) int {
	const header = 20 // size of a wrapper in bytes
	if bytes.HasPrefix(b, []byte(wrapped)) && len(b) >= header {
		end := uint64(binary.LittleEndian.Uint32(b[8:])) + uint64(binary.LittleEndian.Uint32(b[12:]))
		if end < header || end > uint64(len(b)) {
			return 0
		}
		return int(end)
	}
	if !bytes.HasPrefix(b, []byte(magic)) {
		return 0
	}
	at := len(magic)
	for at+8 <= len(b) {
		head := binary.LittleEndian.Uint32(b[at:])
		// Blocks at the top level have numbers below 128, so the header is 2 + 8 + 4 bits, padded with zeros.
		if head&3 != 1 || head>>2&0x80 != 0 || head>>14 != 0 {
			break
		}
		size := 8 + 4*uint64(binary.LittleEndian.Uint32(b[at+4:]))
		if size > uint64(len(b)-at) {
			return 0
		}
		at += int(size)
	}
	if at == len(magic) {
		return 0
	}
	return at
}

// These are the releases of llvm-dis that are tried. Releases newer than newestLLVM are included, because a newer llvm-dis reads bitcode of older releases.
const oldestLLVM, latestLLVM = 14, 2 * newestLLVM

// disassemble returns the output of the newest llvm-dis that can read the bitcode.
func disassemble(bitcode []byte) ([]byte, error) {
	var tools []string
	for release := latestLLVM; release >= oldestLLVM; release-- {
		tools = append(tools, fmt.Sprintf("llvm-dis-%d", release))
	}
	var refusals []error
	for _, tool := range append(tools, "llvm-dis") {
		path, err := exec.LookPath(tool)
		if err != nil {
			continue
		}
		text, err := runDisassembler(path, bitcode)
		if err == nil {
			return text, nil
		}
		refusals = append(refusals, fmt.Errorf("%s: %w", tool, err))
	}
	if refusals == nil {
		return nil, fmt.Errorf("llvm-dis not found on the PATH: install LLVM (Debian: apt install llvm-%d), or give text from llvm-dis or clang -S -emit-llvm", newestLLVM)
	}
	return nil, fmt.Errorf("no installed llvm-dis can read it: %w", errors.Join(refusals...))
}

func runDisassembler(path string, bitcode []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), disassembleFor)
	defer cancel()
	cmd := confine.Command(ctx, path, disassembleIn(len(bitcode)), "-o", "-", "-")
	text, complaint := bounded{limit: maxSource}, bounded{limit: maxComplaint}
	cmd.Stdout, cmd.Stderr = &text, &complaint
	cmd.WaitDelay = time.Second
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = input.Write(bitcode) // on an error the program has ended; its message is reported below
	input.Close()
	err = cmd.Wait()
	switch {
	case text.full:
		return nil, errTooLarge
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it did not end within %v", disassembleFor)
	case err != nil:
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.buf.String()), "\n")
		return nil, fmt.Errorf("%w: %s", err, strings.ToValidUTF8(line, "?"))
	}
	return text.buf.Bytes(), nil
}

// bounded keeps the first bytes written to it, up to limit. Then it returns an error, which ends the writing program.
type bounded struct {
	buf   bytes.Buffer
	limit int
	full  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.limit-b.buf.Len() {
		b.full = true
		return 0, errTooLarge
	}
	return b.buf.Write(p)
}
