package ptrace

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestEachCode requires that eachCode finds all possible return addresses. On arm64 the return address of a leaf function is only in x30, and any
// return address may have a signature in its upper 16 bits.
func TestEachCode(t *testing.T) {
	stack, err := binary.Append(nil, binary.LittleEndian, []uint64{0x002f_ffff_8000_1004, 7})
	require.NoError(t, err)
	for _, c := range []struct {
		arch     *machine.Arch
		pc, link machine.Addr
		Want     []machine.Addr
	}{
		{machine.ARM64, 0xaaaa_0000_1000, 0x0034_aaaa_0000_2008, []machine.Addr{0xaaaa_0000_1000, 0xaaaa_0000_2008, 0xffff_8000_1004, 7}},
		{machine.AMD64, 0x40_1000, 0x40_1000, []machine.Addr{0x40_1000, 0x40_1000, 0x002f_ffff_8000_1004, 7}},
	} {
		var got []machine.Addr
		th := stoppedThread{arch: c.arch, pc: c.pc, link: c.link, stacks: []span{{0x7000, stack}}}
		th.eachCode(func(a machine.Addr) { got = append(got, a) })
		require.Equal(t, c.Want, got, c.arch.Name)
	}
}
