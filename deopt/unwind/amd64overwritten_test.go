package unwind

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// oneCode is a [Finder] that returns the same code for each address.
type oneCode struct{ code Code }

func (o *oneCode) Code(machine.Addr) *Code { return &o.code }

// TestEntryAtAnUnknownDepth requires that a return address at the stack pointer does not exclude a jump if its call leads to code that runs with
// another stack pointer. The stack pointer is known in the region and unknown in the stub, because the region loads it from memory before it
// jumps there.
func TestEntryAtAnUnknownDepth(t *testing.T) {
	const (
		region, stub, caller = machine.Addr(0x1000), machine.Addr(0x2000), machine.Addr(0x4000)
		sp                   = machine.Addr(0x7fff0000) // the stack pointer at the start of the region
		pushed               = region + 7               // the stack pointer is 8 bytes lower here
	)
	direct := func(at, to machine.Addr) []byte { // a call
		d := uint32(to - at - 5)
		return []byte{0xe8, byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
	}
	code := []byte{0x48, 0x89, 0xe3, 0x48, 0x83, 0xec, 8, 0x90, 0x48, 0x8b, 0x20} // mov %rsp, %rbx; sub $8, %rsp; nop; mov (%rax), %rsp
	jump := direct(region+machine.Addr(len(code)), stub)
	jump[0] = 0xe9
	code = append(code, jump...)
	for _, c := range []struct {
		name string
		to   machine.Addr // target of the call whose return address is at sp
		want evidence
	}{
		{"a call of code at another depth", pushed, plausible},
		{"a call of code at this depth", region, excluded},
		{"a call of the stub", stub, excluded},
	} {
		back := caller + 5
		word := []byte{byte(back), byte(back >> 8), 0, 0, 0, 0, 0, 0}
		w := newWalk(&Unwinder{
			Arch: machine.AMD64, Finder: &oneCode{}, Executable: func(at machine.Addr) bool { return at < 0x10000 },
			Memory: segments{{region, code}, {stub, direct(stub, 0x3000)}, {caller - 11, append(make([]byte, 11), direct(caller, c.to)...)}, {sp, word}},
		})
		place := &Overwritten{At: region, End: region + machine.Addr(len(code)), From: stub}
		r, _, err := w.leave(place, stub+5, machine.Range{})
		require.NoError(t, err)
		require.NotContains(t, r.depths(), stub)
		require.EqualValues(t, -8, r.depths()[pushed])
		d := &patchedFrame{trial: w.trial, place: place}
		require.Equal(t, c.want, d.entered(sp, r, true, sp-64), c.name)
	}
}
