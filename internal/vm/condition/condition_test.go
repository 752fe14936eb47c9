package condition

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/livetest"
)

func TestParseErrors(t *testing.T) {
	const operand = "expected a slot such as %i, loc0 or #0, a number, or a text in quotation marks"
	const operator = "expected an operator or the end"
	for text, want := range map[string]string{
		"":                          ": at its end: " + operand,
		"  ":                        "  : at its end: " + operand,
		"%i ==":                     "%i ==: at its end: " + operand,
		"%i = 3":                    `%i = 3: at "= 3": a comparison is written ==`,
		"%i == 3 & %j == 4":         `%i == 3 & %j == 4: at "== 4": == does not associate with == (use parens)`,
		"1 < %i < 3":                `1 < %i < 3: at "< 3": < does not associate with < (use parens)`,
		"%i == 3 &&":                "%i == 3 &&: at its end: " + operand,
		"%i == and %j":              `%i == and %j: at "and %j": got and, want primary expression`,
		`%"a b == 3`:                `%"a b == 3: at "%\"a b == 3": ` + operand,
		`%"" == 3`:                  `%"" == 3: at "%\"\" == 3": ` + operand,
		"#x == 1":                   `#x == 1: at "#x == 1": ` + operand,
		"% == 1":                    `% == 1: at "% == 1": ` + operand,
		"%i == +1":                  `%i == +1: at "+1": ` + operand,
		"(%i == 1":                  "(%i == 1: at its end: got end of file, want ')'",
		"%i == 1)":                  `%i == 1): at its end: unexpected ')'`,
		"%i) == (1":                 `%i) == (1: at "== (1": got '==' after expression, want EOF`,
		"%i == 1 2":                 `%i == 1 2: at "2": ` + operator,
		"%i == 12x":                 `%i == 12x: at "x": ` + operator,
		"%i == 1_000":               `%i == 1_000: at "_000": ` + operator,
		"%i == 0x":                  `%i == 0x: at "x": ` + operator,
		"%i == 0x1.4p1":             `%i == 0x1.4p1: at ".4p1": ` + operator,
		"%i == 031":                 `%i == 031: at "031": obsolete form of octal literal; use 0o31`,
		"%i == 1e999":               `%i == 1e999: at "1e999": invalid float literal`,
		"%i ; 1":                    `%i ; 1: at "; 1": ` + operator,
		"#99999999999999999999 < 1": `#99999999999999999999 < 1: at "99999999999 < 1": ` + operator,

		// These parts of Starlark are not supported.
		"%i == 10**10**10":       `%i == 10**10**10: at "*10**10": ` + operand,
		`%i == "a" * 1000000000`: `%i == "a" * 1000000000: at "%i == \"a\" * 1000000000": a text can only be compared with == and !=`,
		"%i == len(%j)":          `%i == len(%j): at "(%j)": ` + operator,
		"%i == [1] * 1000000000": `%i == [1] * 1000000000: at "[1] * 1000000000": ` + operand,
		"[x for x in %i]":        `[x for x in %i]: at "[x for x in %i]": ` + operand,
		"(x for x in %i)":        `(x for x in %i): at "for x in %i)": ` + operator,
		"lambda: %i":             `lambda: %i: at ": %i": ` + operator,
		"%i == (1, 2)":           `%i == (1, 2): at ", 2)": ` + operator,
		"%i == ()":               `%i == (): at ")": ` + operand,
		"1 if %i else 2":         `1 if %i else 2: at "if %i else 2": ` + operator,
		"%i in %j":               `%i in %j: at "in %j": ` + operator,
		"%i not in %j":           `%i not in %j: at "not in %j": ` + operator,
		"%i == 1\n%j == 2":       "%i == 1\n%j == 2: at \"== 2\": == does not associate with == (use parens)", // a second expression on the next line
		"%i == 1 # comment":      `%i == 1 # comment: at "# comment": ` + operator,
		"%i == \\\n1":            `%i == ` + "\\\n1" + `: at "\\\n1": ` + operand,

		// These conditions never hold.
		"3 == 3":                `3 == 3: at "3 == 3": it asks for no slot`,
		"true":                  `true: at "true": it asks for no slot`,
		"%i == 1/0":             `%i == 1/0: at "%i == 1/0": floating-point division by zero`,
		"%i == 5 % (3 - 3)":     `%i == 5 % (3 - 3): at "%i == 5 % (3 - 3)": integer modulo by zero`,
		"%i == 1 << 2000":       `%i == 1 << 2000: at "%i == 1 << 2000": shift count too large: 2000`,
		"%i == 1 << -1":         `%i == 1 << -1: at "%i == 1 << -1": negative shift count: -1`,
		"%i == 2.5 & 1":         `%i == 2.5 & 1: at "%i == 2.5 & 1": unknown binary op: float & int`,
		"true && %i == -(~1.5)": `true && %i == -(~1.5): at "true && %i == -(~1.5)": unknown unary op: ~ float`,
	} {
		_, err := Parse(text)
		var wrong *Error
		require.ErrorAs(t, err, &wrong, text)
		require.EqualError(t, err, want)
	}
}

// TestHostileText requires that no text takes much time or memory.
func TestHostileText(t *testing.T) {
	wide := func(name string, bits int) frame.Slot {
		return frame.Slot{Name: name, Type: frame.Type{Kind: frame.Int, Bits: bits}, Status: frame.OK, Hex: frame.Hex("0x7" + strings.Repeat("f", bits/4-1))}
	}
	for text, want := range map[string]string{
		strings.Repeat("(", 4000) + "%w == 1" + strings.Repeat(")", 4000): "excessive nesting",
		strings.Repeat("-", 5000) + "1 == %w":                             "excessive nesting",
		strings.Repeat("!", 5000) + "%w":                                  "excessive nesting",
		"%w == 1" + strings.Repeat(" && %w == 1", 5000):                   "it is longer than 8 KiB",
		"%w == " + strings.Repeat("9", 9000):                              "it is longer than 8 KiB",
		"%w == " + strings.Repeat("(1<<511)*", 800) + "1":                 "a number of over 65536 bits",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want)
	}
	for text, want := range map[string]Answer{
		"%w > 1" + strings.Repeat(" && %w > 1", 300): Yes,
		"0 < " + strings.Repeat("%w*", 2000) + "1":   Undecided,
		"%wider > 1":                         Undecided,
		"%w == " + strings.Repeat("9", 8000): No,
		strings.Repeat("(", 50) + "%w" + strings.Repeat("==1)", 50): No,
	} {
		c, err := Parse(text)
		require.NoError(t, err, text)
		a, _ := c.Of([]frame.Slot{wide("%w", 1<<16), wide("%wider", 1<<23)})
		require.Equal(t, want, a, "%.40s", text)
	}
}

var (
	i64  = frame.Type{Kind: frame.Int, Bits: 64, Source: "i64"}
	i8   = frame.Type{Kind: frame.Int, Bits: 8, Source: "i8"}
	i1   = frame.Type{Kind: frame.Int, Bits: 1, Source: "i1"}
	i128 = frame.Type{Kind: frame.Int, Bits: 128, Source: "i128"}
	ptr  = frame.Type{Kind: frame.Pointer, Bits: 64, Source: "ptr"}
	dbl  = frame.Type{Kind: frame.Float, Bits: 64, Source: "double"}
	flt  = frame.Type{Kind: frame.Float, Bits: 32, Source: "float"}
	vec  = frame.Type{Kind: frame.Vector, Bits: 64, Source: "<2 x i32>", Len: 2, Elem: &frame.Type{Kind: frame.Int, Bits: 32, Source: "i32"}}
)

// slots returns the slots that the tables use.
func slots() (list []frame.Slot) {
	add := func(name string, typ frame.Type, raw ...byte) {
		list = append(list, frame.Slot{Index: len(list), Name: name, Type: typ, Status: frame.OK, Bytes: raw,
			Value: typ.Format(raw, binary.LittleEndian), Hex: frame.HexBytes(raw, binary.LittleEndian)})
	}
	add("%i", i64, 25, 0, 0, 0, 0, 0, 0, 0)
	add("%m", i64, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // -5
	add("%b", i8, 0x80)                                            // -128
	add("%t", i1, 1)
	add("%p", ptr, 0, 0, 0, 0, 0, 0, 0, 0x80)
	add("%d", dbl, 0, 0, 0, 0, 0, 0, 0x04, 0x40)    // 2.5
	add("%none", dbl, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f) // NaN
	add("%min", dbl, 0, 0, 0, 0, 0, 0, 0xf0, 0xff)  // -Inf
	add("loc8", frame.Type{}, 0xff, 0xff, 0xff, 0xff)
	add(`%"a b"`, i64, 7, 0, 0, 0, 0, 0, 0, 0)
	add("%x.addr", i64, 8, 0, 0, 0, 0, 0, 0, 0)
	add("%large", i128, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0) // 2^64
	add("%7", i64, 77, 0, 0, 0, 0, 0, 0, 0)
	add("%u", i8, 200) // -56
	add("loc14", frame.Type{}, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	add("%f", flt, 0xcd, 0xcc, 0xcc, 0x3d)        // 0.1
	add("%exact", i64, 1, 0, 0, 0, 0, 0, 0x20, 0) // 2^53 + 1
	add("%vec", vec, 1, 0, 0, 0, 2, 0, 0, 0)
	add("%max", i64, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)
	add("%dash-ed", i64, 5, 0, 0, 0, 0, 0, 0, 0)
	add("bare", i64, 6, 0, 0, 0, 0, 0, 0, 0) // a layout may spell a name without %
	return append(list,
		frame.Slot{Index: len(list), Name: "%gone", Status: frame.Missing, Reason: "rax is caller-saved"},
		frame.Slot{Index: len(list) + 1, Name: "%undef", Status: frame.Undefined, Reason: "the module has undef here"},
		// A record may hold a value twice.
		frame.Slot{Index: len(list) + 2, Name: "%twice", Status: frame.Missing, Reason: "rdx is caller-saved"},
		frame.Slot{Index: len(list) + 3, Name: "%twice", Type: i8, Status: frame.OK, Bytes: []byte{3}, Value: "3", Hex: "0x3"})
}

func TestCondition(t *testing.T) {
	all := slots()
	for text, want := range map[string]bool{
		// Comparisons with literals.
		"%i == 25": true, "%i==25": true, "%i != 25": false, "%i < 26": true, "%i < 25": false, "%i <= 25": true, "%i > 24": true,
		"%i > 25": false, "%i >= 25": true, "%i >= 26": false, "%i == 0x19": true, "%i == 0b11001": true, "%i == 0o31": true, "#0 == 25": true, "%i > -1": true,
		"25 == %i": true, "26 > %i": true,
		"%m == -5": true, "%m == 0xfffffffffffffffb": true, "%m < 0": true, "%m > -6": true, "%m < 0xfffffffffffffffb": true,
		"%b == -128": true, "%b == 128": true, "%b < 0": true, "%b <= -128": true, "%b == 384": false, "%b < -129": false, "%b > 127": false,
		"%b != 384": true, "-128 == %b": true, "128 == %b": true,
		"%t == true": true, "%t == false": false, "%t != false": true, "%t == 1": true, "%t > 0": true, "%t == 0": false, "true == %t": true,
		"%p > 0": true, "%p == 0x8000000000000000": true, "%p >= 0x7fffffffffff": true, "%p < 0": false,
		"%d == 2.5": true, "%d > 2": true, "%d < 2.5e0": false, "%d <= 3": true, "%d != 2.5": false, "%d == .25e1": true, "%d == 25e-1": true,
		"%none == 1": false, "%none != 1": true, "%none < 1": false, "%none >= 1": false, "%none == nan": false, "%none != nan": true, "%none == %none": false, "%i != nan": true,
		"%min < 0": true, "%min == -inf": true, "%min <= -1e308": true, "%i < inf": true, "%min < %i": true, "%large > -inf": true,
		"%f == 0.1": true, "%f > 0.1": false,
		"loc8 == 0xffffffff": true, "loc8 > 0": true, "loc8 == -1": true, "%loc8 == -1": true,
		`%"a b" == 7`: true, "%x.addr == 8": true, "x.addr == 8": true, "%7 == 77": true, `%"i" == 25`: true, `%"dash-ed" == 5`: true, "%bare == 6": true, "bare == 6": true,
		"%large == 18446744073709551616": true, "%large > 18446744073709551615": true, "%large < 0": false,
		"-%d == -2.5 && -%d != 2": true, "%m == -5.0": true, "%m == -10 / 2": true, "%m != -5.0": false, "%i == 25.0": true, "%i == 25.5": false, "%i < 25.5": true,
		"%exact == 9007199254740992.0": false, "%exact > 9007199254740992.0": true,

		// Slot against slot.
		"%i > %m": true, "%i == %i": true, "i<m": false, "%m == loc14": true, "%m < loc14": true, "%u == %b": false, "%u < %i": true, "%i == %d": false, "%d < %i": true, "%b == %m": false,

		// Arithmetic.
		"%i + 1 == 26": true, "%i - 1 == 24": true, "%i-1 == 24": true, "%i * 2 == 50": true, "%i / 4 == 6.25": true, "%i // 4 == 6": true, "%i % 4 == 1": true, "%i%4 == 1": true, "%i%%x.addr == 1": true, "i%x.addr == 1": true,
		"%m / 2 == -2.5": true, "%m // 2 == -3": true, "%m % 3 == 1": true, "-7 // 2 == -4 && %i > 0": true, "%m % -3 == -2": true,
		"2 + 3 * 4 == 14 && %i > 0": true, "(2 + 3) * 4 == 20 && %i > 0": true, "10 - 4 - 3 == 3 && %i > 0": true, "100 / 5 / 2 == 10 && %i > 0": true, "100 // 5 // 2 == 10 && %i > 0": true,
		"1 << 2 + 1 == 8 && %i > 0": true, "%i & 1 == 1": true, "%i & 24 == 24": true, "%i | 32 == 57": true, "%i ^ 1 == 24": true, "%i & 16 | 3 == 19": true, "%i >> 3 == 3": true, "%i << 70 == 25 * (1 << 70)": true,
		"%m >> 1 == -3": true, "%m & 0xff == 0xfb": true, "%m & 0xff == -5": false, "%m + 0 == -5": true, "%m + 0 == 0xfffffffffffffffb": false,
		"%max + 1 == 9223372036854775808": true, "%max + 1 > %max": true, "(%max + 1) & 0xffffffffffffffff == 0x8000000000000000": true, "%max * %max > %large": true,
		"-%i == -25": true, "--%i == 25": true, "-%i + 50 == %i": true, "%d * 2 == 5": true, "%d / 2 == 1.25": true, "%d % 2 == 0.5": true, "%d + %i == 27.5": true, "%d // 2 == 1": true, "-%d == -2.5": true,
		"%p + 8 == 0x8000000000000008": true, "%u + 256 == 200": true, "%t + 1 == 2": true, "5 / 2 == 2.5 && %i > 0": true, "~%i == -26": true, "%m & ~1 == -6": true,

		// Truth.
		"%i == 25 && %m == -5": true, "%i == 25&&%m==-4": false, " %i == 25  &&  %d == 2.5 && %t == true ": true,
		"%i == 1 || %m == -5": true, "%i == 1 || %m == 1": false, "%i == 25 || %i == 1 && %i == 2": true, "(%i == 25 || %i == 1) && %i == 2": false,
		"!(%i == 25)": false, "!(%i == 1) && true": true, "!!(%i == 25)": true, "(%i == 25) == true": true, "(%i > 3) == (%m > 3)": false, "(%i > 3) != (%m > 3)": true, "%t == (%i > 3)": true,
		"%i": true, "%i && %m": true, "%i - 25": false, "!%i": false, "!(%i) == 0": true, "!%i + 1 == 1": true, "-!%i == 0": true, "!-%i": false, "%d - 2.5": false,
		"%i == true": false, "%t + true == 2": true, "(%i > 3) + (%m > 3) == 1": true, "true >= %t": true, "-(%i > 3) == -1": true,
		"%i == 25 and %m == -5": true, "%i == 1 or not %m == 4": true, "not %i == 25": false, "not (%i == 25) or %t == True": true, "False == %t": false,
		"%i == 1 or %m == -5 && %t": true, "not %i > 3 and %nothing == 1": false, "%nothing == 1 || not false": true,
		"((((%i))) == ((25)))": true, "%i\t==\n25": true,

		// The result does not depend on the missing value.
		"%i == 25 || %gone == 1": true, "(%gone && false) == false": true, "!(%gone || true) + 1 == 1": true, "%gone == 1 || %i == 25": true, "%i == 1 && %gone == 1": false, "%gone == 1 && %i == 1": false,
		"!(%gone == 1 && %i == 1)": true, "(%gone == 1 || %i == 25) && (%i == 25 || %nothing == 1)": true, "%nothing == 1 && false": false, "true || %nothing == 1": true,
		"%i / 0 == 1 || %i == 25": true, "%twice == 3": true,
	} {
		c, err := Parse(text)
		require.NoError(t, err, text)
		a, why := c.Of(all)
		require.Equal(t, map[bool]Answer{true: Yes, false: No}[want], a, "%s: %s", text, why)
		require.Empty(t, why, text)
	}
	for text, why := range map[string]string{
		"%gone == 1":                          "rax is caller-saved",
		"%i == 25 && %gone > 3":               "rax is caller-saved",
		"%gone > 3 || %i == 1":                "rax is caller-saved",
		"!(%gone == 1)":                       "rax is caller-saved",
		"%gone + 1 == 2":                      "rax is caller-saved",
		"%i == 25 && (%i == 1 || -%gone > 3)": "rax is caller-saved",
		"(%gone == 1) == true":                "rax is caller-saved",
		"%undef == 1":                         "the module has undef here",
		"%i / (%m + 5) == 1":                  "floating-point division by zero",
		"%i // (%m + 5) == 1":                 "floored division by zero",
		"%i % (%m + 5) == 1":                  "integer modulo by zero",
		"%d / 0 == inf":                       "floating-point division by zero",
		"%i << %large == 1":                   "18446744073709551616 out of range",
		"%i >> %m == 1":                       "negative shift count: -5",
		"%d & 1 == 1":                         "unknown binary op: float & int",
		"~%d == 1":                            "unknown unary op: ~ float",
		"%nothing == 1 && %gone == 1":         "rax is caller-saved",
		"loc8 == 2.5":                         "it has no type, so it is not a floating-point number",
		"2.5 + (loc8) == 3":                   "it has no type, so it is not a floating-point number",
		"%d < loc8":                           "it has no type, so it is not a floating-point number",
		"%vec == 1":                           "it is not a number: its type is <2 x i32>",
	} {
		c, err := Parse(text)
		require.NoError(t, err, text)
		a, said := c.Of(all)
		require.Equal(t, Undecided, a, text)
		require.Equal(t, why, said, text)
	}
	for _, text := range []string{"%nothing == 1", "#99 == 1", "loc0 == 25", "%i == 25 && nothing < 1", "!(nothing < 1)", "%I == 25"} {
		c, err := Parse(text)
		require.NoError(t, err, text)
		a, why := c.Of(all)
		require.Equal(t, Absent, a, text)
		require.Contains(t, why, "there is no ", text)
		a, _ = c.Of(nil)
		require.Equal(t, Absent, a, text)
	}
}

// TestPossible requires that a condition that can never hold is recognized from the names alone.
func TestPossible(t *testing.T) {
	has := func(n Name) bool { return n.Text == "i" || n.Text == "j" || n.Text == "" && n.Index < 2 }
	for text, want := range map[string]bool{
		"%i == 1": true, "%k == 1": false, "%i == %j": true, "%i == %k": false, "%i == 1 && %k == 1": false, "%i == 1 || %k == 1": true,
		"!(%i == 1 && %k == 1)": true, "!(%i == 1 || %k == 1)": false, "!(%k == 1)": false, "#1 == 3": true, "#2 == 3": false, "%i == 1 && false": false, "%k == 1 || true": true, "(%i == 25 || %k) == 1": true, "(%k || %k) == 1": false,
	} {
		c, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, c.Possible(has), text)
	}
	c, err := Parse(`%i > 3 && (j < 1 || %i + #2 == %"a b")`)
	require.NoError(t, err)
	var names []string
	for _, n := range c.Names() {
		names = append(names, n.String())
	}
	require.Equal(t, []string{"i", "j", "#2", "a b"}, names)
	require.EqualError(t, c.Wrong(c.Names()[1], "no"), `%i > 3 && (j < 1 || %i + #2 == %"a b"): at "j < 1 || %i + #2 == %\"a b\")": no`)
}

// TestAgainstPython requires precedence, associativity and numbers as in Python, whose evaluator gives the expected results of random conditions.
func TestAgainstPython(t *testing.T) {
	livetest.Slow(t)
	python := livetest.Tool(t, "python3")
	random := rand.New(rand.NewPCG(15, 15))
	values := map[string]int64{"a": 25, "b": -5, "c": 1 << 40, "d": 3}
	var numbers, truths func(depth int) (ours, python string)
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	parenthesized := func(a, b string) (string, string) {
		if random.IntN(3) == 0 {
			return "(" + a + ")", "(" + b + ")"
		}
		return a, b
	}
	numbers = func(depth int) (string, string) {
		switch n := random.IntN(10); {
		case depth == 0 || n < 3:
			if random.IntN(2) == 0 {
				name := pick("a", "b", "c", "d")
				return pick("", "%") + name, name
			}
			k := fmt.Sprint(random.IntN(100))
			return k, k
		case n == 3:
			a, b := numbers(0)
			op := pick("<<", ">>")
			k := fmt.Sprint(random.IntN(70))
			looser := pick("&", "|", "^") // otherwise the shift width could be any number
			y, py := numbers(depth - 1)
			return parenthesized(a+" "+op+" "+k+" "+looser+" "+y, b+" "+op+" "+k+" "+looser+" "+py)
		case n == 4:
			k, m := fmt.Sprint(random.IntN(1000)), fmt.Sprint(1+random.IntN(30))
			if random.IntN(2) == 0 {
				k = "-" + k
			}
			op := pick("%", "//")
			return k + pick("", " ") + op + m, k + op + m
		case n == 5:
			a, b := numbers(0)
			return "-" + a, "-" + b
		}
		op := pick("+", "-", "*", "&", "|", "^")
		x, px := numbers(depth - 1)
		y, py := numbers(depth - 1)
		space := pick("", " ")
		return parenthesized(x+space+op+space+y, px+" "+op+" "+py)
	}
	truths = func(depth int) (string, string) {
		switch n := random.IntN(6); {
		case depth == 0 || n < 2:
			x, px := numbers(3)
			y, py := numbers(3)
			op := pick("==", "!=", "<", "<=", ">", ">=")
			return parenthesized(x+op+y, px+" "+op+" "+py)
		case n == 2:
			x, px := truths(depth - 1)
			return "!(" + x + ")", "(not (" + px + "))"
		}
		x, px := truths(depth - 1)
		y, py := truths(depth - 1)
		if random.IntN(2) == 0 {
			return parenthesized(x+" && "+y, px+" and "+py)
		}
		return parenthesized(x+"||"+y, px+" or "+py)
	}
	var all []frame.Slot
	script := ""
	for name, v := range values {
		raw := binary.LittleEndian.AppendUint64(nil, uint64(v))
		all = append(all, frame.Slot{Name: "%" + name, Type: i64, Status: frame.OK, Bytes: raw, Value: fmt.Sprint(v), Hex: frame.HexBytes(raw, binary.LittleEndian)})
		script += fmt.Sprintf("%s = %d\n", name, v)
	}
	var texts []string
	for range 3000 {
		text, theirs := truths(3)
		if _, err := Parse(text); err != nil {
			require.ErrorContains(t, err, "it asks for no slot", text)
			continue
		}
		texts = append(texts, text)
		script += "print(" + theirs + ")\n"
	}
	run := exec.Command(python, "-")
	run.Stdin = strings.NewReader(script)
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	said := strings.Fields(string(out))
	require.Len(t, said, len(texts))
	trues := 0
	for i, text := range texts {
		c, err := Parse(text)
		require.NoError(t, err)
		a, why := c.Of(all)
		require.Equal(t, map[string]Answer{"True": Yes, "False": No}[said[i]], a, "%s: %s", text, why)
		trues += bytes.Count([]byte(said[i]), []byte("True"))
	}
	require.Greater(t, trues, 500)
	require.Greater(t, len(texts)-trues, 500)
}

// FuzzParse parses arbitrary text, because users may paste any text as a condition.
func FuzzParse(f *testing.F) {
	f.Add("%i == 25 && %acc <= 0x10")
	f.Add(`%"a b" != -1.5e3 || !(i % 3 > #2 << 4)`)
	f.Add("(true == %t) == (loc0 / 2.5 < -inf)")
	f.Add("not ~local[2] // 3 and object[4].x ^ caller[1].local[0] or 0o17")
	all := slots()
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			var wrong *Error
			require.ErrorAs(t, err, &wrong)
			require.NotEmpty(t, err.Error())
			require.LessOrEqual(t, wrong.At, len(text))
			return
		}
		require.NotEmpty(t, c.Names())
		_, _, err = c.Value(all)
		a, why := c.Of(all)
		require.Equal(t, a == Yes || a == No, err == nil, why)
		for _, given := range [][]frame.Slot{nil, all[:3], all} {
			a, why := c.Of(given)
			require.Equal(t, a == Yes || a == No, why == "")
			has := func(n Name) bool { return n.Find(given) != nil }
			if a == Yes {
				require.True(t, c.Possible(has))
			}
		}
	})
}
