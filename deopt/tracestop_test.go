package deopt

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/frame"
)

func TestParseStopErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                          ": at its end: the name of a slot belongs here, such as %i, loc0 or #0",
		"%i":                        "%i: at its end: a comparison belongs here: ==, !=, <, <=, > or >=",
		"%i ==":                     "%i ==: at its end: a number belongs here, or true or false",
		"%i = 3":                    `%i = 3: at "= 3": a comparison belongs here: ==, !=, <, <=, > or >=`,
		"%i == 3 & %j == 4":         `%i == 3 & %j == 4: at "& %j == 4": && or the end belongs here`,
		"%i == 3 || %j == 4":        `%i == 3 || %j == 4: at "|| %j == 4": && or the end belongs here`,
		"%i == 3 &&":                "%i == 3 &&: at its end: the name of a slot belongs here, such as %i, loc0 or #0",
		"3 == %i":                   `3 == %i: at "3 == %i": the name of a slot belongs here, such as %i, loc0 or #0`,
		"%i == x":                   `%i == x: at "x": a number belongs here, or true or false`,
		"%i == %j":                  `%i == %j: at "%j": a number belongs here, or true or false`,
		"%i < true":                 `%i < true: at "true": true is compared by == or !=`,
		`%"a b == 3`:                `%"a b == 3: at "%\"a b == 3": the quotation mark is not closed`,
		"#x == 1":                   `#x == 1: at "#x == 1": the name of a slot belongs here, such as %i, loc0 or #0`,
		"#99999999999999999999 < 1": `#99999999999999999999 < 1: at "#99999999999999999999 < 1": the name of a slot belongs here, such as %i, loc0 or #0`,
		"loc == 1":                  `loc == 1: at "loc == 1": the name of a slot belongs here, such as %i, loc0 or #0`,
	} {
		_, err := ParseStop(text)
		var stop *StopError
		require.ErrorAs(t, err, &stop, text)
		require.EqualError(t, err, want)
	}
}

func TestStopCondition(t *testing.T) {
	i64, i8, i1 := frame.Type{Kind: frame.Int, Bits: 64, Source: "i64"}, frame.Type{Kind: frame.Int, Bits: 8, Source: "i8"}, frame.Type{Kind: frame.Int, Bits: 1, Source: "i1"}
	ptr, double := frame.Type{Kind: frame.Pointer, Bits: 64, Source: "ptr"}, frame.Type{Kind: frame.Float, Bits: 64, Source: "double"}
	i128 := frame.Type{Kind: frame.Int, Bits: 128, Source: "i128"}
	f := &Frame{}
	add := func(name string, typ frame.Type, raw ...byte) {
		f.Slots = append(f.Slots, frame.Slot{Index: len(f.Slots), Name: name, Type: typ, Status: frame.OK, Bytes: raw,
			Value: typ.Format(raw, binary.LittleEndian), Hex: frame.HexBytes(raw, binary.LittleEndian)})
	}
	add("%i", i64, 25, 0, 0, 0, 0, 0, 0, 0)
	add("%m", i64, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // -5
	add("%b", i8, 0x80)                                            // -128
	add("%t", i1, 1)
	add("%p", ptr, 0, 0, 0, 0, 0, 0, 0, 0x80)
	add("%d", double, 0, 0, 0, 0, 0, 0, 0x04, 0x40)   // 2.5
	add("%nan", double, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f) // NaN
	add("%inf", double, 0, 0, 0, 0, 0, 0, 0xf0, 0xff) // -Inf
	add("loc8", frame.Type{}, 0xff, 0xff, 0xff, 0xff)
	add(`%"a b"`, i64, 7, 0, 0, 0, 0, 0, 0, 0)
	add("%x.addr", i64, 8, 0, 0, 0, 0, 0, 0, 0)
	add("%large", i128, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0) // 2^64
	f.Slots = append(f.Slots, frame.Slot{Index: len(f.Slots), Name: "%gone", Status: frame.Missing, Reason: "rax is caller-saved"})
	for text, want := range map[string]bool{
		"%i == 25": true, "%i==25": true, "%i != 25": false, "%i < 26": true, "%i < 25": false, "%i <= 25": true, "%i > 24": true,
		"%i > 25": false, "%i >= 25": true, "%i >= 26": false, "%i == 0x19": true, "#0 == 25": true, "%i > -1": true,
		"%m == -5": true, "%m == 0xfffffffffffffffb": true, "%m < 0": true, "%m > -6": true, "%m < 0xfffffffffffffffb": true,
		"%b == -128": true, "%b == 128": true, "%b < 0": true, "%b <= -128": true, "%b == 384": false, "%b < -129": false, "%b > 127": false,
		"%t == true": true, "%t == false": false, "%t != false": true, "%t == 1": true, "%t > 0": true, "%t == 0": false,
		"%p > 0": true, "%p == 0x8000000000000000": true, "%p >= 0x7fffffffffff": true, "%p < 0": false,
		"%d == 2.5": true, "%d > 2": true, "%d < 2.5e0": false, "%d <= 3": true, "%d != 2.5": false,
		"%nan == 1": false, "%nan != 1": true, "%nan < 1": false, "%nan >= 1": false, "%nan == nan": false,
		"%inf < 0": true, "%inf == -inf": true, "%inf <= -1e308": true,
		"loc8 == 0xffffffff": true, "loc8 > 0": true, "loc8 == -1": true,
		`%"a b" == 7`: true, "%x.addr == 8": true,
		"%large == 18446744073709551616": true, "%large > 18446744073709551615": true, "%large < 0": false,
		"%i == 25 && %m == -5": true, "%i == 25&&%m==-4": false, " %i == 25  &&  %d == 2.5 && %t == true ": true,
	} {
		c, err := ParseStop(text)
		require.NoError(t, err, text)
		holds, missing, absent := c.holds(f)
		require.Equal(t, want, holds, text)
		require.Empty(t, missing, text)
		require.False(t, absent, text)
	}
	for text, why := range map[string]string{
		"%gone == 1":            "rax is caller-saved",
		"%i == 25 && %gone > 3": "rax is caller-saved",
		"%i == true":            "it is no i1",
		"%i == 2.5":             "it is no floating-point number",
	} {
		c, err := ParseStop(text)
		require.NoError(t, err, text)
		holds, missing, absent := c.holds(f)
		require.False(t, holds, text)
		require.Equal(t, why, missing, text)
		require.False(t, absent, text)
	}
	for _, text := range []string{"%nothing == 1", "#99 == 1", "loc0 == 25"} {
		c, err := ParseStop(text)
		require.NoError(t, err, text)
		holds, missing, absent := c.holds(f)
		require.False(t, holds, text)
		require.Empty(t, missing, text)
		require.True(t, absent, text)
	}
}

// A condition comes from a user, who may paste anything.
func FuzzParseStop(f *testing.F) {
	f.Add("%i == 25 && %acc <= 0x10")
	f.Add(`%"a b" != -1.5e3`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseStop(text)
		if err != nil {
			var stop *StopError
			require.ErrorAs(t, err, &stop)
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, c.terms)
		_, _, _ = c.holds(&Frame{Frame: frame.Frame{Slots: []frame.Slot{{Name: "%i", Status: frame.OK}}}})
	})
}
