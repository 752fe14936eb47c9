package isa_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/isa"
	"reframe/deopt/machine"
)

// The calls of patchpoints as llc 19 writes them, and code that is no such call.
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
