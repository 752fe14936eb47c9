package layout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/vm/layout"
)

const layoutModule = `
declare i64 @llvm.experimental.deoptimize.i64(...)
define i64 @opt(i64 %n) gc "statepoint-example" {
entry:
  %d = call i64 (...) @llvm.experimental.deoptimize.i64(i32 7) [ "deopt"(i32 3, i64 %n) ]
  ret i64 %d
}
define i64 @dollar(i64 %$s-10, i64 %"7") {
entry:
  %a$b = add i64 %$s-10, %"7"
  br label %l
l:
  ret i64 %a$b
}
define i64 @plain(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %i
}
`

// TestLayoutMistakes requires that the error for each mistake in a layout is one line with its place and the reason.
func TestLayoutMistakes(t *testing.T) {
	m, err := ir.Parse("m.ll", []byte(layoutModule))
	require.NoError(t, err)
	exit := func(text string) string {
		return `{"schema":"reframe.layout/v1","exits":[` + text + `]}`
	}
	const resume = `"resume":{"function":"plain","block":"loop"}`
	// The mistake begins at the text in at.
	for _, c := range []struct{ name, text, at, want string }{
		{"good", exit(`{"function":"opt","record":2882400000,"when":[{"operand":0,"equals":3}],` + resume + `,"slots":[{"operand":1,"name":"%n"}]}`), "", ""},
		{"names with and without sigils", exit(`{"function":"@opt","resume":{"function":"@plain","block":"%loop"},"slots":[{"operand":1,"name":"n"}]}`), "", ""},
		{"a number is no name", exit(`{"function":"opt","resume":{"function":"dollar","block":"l"},"slots":[{"operand":1,"name":"%7"}]}`), `"%7"`, "exits[0].slots[0].name: @dollar has no value %7"},
		{"not JSON", "{\n\"schema\": 7x", "x", "invalid character 'x' after object key:value pair"},
		{"unknown field", exit(`{"functoin":"opt"}`), `"functoin"`, `exits[0].functoin: unknown member; expected one of function, record, when, resume, slots`},
		{"on its line", exit("\n{" + resume + "},\n {\"recrod\":1}"), `"recrod"`, `exits[1].recrod: unknown member; expected one of function, record, when, resume, slots`},
		{"a text for a number", exit(`{"function":"opt","record":"5"}`), `"5"`, `exits[0].record: expected an unsigned integer of 64 bits, got a string`},
		{"a second value", exit(`{"function":"opt",`+resume+`}`) + "{}", "{}", "unexpected text after the value"},
		{"no function", exit(`{` + resume + `}`), `{"res`, "exits[0].function: expected the name of a function"},
		{"nowhere to resume", exit(`{"function":"opt"}`), `{"function":"opt"`, "exits[0].resume.function: expected the name of a function"},
		{"a name twice", exit(`{"function":"opt",` + resume + `,"slots":[{"operand":1,"name":"%n"},{"operand":0,"name":"n"}]}`), `"n"}`, "exits[0].slots[1].name: %n is given twice"},
		{"schema", `{"schema":"reframe.layout/v9"}`, `"reframe`, `schema: "reframe.layout/v9" is not supported; expected "reframe.layout/v1"`},
		{"function", exit(`{"function":"nosuch",` + resume + `}`), `"nosuch"`, "exits[0].function: no module defines a function @nosuch"},
		{"only declared", exit(`{"function":"llvm.experimental.deoptimize.i64",` + resume + `}`), `"llvm`, "exits[0].function: no module defines a function @llvm.experimental.deoptimize.i64"},
		{"resume function", exit(`{"function":"opt","resume":{"function":"nosuch","block":"loop"}}`), `"nosuch"`, "exits[0].resume.function: no module defines a function @nosuch"},
		{"block", exit(`{"function":"opt","resume":{"function":"plain","block":"lop"}}`), `"lop"`, "exits[0].resume.block: @plain has no block %lop"},
		{"block with its sigil", exit(`{"function":"opt","resume":{"function":"plain","block":"%lop"}}`), `"%lop"`, "exits[0].resume.block: @plain has no block %lop"},
		{"no exit", exit(`{"function":"plain",` + resume + `}`), `{"function":"plain"`, "exits[0]: @plain has no such exit: it has no stackmap, patchpoint, statepoint or deoptimize with that record"},
		{"record", exit(`{"function":"opt","record":5,` + resume + `}`), `{"function":"opt"`, "exits[0]: @opt has no such exit: it has no stackmap, patchpoint, statepoint or deoptimize with that record"},
		{"condition", exit(`{"function":"opt","when":[{"operand":2,"equals":3}],` + resume + `}`), `2,`, "exits[0].when[0].operand: 2: the exits of @opt have 2 live values: expected a number from 0 to 1"},
		{"operand", exit(`{"function":"opt",` + resume + `,"slots":[{"operand":-1,"name":"%n"}]}`), `-1`, "exits[0].slots[0].operand: -1: the exits of @opt have 2 live values: expected a number from 0 to 1"},
		{"value", exit(`{"function":"opt",` + resume + `,"slots":[{"operand":1,"name":"%m"}]}`), `"%m"`, "exits[0].slots[0].name: @plain has no value %m"},
		{"value without its sigil", exit(`{"function":"opt",` + resume + `,"slots":[{"operand":1,"name":"m"}]}`), `"m"`, "exits[0].slots[0].name: @plain has no value %m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := layout.Parse("l.json", []byte(c.text))
			if err == nil {
				err = l.Check(sites.NewModules([]*ir.Module{m}))
			}
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, layout.ExitResume{Function: "plain", Block: "loop"}, l.Exits[0].Resume)
				require.Equal(t, "%n", l.Exits[0].Slots[0].Name)
				return
			}
			before, _, found := strings.Cut(c.text, c.at)
			require.True(t, found)
			column := len(before) - strings.LastIndexByte(before, '\n')
			require.EqualError(t, err, fmt.Sprintf("l.json:%d:%d: %s", 1+strings.Count(before, "\n"), column, c.want))
		})
	}
}

// TestLayoutNames requires that a value may be named as in the source or as LLVM prints it; two spellings are one name.
func TestLayoutNames(t *testing.T) {
	m, err := ir.Parse("m.ll", []byte(layoutModule))
	require.NoError(t, err)
	for text, want := range map[string]string{
		`{"operand":1,"name":"%$s-10"},{"operand":0,"name":"%\"a$b\""}`:   "",
		`{"operand":1,"name":"%\"$s-10\""},{"operand":0,"name":"%\"7\""}`: "",
		`{"operand":1,"name":"%\"$s-10\""},{"operand":0,"name":"%$s-10"}`: "%$s-10 is given twice",
	} {
		l, err := layout.Parse("l.json", []byte(`{"schema":"reframe.layout/v1","exits":[{"function":"opt","resume":{"function":"dollar","block":"l"},"slots":[`+text+`]}]}`))
		require.NoError(t, err)
		err = l.Check(sites.NewModules([]*ir.Module{m}))
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// TestLayoutConditions requires that an exit is taken if all its conditions hold, and that an undecided one is not guessed.
func TestLayoutConditions(t *testing.T) {
	number := func(v uint32) frame.Slot {
		return frame.Slot{Type: frame.Type{Kind: frame.Int, Bits: 32, Source: "i32"}, Status: frame.OK, Hex: frame.HexOf(uint64(v)), Bytes: make([]byte, 4)}
	}
	record := uint64(7)
	l := &layout.Layout{Name: "l.json", Exits: []layout.Exit{
		{Function: "f", Record: &record, When: []layout.Condition{{Operand: 0, Equals: 3}}, Resume: layout.ExitResume{Function: "a", Block: "x"}},
		{Function: "f", When: []layout.Condition{{Operand: 0, Equals: -1}, {Operand: 1, Equals: 4294967295}}, Resume: layout.ExitResume{Function: "b", Block: "x"}},
		{Function: "g", When: []layout.Condition{{Operand: 5, Equals: 1}}},
		{Function: "h"},
		{Function: "k", When: []layout.Condition{{Operand: 5, Equals: 1}}},
		{Function: "k", When: []layout.Condition{{Operand: 0, Equals: 3}, {Operand: 1, Equals: 1}}, Resume: layout.ExitResume{Function: "a", Block: "x"}},
		{Function: "k", When: []layout.Condition{{Operand: 0, Equals: 4}}, Resume: layout.ExitResume{Function: "b", Block: "x"}},
	}}
	missing := frame.Slot{Type: frame.Type{Kind: frame.Int, Bits: 32, Source: "i32"}, Status: frame.Missing, Reason: "rax is gone"}
	for n, c := range []struct {
		function string
		record   uint64
		slots    []frame.Slot
		resume   string
		why      string
	}{
		{"f", 7, []frame.Slot{number(3), number(0)}, "a", ""},
		{"f", 8, []frame.Slot{number(3), number(0)}, "", ""},
		{"f", 7, []frame.Slot{number(0xffffffff), number(0xffffffff)}, "b", ""},
		{"f", 7, []frame.Slot{number(0xffffffff), number(0)}, "", ""},
		{"f", 7, []frame.Slot{missing, number(0)}, "", "l.json: exits[0] compares live value 0, which is unavailable: rax is gone"},
		{"g", 7, []frame.Slot{number(1)}, "", "l.json: exits[2] compares live value 5, but record 7 has 1"},
		{"h", 1, nil, "", ""},
		{"k", 1, []frame.Slot{number(4), missing}, "b", ""}, // the first is for another record, and the second cannot hold
		{"k", 1, []frame.Slot{number(3), missing}, "", "l.json: exits[5] compares live value 1, which is unavailable: rax is gone"},
		{"k", 1, []frame.Slot{number(5), number(1)}, "", "l.json: exits[4] compares live value 5, but record 1 has 2"},
		{"nosuch", 1, nil, "", ""},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			x, why := l.Apply(c.function, c.record, c.slots)
			if c.why == "" {
				require.NoError(t, why)
			} else {
				require.EqualError(t, why, c.why)
			}
			if c.function == "h" {
				require.NotNil(t, x)
				return
			}
			require.Equal(t, c.resume != "", x != nil)
			if x != nil {
				require.Equal(t, c.resume, x.Resume.Function)
			}
		})
	}
}
