// Package unwindtest holds helpers that the tests of unwind and of cfi share: running tools, building images, and handwritten unwind information.
//
// It has no main type, and trusts its input: it is only for tests, and any error ends the test.
package unwindtest

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Run runs a tool and returns its output.
func Run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", name, args, stderr.String())
	return out
}

// Image reads an ELF file that is loaded at bias. It assigns addresses to the sections of an unlinked object.
func Image(t testing.TB, path string, bias machine.Addr) *object.Image {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	image, err := object.New(path, bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	image.PlaceSections()
	image.Bias = bias
	return image
}

// Address parses a hexadecimal address from the output of a tool.
func Address(t testing.TB, s string) machine.Addr {
	t.Helper()
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	require.NoError(t, err)
	return machine.Addr(v)
}

// Words is a piece of memory: 8-byte words by address.
type Words map[machine.Addr]uint64

// ReadMemory implements [machine.Memory].
func (w Words) ReadMemory(p []byte, addr machine.Addr) error {
	for i := range p {
		at := addr + machine.Addr(i)
		word, ok := w[at&^7]
		if !ok {
			return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
		}
		p[i] = byte(word >> (8 * (at & 7)))
	}
	return nil
}

// LE encodes its arguments in little-endian order and joins them: an int as one byte, a string with a final zero, other integers in their own width.
func LE(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case string:
			b = append(append(b, p...), 0)
		case []byte:
			b = append(b, p...)
		default:
			b, _ = binary.Append(b, binary.LittleEndian, p)
		}
	}
	return b
}

// Entry prepends the 32-bit length to an entry of .eh_frame.
func Entry(parts ...any) []byte {
	body := LE(parts...)
	return LE(uint32(len(body)), body)
}

// SimpleCIE is a CIE with code alignment 4, data alignment -8, return address in column 16, CFA rsp+8, and the return address at CFA-8.
var SimpleCIE = Entry(uint32(0), 1, "", 4, 0x78, 16, 0x0c, 7, 8, 0x90, 1)

// SimpleAddr is the load address of the handwritten .eh_frame.
const SimpleAddr = 0x8000

// SimpleFDE returns SimpleCIE followed by the FDE of [0x1000, 0x1100). The FDE's program is at offset 18 (the CIE) + 8 (length, CIE pointer) + 16
// (start, size) = 0x2a.
func SimpleFDE(program ...byte) []byte {
	return slices.Concat(SimpleCIE,
		Entry(uint32(len(SimpleCIE)+4), uint64(0x1000), uint64(0x100), program))
}

// Seed returns an .eh_frame at SimpleAddr that uses most features of the format, and its header.
func Seed() (frame, hdr []byte) {
	cie := Entry(uint32(0), 1, "zPLR", 4, 0x78, 16, 7, 0x9b, uint32(77), 0x1b, 0x1b, 0x0c, 7, 8, 0x90, 1)
	at := int32(len(cie) + 8)
	fde := Entry(uint32(len(cie)+4), 0x1000-SimpleAddr-at, uint32(0x100), 4, uint32(0),
		0x42, 0x0e, 16, 0x86, 2, 0x41, 0x0d, 6, 0x0a, 0x41, 0x0c, 7, 8, 0xc6, 0x41, 0x0b,
		2, 1, 0x10, 3, 4, 0x77, 8, 0x23, 8, 0x41, 0x16, 12, 2, 0x76, 0, 0x41, 0x0f, 3, 0x77, 8, 0x06)
	frame = append(append(cie, fde...), 0, 0, 0, 0)
	hdr = LE(1, 0x1b, 3, 0x3b, int32(-0x1004), uint32(1), int32(0x1000-0x9000), int32(-0x1000+len(cie)))
	return frame, hdr
}
