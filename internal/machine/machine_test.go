package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAMD64 requires the numbers of the System V ABI, AMD64 supplement, figure 3.36.
func TestAMD64(t *testing.T) {
	for n, want := range map[DWARFReg]RegisterInfo{
		0: {0, "rax", 8, 0, General}, 1: {1, "rdx", 8, 0, General}, 2: {2, "rcx", 8, 0, General},
		3: {3, "rbx", 8, 8, General}, 4: {4, "rsi", 8, 0, General}, 5: {5, "rdi", 8, 0, General},
		6: {6, "rbp", 8, 8, General}, 7: {7, "rsp", 8, 8, General}, 8: {8, "r8", 8, 0, General},
		11: {11, "r11", 8, 0, General}, 12: {12, "r12", 8, 8, General}, 15: {15, "r15", 8, 8, General},
		16: {16, "rip", 8, 0, Special}, 17: {17, "xmm0", 64, 0, Vector}, 32: {32, "xmm15", 64, 0, Vector},
		33: {33, "st0", 10, 0, Vector}, 40: {40, "st7", 10, 0, Vector}, 41: {41, "mm0", 8, 0, Vector}, 48: {48, "mm7", 8, 0, Vector},
		67: {67, "xmm16", 64, 0, Vector}, 82: {82, "xmm31", 64, 0, Vector}, 118: {118, "k0", 8, 0, Flags}, 125: {125, "k7", 8, 0, Flags},
		130: {130, "r16", 8, 0, General}, 145: {145, "r31", 8, 0, General},
	} {
		got, ok := AMD64.Register(n)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, want.Kept == want.Size, AMD64.Preserved(n))
	}
	for _, n := range []DWARFReg{49, 66, 83, 117, 126, 146, 65535} {
		_, ok := AMD64.Register(n)
		require.False(t, ok)
		require.False(t, AMD64.Preserved(n))
		require.Equal(t, fmt.Sprintf("dwarf register %d", n), AMD64.RegisterName(n))
	}
	require.Len(t, AMD64.Registers(), 17+16+8+8+16+8+16)
	require.False(t, AMD64.BigEndian())
}

func TestUint(t *testing.T) {
	big := &Arch{Pointer: 4, Order: binary.BigEndian}
	require.True(t, big.BigEndian())
	for _, c := range []struct {
		b           []byte
		little, big uint64
	}{
		{nil, 0, 0},
		{[]byte{0x80}, 0x80, 0x80},
		{[]byte{1, 2, 3}, 0x030201, 0x010203},
		{[]byte{1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201, 0x0102030405060708},
		{[]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0x0807060504030201, 0x030405060708090a},
	} {
		require.Equal(t, c.little, AMD64.Uint(c.b))
		require.Equal(t, c.big, big.Uint(c.b))
	}
	r := NewRegisters(big, "absent")
	r.SetUint(0, 0x1234)
	b, err := r.Bytes(0)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0x12, 0x34}, b)
}

func TestRegisters(t *testing.T) {
	r := NewRegisters(AMD64, "not asked for")
	missing := func(r *Registers, reg DWARFReg, reason string) {
		t.Helper()
		_, err := r.Bytes(reg)
		require.EqualError(t, err, reason)
		v, err := r.Uint(reg)
		require.EqualError(t, err, reason)
		require.Zero(t, v)
		_, err = r.Addr(reg)
		require.EqualError(t, err, reason)
	}
	missing(r, 0, "rax: not asked for")
	missing(r, 99, "dwarf register 99: not asked for")
	r.SetUint(0, 0xfedcba9876543210)
	v, err := r.Uint(0)
	require.NoError(t, err)
	require.Equal(t, uint64(0xfedcba9876543210), v)
	r.Set(17, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	v, err = r.Uint(17)
	require.NoError(t, err)
	require.Equal(t, uint64(0x0807060504030201), v)

	c := r.Clone()
	c.Forget(0, errors.New("the callee overwrote it"))
	missing(c, 0, "the callee overwrote it")
	v, err = r.Uint(0)
	require.NoError(t, err, "the original is what it was")
	require.Equal(t, uint64(0xfedcba9876543210), v)
	c.SetUint(0, 1)
	v, err = c.Uint(0)
	require.NoError(t, err, "a register that is set is no longer missing")
	require.Equal(t, uint64(1), v)
	require.Equal(t, AMD64, c.Arch())
}

// page is memory at address 0x1000.
type page []byte

func (p page) ReadMemory(b []byte, addr Addr) error {
	if addr < 0x1000 || uint64(addr-0x1000)+uint64(len(b)) > uint64(len(p)) {
		return &MemoryError{Addr: addr, Len: len(b), Why: "not mapped"}
	}
	copy(b, p[addr-0x1000:])
	return nil
}

func TestReadUint(t *testing.T) {
	m := page{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for size, want := range map[int]uint64{1: 0x01, 2: 0x0201, 3: 0x030201, 4: 0x04030201, 8: 0x0807060504030201} {
		v, err := ReadUint(m, AMD64, 0x1000, size)
		require.NoError(t, err)
		require.Equal(t, want, v)
	}
	a, err := ReadAddr(m, AMD64, 0x1001)
	require.NoError(t, err)
	require.Equal(t, Addr(0x0908070605040302), a)
	_, err = ReadAddr(m, AMD64, 0x1002)
	require.EqualError(t, err, "8 bytes at 0x1002: not mapped")
	for _, size := range []int{-1, 0, 9} {
		_, err := ReadUint(m, AMD64, 0x1000, size)
		require.Error(t, err)
	}
}

func TestMapping(t *testing.T) {
	m := Mapping{Start: 0x1000, End: 0x2000}
	for addr, want := range map[Addr]bool{0xfff: false, 0x1000: true, 0x1fff: true, 0x2000: false} {
		require.Equal(t, want, m.Contains(addr))
	}
	for _, c := range []struct {
		path  string
		inode uint64
		want  bool
	}{
		{"", 0, true}, {"[heap]", 0, true}, {"[anon:jit]", 0, true}, {"/anon_hugepage", 0, true},
		{"/usr/lib/libc.so.6", 12, false}, {"/dev/zero (deleted)", 1029, false}, {"/memfd:jit (deleted)", 7, false}, {"anon_inode:x", 0, false}, {"/", 0, false},
	} {
		require.Equal(t, c.want, Mapping{Path: c.path, Inode: c.inode}.Anonymous(), c.path)
	}
}
