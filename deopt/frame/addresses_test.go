package frame

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

type address uint64

func (a address) String() string                                    { return fmt.Sprintf("%#x", uint64(a)) }
func (a address) TextWith(spell func(address uint64) string) string { return spell(uint64(a)) }

// TestTextWith requires that addresses in nested errors are replaced too, and that the other words of the text and the nested errors stay.
func TestTextWith(t *testing.T) {
	short := func(at uint64) string { return fmt.Sprintf("<%d>", at) }
	inner := Errorf("%d bytes at %v: %w", 16, address(32), io.EOF)
	for _, c := range []struct {
		why        error
		text, with string
	}{
		{errors.New("a text with 0x10"), "a text with 0x10", "a text with 0x10"},
		{inner, "16 bytes at 0x20: EOF", "16 bytes at <32>: EOF"},
		{Errorf("%s: %w", "%rbx", inner), "%rbx: 16 bytes at 0x20: EOF", "%rbx: 16 bytes at <32>: EOF"},
		{Because(SaveUnreadable, 1, "rbx", inner), "the place where frame #1 saved rbx cannot be read: 16 bytes at 0x20: EOF", "the place where frame #1 saved rbx cannot be read: 16 bytes at <32>: EOF"},
		{Because(ReturnToNoCode, 1, address(5)), "frame #1: its return address 0x5 is not in executable memory", "frame #1: its return address <5> is not in executable memory"},
	} {
		require.EqualError(t, c.why, c.text)
		require.Equal(t, c.with, TextWith(c.why, short))
	}
	require.ErrorIs(t, Errorf("a: %w", inner), io.EOF)
}

// TestNotesAndReasonsKeepAddresses requires that slots, values of a VM and notes can be written without addresses.
func TestNotesAndReasonsKeepAddresses(t *testing.T) {
	hidden := func(uint64) string { return "0x…" }
	why := Because(SaveUnreadable, 1, "rbx", Errorf("16 bytes at %v: %w", address(32), io.EOF))
	const text = "the place where frame #1 saved rbx cannot be read: 16 bytes at 0x…: EOF"
	s := Slot{Name: "%a", Value: "5", Hex: "0x5", Bytes: []byte{5}, Status: OK}
	s.Clear(Missing, why)
	require.Equal(t, text, TextWith(s.Why(), hidden))
	require.Equal(t, Slot{Name: "%a", Status: Missing, Code: SaveUnreadable, Reason: why.Error(), why: why}, s)
	v := VMValue{Type: "i32", Value: "5", Hex: "0x5", Status: OK, Bytes: []byte{5}}
	v.Clear(Missing, why)
	require.Equal(t, VMValue{Type: "i32", Hex: "0x5", Status: Missing, Code: SaveUnreadable, Reason: why.Error(), why: why}, v)
	named := v.as("local[0]")
	require.Equal(t, text, TextWith(named.Why(), hidden))

	f := Frame{Notes: []string{"a note with 0x10"}}
	f.AddNote(errors.New("no address"))
	again := f
	again.AddNote(why)
	f.AddNote(Errorf("at %v", address(32)))
	require.Equal(t, []string{"a note with 0x10", "no address", "at 0x…"}, f.Noted().With(hidden))
	require.Equal(t, ": a note with 0x10; no address; "+text, again.Noted().TextWith(hidden))
	require.Equal(t, Noted(again.Notes), again.Noted().String())
}
