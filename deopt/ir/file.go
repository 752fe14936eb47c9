package ir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
	"unsafe"
)

// Bounds on what is read from a file or from llvm-dis.
const (
	maxSource      = 512 << 20
	maxComplaint   = 4 << 10
	disassembleFor = 2 * time.Minute
)

// The releases of LLVM whose text is read.
const (
	oldestLLVM = 14
	newestLLVM = 22
)

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
		text, err := disassemble(src.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s is LLVM bitcode, and %w", path, err)
		}
		return parseText(path, bytesText(text))
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

// isBitcode knows bitcode, alone or in its wrapper, by the first bytes (LLVM Bitcode File
// Format, "Magic Numbers" and "Bitcode Wrapper Format").
func isBitcode(src []byte) bool {
	return bytes.HasPrefix(src, []byte("BC\xC0\xDE")) || bytes.HasPrefix(src, []byte("\xDE\xC0\x17\x0B"))
}

// disassemble returns the text that the newest llvm-dis writes which can read the bitcode.
func disassemble(bitcode []byte) ([]byte, error) {
	var tools []string
	for release := newestLLVM; release >= oldestLLVM; release-- {
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
		return nil, fmt.Errorf("no llvm-dis is on the PATH to read it: install LLVM (Debian: apt install llvm-%d), or give the text that llvm-dis or clang -S -emit-llvm writes", newestLLVM)
	}
	return nil, fmt.Errorf("no llvm-dis that is installed reads it: %w", errors.Join(refusals...))
}

func runDisassembler(path string, bitcode []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), disassembleFor)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-o", "-", "-")
	text, complaint := bounded{limit: maxSource}, bounded{limit: maxComplaint}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(bitcode), &text, &complaint
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case text.full:
		return nil, errTooLarge
	case ctx.Err() != nil:
		return nil, fmt.Errorf("not done after %v", disassembleFor)
	case err != nil:
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.buf.String()), "\n")
		return nil, fmt.Errorf("%w: %s", err, strings.ToValidUTF8(line, "?"))
	}
	return text.buf.Bytes(), nil
}

// bounded keeps what is written to it up to limit bytes and then takes no more, which
// ends the program that writes.
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
