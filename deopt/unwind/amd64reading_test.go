package unwind

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

func TestReadFunction(t *testing.T) {
	for _, test := range functionsRead {
		t.Run(test.name, func(t *testing.T) {
			var code []byte
			for _, l := range test.lines {
				code = append(code, codeOf(t, l.code)...)
			}
			rows, err := readFunction(elfText{0x1000, code}, 0x1000, 0x1000+machine.Addr(len(code)))
			require.NoError(t, err)
			pc := machine.Addr(0x1000)
			for _, l := range test.lines {
				row, err := rows.row(pc, false)
				got := ""
				switch {
				case err == nil:
					got = rowText(t, row)
					require.Equal(t, pc, row.Start)
					require.Equal(t, pc+machine.Addr(len(codeOf(t, l.code))), row.End)
				case strings.HasPrefix(err.Error(), "the CFA at "):
					got = "?"
				}
				require.Equal(t, l.row, got, "%v %s", pc, l.text)
				pc += machine.Addr(len(codeOf(t, l.code)))
			}
		})
	}
}

func TestReadToReturn(t *testing.T) {
	for _, test := range returnsRead {
		t.Run(test.name, func(t *testing.T) {
			row, certain, err := readToReturn(elfText{0x1000, codeOf(t, test.code)}, 0x1000, false)
			if err != nil {
				require.Equal(t, test.row, err.Error())
				return
			}
			require.Equal(t, test.row, rowText(t, row))
			require.Equal(t, test.certain, certain)
		})
	}
}

// TestReturnAddresses requires that the row of a return address is that of the call's function: the code after the call may belong to another
// function.
func TestReturnAddresses(t *testing.T) {
	// push %rbx; sub $16,%rsp; call .+0x100; a second function: ret
	text := elfText{0x1000, codeOf(t, "53 48 83 ec 10 e8 fb 00 00 00 c3")}
	rows, err := readFunction(text, 0x1000, 0x100a)
	require.NoError(t, err)
	row, err := rows.row(0x100a, true)
	require.NoError(t, err)
	require.Equal(t, "rsp+32 rbx -16 rbp same", rowText(t, row))
	_, err = rows.row(0x100a, false)
	require.EqualError(t, err, "no instruction at 0x100a was reached")
	_, err = rows.row(0x1005, true)
	require.EqualError(t, err, "no call that was reached ends at 0x1005")

	row, certain, err := readToReturn(text, 0x100a, false)
	require.NoError(t, err)
	require.True(t, certain)
	require.Equal(t, "rsp+8 rbx same rbp same", rowText(t, row))
	_, _, err = readToReturn(text, 0x100a, true)
	require.Equal(t, errNotOurs, err)
}

// TestFillers requires that the row of a return address with a no-op at it is not certain: the call may not return, and the no-op may be padding
// before the next function.
func TestFillers(t *testing.T) {
	for _, c := range []struct {
		code    string
		certain bool
	}{
		{"48 83 c4 18 c3", true},              // addq $0x18, %rsp; retq
		{"90 48 83 c4 18 c3", false},          // nop
		{"0f 1f 40 00 48 83 c4 18 c3", false}, // nopl (%rax)
		{"f3 0f 1e fa 48 83 c4 18 c3", true},  // endbr64, which compilers emit after a call of setjmp
		{"c5 f8 77 48 83 c4 18 c3", true},     // vzeroupper
	} {
		text := elfText{0x1000, codeOf(t, c.code)}
		row, certain, err := readToReturn(text, 0x1000, true)
		require.NoError(t, err)
		require.Equal(t, "rsp+32 rbx same rbp same", rowText(t, row))
		require.Equal(t, c.certain, certain, c.code)
		_, certain, err = readToReturn(text, 0x1000, false)
		require.NoError(t, err)
		require.True(t, certain)
	}
}

// TestReturnBehindTwoInstructions requires an error for a return after a call if other instructions start in the middle of the call and also end at
// the return. The two paths have different stack pointers there.
func TestReturnBehindTwoInstructions(t *testing.T) {
	// je 0x4; pushq %rax; 0x3: callq 0x90909098 (0x4: nop; nop; nop; nop); retq
	text := elfText{0x1000, codeOf(t, "74 02 50 e8 90 90 90 90 c3")}
	_, _, err := readToReturn(text, 0x1000, false)
	require.EqualError(t, err, "the stack pointer at the return at 0x1008 is unknown")
	_, _, err = readToReturn(text, 0x1000, true)
	require.Equal(t, errNotOurs, err)
}

// TestReadBounds requires errors for code that is too long, has no end or cannot be read.
func TestReadBounds(t *testing.T) {
	nops := strings.Repeat("\x90", 1<<20) + "\xc3"
	_, _, err := readToReturn(elfText{0x1000, []byte(nops)}, 0x1000, false)
	require.EqualError(t, err, "it leads to no return")
	_, certain, err := readToReturn(elfText{0x1000, []byte(nops)}, machine.Addr(0x1000+1<<20-maxForward+1), false)
	require.NoError(t, err)
	require.True(t, certain)
	rows, err := readFunction(elfText{0x1000, []byte(nops)}, 0x1000, math.MaxUint64)
	require.NoError(t, err)
	_, err = rows.row(0x1000+maxFunctionInstrs-1, false)
	require.NoError(t, err)
	_, err = rows.row(0x1000+maxFunctionInstrs, false)
	require.EqualError(t, err, "no instruction at 0x3710 was reached")

	_, err = readFunction(elfText{}, 0x1000, 0x1000)
	require.EqualError(t, err, "the function has no code")
	rows, err = readFunction(elfText{}, 0x1000, 0x2000)
	require.NoError(t, err)
	_, err = rows.row(0x1000, false)
	require.EqualError(t, err, "no instruction at 0x1000 was reached")
	_, _, err = readToReturn(elfText{}, math.MaxUint64, true)
	require.EqualError(t, err, "it leads to no return")
	_, err = rows.row(0, true)
	require.EqualError(t, err, "no call that was reached ends at 0x0")
}

// TestManySlots requires that registers saved on the stack stay known if the code then writes more slots than a moment records. If the reading starts
// after the save, the initial contents of memory become unknown, and so does the saved register.
func TestManySlots(t *testing.T) {
	code := codeOf(t, "53 48 81 ec 00 10 00 00") // push %rbx; sub $4096,%rsp
	for i := range 2 * maxSlots {                // mov %eax,N(%rsp)
		code = append(append(code, 0x89, 0x84, 0x24), le(uint32(8*i))...)
	}
	body := machine.Addr(0x1000 + len(codeOf(t, "53 48 81 ec 00 10 00 00")))
	end := 0x1000 + machine.Addr(len(code))
	code = append(code, codeOf(t, "48 81 c4 00 10 00 00 5b c3")...) // add $4096,%rsp; pop %rbx; ret
	text := elfText{0x1000, code}
	rows, err := readFunction(text, 0x1000, 0x1000+machine.Addr(len(code)))
	require.NoError(t, err)
	row, err := rows.row(end, false)
	require.NoError(t, err)
	require.Equal(t, "rsp+4112 rbx -16 rbp same", rowText(t, row))
	row, _, err = readToReturn(text, body, false)
	require.NoError(t, err)
	require.Equal(t, "rsp+4112 rbx ? rbp same", rowText(t, row))
	row, _, err = readToReturn(text, end, false)
	require.NoError(t, err)
	require.Equal(t, "rsp+4112 rbx -16 rbp same", rowText(t, row))
}

func FuzzReadCode(f *testing.F) {
	for _, test := range functionsRead {
		var code []byte
		for _, l := range test.lines {
			b, _ := hex.DecodeString(strings.ReplaceAll(l.code, " ", ""))
			code = append(code, b...)
		}
		f.Add(code)
	}
	for _, test := range returnsRead {
		b, _ := hex.DecodeString(strings.ReplaceAll(test.code, " ", ""))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		text := elfText{0x1000, code}
		end := 0x1000 + machine.Addr(len(code))
		rows, err := readFunction(text, 0x1000, end)
		if err != nil {
			return
		}
		for pc := machine.Addr(0x1000); pc <= end && pc < 0x1040; pc++ {
			for _, ret := range []bool{false, true} {
				if row, err := rows.row(pc, ret); err == nil {
					plausibleRow(t, row)
				}
			}
		}
		if row, _, err := readToReturn(text, 0x1000, len(code)%2 == 0); err == nil {
			plausibleRow(t, row)
		}
	})
}

// plausibleRow checks a row read from arbitrary code.
func plausibleRow(t *testing.T, row *cfi.Row) {
	require.Less(t, row.Start, row.End)
	require.LessOrEqual(t, row.End-row.Start, machine.Addr(amd64.Longest))
	require.Equal(t, cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: -8}, row.Rule(machine.AMD64.PC))
	require.NotEqual(t, "?", strings.Fields(rowText(t, row))[0])
}

func codeOf(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

// rowText formats a row in the notation of functionsRead and returnsRead.
func rowText(t *testing.T, row *cfi.Row) string {
	t.Helper()
	text := fmt.Sprintf("%s%+d", machine.AMD64.RegisterName(row.CFA.Register), row.CFA.Offset)
	if row.CFA.Kind == cfi.CFAExpression {
		v := evaluated(t, row.CFA.Expression)
		loaded := (v + 1<<19) >> 20
		text = fmt.Sprintf("%s%+d", placeText(loaded), int64(v-loaded<<20))
	}
	for _, reg := range []machine.DWARFReg{rbx, rbp} {
		text += " " + machine.AMD64.RegisterName(reg) + " "
		switch rule := row.Rule(reg); rule.Kind {
		case cfi.RuleNone:
			text += "?"
		case cfi.RuleSameValue:
			text += "same"
		case cfi.RuleOffset:
			text += fmt.Sprint(rule.Offset)
		case cfi.RuleRegister:
			text += "in " + machine.AMD64.RegisterName(rule.Register)
		case cfi.RuleExpression:
			text += placeText(evaluated(t, rule.Expression))
		default:
			require.Fail(t, "a rule of another kind", "%+v", rule)
		}
	}
	return text
}

// evaluated returns the value of an expression with (r+1) << 20 in register r, and with address << 20 in the memory at each address.
func evaluated(t *testing.T, e cfi.Expression) uint64 {
	t.Helper()
	regs := machine.NewRegisters(machine.AMD64, "")
	for reg := range machine.DWARFReg(16) {
		regs.SetUint(reg, uint64(reg+1)<<20)
	}
	v, err := e.Evaluate(regs, shifted{})
	require.NoError(t, err)
	return v
}

type shifted struct{}

func (shifted) ReadMemory(p []byte, addr machine.Addr) error {
	copy(p, le(uint64(addr)<<20))
	return nil
}

// placeText converts an address of evaluated back to a register plus an offset.
func placeText(addr uint64) string {
	reg := (addr + 1<<19) >> 20
	return fmt.Sprintf("[%s%+d]", machine.AMD64.RegisterName(machine.DWARFReg(reg-1)), int64(addr-reg<<20))
}
