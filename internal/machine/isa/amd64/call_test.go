package amd64

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

func TestEndsInCall(t *testing.T) {
	for _, test := range []struct {
		code string
		want bool
	}{
		{"\x90\x90\x90\xe8\x01\x02\x03\x04", true},          // call rel32
		{"\x90\x90\xff\xd0", true},                          // call *%rax
		{"\x90\x41\xff\xd3", true},                          // call *%r11
		{"\xff\x15\x01\x02\x03\x04", true},                  // call *0x4030201(%rip)
		{"\x41\xff\x94\xc0\x01\x02\x03\x04", true},          // call *0x4030201(%r8,%rax,8)
		{"\x66\x66\x48\xe8\x01\x02\x03\x04", true},          // a call of __tls_get_addr, with its padding prefixes
		{"\xff\xe0", false},                                 // jmp *%rax
		{"\x90\x90\x90\x90\x90\x90\xc3", false},             // ret
		{"\xe9\x01\x02\x03\x04", false},                     // jmp rel32
		{"\xe8\x01\x02\x03\x04\x90", false},                 // a call and one more byte
		{"\x48\x89\xe5\x5d\xc3\x0f\x1f\x44\x00\x00", false}, // no call
	} {
		require.Equal(t, test.want, endsInCall([]byte(test.code)), "% x", test.code)
		m := text(test.code)
		got, err := CallBefore(m, 0x1000+machine.Addr(len(test.code)))
		require.NoError(t, err)
		require.Equal(t, test.want, got, "% x", test.code)
		require.Equal(t, test.want, CallFrom(m, 0x1000, 0x1000+machine.Addr(len(test.code))), "% x", test.code)
	}
	_, err := CallBefore(text("\xff\xd0"), 0x1001)
	require.EqualError(t, err, "2 bytes at 0xfff: not mapped")

	// The code is mov $0xd0ff,%eax: its operand looks like call *%rax.
	hidden := text("\xb8\xff\xd0\x00\x00\xff\xd0\x06\xff\xd0")
	got, err := CallBefore(hidden, 0x1003)
	require.NoError(t, err)
	require.True(t, got)
	require.False(t, CallFrom(hidden, 0x1000, 0x1003))
	require.True(t, CallFrom(hidden, 0x1000, 0x1007))
	require.False(t, CallFrom(hidden, 0x1000, 0x100a), "behind 06, which is no instruction")
	require.False(t, CallFrom(hidden, 0x1007, 0x1007))
	require.False(t, CallFrom(hidden, 0x100a, 0x1010), "not mapped")
}

// text is code at address 0x1000.
type text string

func (s text) ReadMemory(p []byte, addr machine.Addr) error {
	if at := uint64(addr - 0x1000); at <= uint64(len(s)) && uint64(len(p)) <= uint64(len(s))-at {
		copy(p, s[at:])
		return nil
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
}
