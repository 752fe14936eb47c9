package machine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// upTo is memory that ends at an address. The value of each byte is the low byte of its address.
type upTo struct {
	end   machine.Addr
	reads *int
}

func (m upTo) ReadMemory(p []byte, addr machine.Addr) error {
	*m.reads++
	if addr+machine.Addr(len(p)) > m.end {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "there is no more"}
	}
	for n := range p {
		p[n] = byte(addr) + byte(n)
	}
	return nil
}

// TestReadSome requires that memory is read up to its last byte, with few reads for any length. It is an error only if not even one byte can be read.
func TestReadSome(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		addr := machine.Addr(0x10000 + random.IntN(10000))
		size, there := random.IntN(20000), random.IntN(20000)
		reads := 0
		data, err := machine.ReadSome(upTo{addr + machine.Addr(there), &reads}, addr, make([]byte, size))
		require.Len(t, data, min(size, there))
		want := make([]byte, len(data))
		for n := range want {
			want[n] = byte(addr) + byte(n)
		}
		require.Equal(t, want, data)
		require.Equal(t, there == 0 && size > 0, err != nil)
		require.Less(t, reads, 120)
	}
}
