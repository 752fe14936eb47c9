package isa_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// TestPatchpointCall requires that the calls that llc 19 writes for patchpoints are recognized and that other code is not.
func TestPatchpointCall(t *testing.T) {
	const arm64 = "f0ffdfd2f0ffbff2509e9ff200023fd6" // mov x16, #0xffff00000000; movk x16, #0xffff, lsl #16; movk x16, #0xfff2; blr x16
	const amd64 = "49bb efbeaddeffff0000 41ffd3"     // movabs $0xffffdeadbeef,%r11; call *%r11
	for _, c := range []struct {
		arch *machine.Arch
		code string
		want int
	}{
		{machine.ARM64, arm64 + "1f2003d5", 16},
		{machine.ARM64, arm64, 16},
		{machine.ARM64, arm64[:24], 0},
		{machine.ARM64, arm64[:24] + "00021fd6", 0}, // br x16
		{machine.ARM64, "1f2003d5" + arm64, 0},      // nop
		{machine.AMD64, amd64 + "90", 13},
		{machine.AMD64, amd64[:21], 0},
		{machine.AMD64, "90" + amd64, 0},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(c.code, " ", ""))
		require.NoError(t, err)
		require.Equal(t, c.want, isa.Of(c.arch).PatchpointCall(b), "%s %s", c.arch.Name, c.code)
	}
}

// TestCallTarget requires the target of a direct call as GNU as encodes it, and none for other calls and instructions.
func TestCallTarget(t *testing.T) {
	const at = 0x10000
	for _, c := range []struct {
		arch *machine.Arch
		code string
		want machine.Addr // 0 for none
	}{
		{machine.AMD64, "e8fb0f0000", at + 0x1000},
		{machine.AMD64, "e8fbefffff", at - 0x1000},
		{machine.AMD64, "e9fb0f0000", 0}, // jmp
		{machine.AMD64, "41ffd3", 0},     // call *%r11
		{machine.ARM64, "00040094", at + 0x1000},
		{machine.ARM64, "00fcff97", at - 0x1000},
		{machine.ARM64, "00040014", 0}, // b
		{machine.ARM64, "00023fd6", 0}, // blr x16
	} {
		b, err := hex.DecodeString(c.code)
		require.NoError(t, err)
		end := machine.Addr(at + len(b))
		if c.arch == machine.AMD64 {
			end = at + 5 // the targets above count from the start of the instruction
		}
		to, ok := isa.Of(c.arch).CallTarget(codeFrom{at, append(b, 0, 0, 0, 0, 0)}, end)
		require.Equal(t, c.want != 0, ok, "%s %s", c.arch.Name, c.code)
		if ok {
			require.Equal(t, c.want, to, "%s %s", c.arch.Name, c.code)
		}
		_, ok = isa.Of(c.arch).CallTarget(codeFrom{at, b}, at+2) // memory ends before the address
		require.False(t, ok)
	}
}

// codeFrom is code with its address.
type codeFrom struct {
	at   machine.Addr
	code []byte
}

func (c codeFrom) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < c.at || uint64(addr-c.at)+uint64(len(p)) > uint64(len(c.code)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "no code"}
	}
	copy(p, c.code[addr-c.at:])
	return nil
}
