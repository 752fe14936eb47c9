package unwind

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
	"reframe/deopt/x86"
)

// line is an instruction and the row that holds before it, "" where it is not reached.
type line struct{ code, text, row string }

// A row is the CFA, and where the caller's rbx and rbp are: the same as they were, at an offset
// from the CFA, at a register plus an offset in brackets, in another register, or not known.
var functionsRead = []struct {
	name  string
	lines []line
}{
	{"the usual frame", []line{
		{"55", "pushq %rbp", "rsp+8 rbx same rbp same"},
		{"48 89 e5", "movq %rsp, %rbp", "rsp+16 rbx same rbp -16"},
		{"53", "pushq %rbx", "rsp+16 rbx same rbp -16"},
		{"48 83 ec 18", "subq $0x18, %rsp", "rsp+24 rbx -24 rbp -16"},
		{"e8 fb 00 00 00", "callq 0x109", "rsp+48 rbx -24 rbp -16"},
		{"48 89 c3", "movq %rax, %rbx", "rsp+48 rbx -24 rbp -16"},
		{"48 83 c4 18", "addq $0x18, %rsp", "rsp+48 rbx -24 rbp -16"},
		{"5b", "popq %rbx", "rsp+24 rbx -24 rbp -16"},
		{"5d", "popq %rbp", "rsp+16 rbx same rbp -16"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"enter and leave", []line{
		{"c8 20 00 00", "enter $0x20, $0x0", "rsp+8 rbx same rbp same"},
		{"48 29 c4", "subq %rax, %rsp", "rsp+48 rbx same rbp -16"},
		{"51", "pushq %rcx", "rbp+16 rbx same rbp -16"},
		{"c9", "leave", "rbp+16 rbx same rbp -16"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"a loop that touches pages", []line{
		{"4c 8d 9c 24 00 b0 ff ff", "leaq -0x5000(%rsp), %r11", "rsp+8 rbx same rbp same"},
		{"48 81 ec 00 10 00 00", "subq $0x1000, %rsp", "r11+20488 rbx same rbp same"},
		{"48 83 0c 24 00", "orq $0x0, (%rsp)", "r11+20488 rbx same rbp same"},
		{"4c 39 dc", "cmpq %r11, %rsp", "r11+20488 rbx same rbp same"},
		{"75 ef", "jne 0x8", "r11+20488 rbx same rbp same"},
		{"48 83 ec 10", "subq $0x10, %rsp", "rsp+20488 rbx same rbp same"},
		{"48 81 c4 10 50 00 00", "addq $0x5010, %rsp", "rsp+20504 rbx same rbp same"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"realigned by gcc, with an argument on the stack", []line{
		{"4c 8d 54 24 08", "leaq 0x8(%rsp), %r10", "rsp+8 rbx same rbp same"},
		{"48 83 e4 c0", "andq $-0x40, %rsp", "rsp+8 rbx same rbp same"},
		{"41 ff 72 f8", "pushq -0x8(%r10)", "r10+0 rbx same rbp same"},
		{"55", "pushq %rbp", "r10+0 rbx same rbp same"},
		{"48 89 e5", "movq %rsp, %rbp", "r10+0 rbx same rbp [rsp+0]"},
		{"41 52", "pushq %r10", "r10+0 rbx same rbp [rsp+0]"},
		{"53", "pushq %rbx", "r10+0 rbx same rbp [rsp+8]"},
		{"48 83 ec 40", "subq $0x40, %rsp", "r10+0 rbx [rsp+0] rbp [rsp+16]"},
		{"e8 fb 00 00 00", "callq 0x118", "r10+0 rbx [rsp+64] rbp [rsp+80]"},
		{"48 8d 65 f0", "leaq -0x10(%rbp), %rsp", "[rsp+72]+0 rbx [rsp+64] rbp [rsp+80]"},
		{"5b", "popq %rbx", "[rsp+8]+0 rbx [rsp+0] rbp [rsp+16]"},
		{"41 5a", "popq %r10", "[rsp+0]+0 rbx same rbp [rsp+8]"},
		{"5d", "popq %rbp", "r10+0 rbx same rbp [rsp+0]"},
		{"49 8d 62 f8", "leaq -0x8(%r10), %rsp", "r10+0 rbx same rbp same"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"pushed when it was no more the caller's", []line{
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+8 rbx same rbp same"},
		{"53", "pushq %rbx", "rsp+8 rbx ? rbp same"},
		{"5b", "popq %rbx", "rsp+16 rbx ? rbp same"},
		{"c3", "retq", "rsp+8 rbx ? rbp same"},
	}},
	{"saved and written over in part", []line{
		{"53", "pushq %rbx", "rsp+8 rbx same rbp same"},
		{"89 44 24 04", "movl %eax, 0x4(%rsp)", "rsp+16 rbx -16 rbp same"},
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+16 rbx same rbp same"},
		{"5b", "popq %rbx", "rsp+16 rbx ? rbp same"},
		{"c3", "retq", "rsp+8 rbx ? rbp same"},
	}},
	{"saved in the red zone", []line{
		{"48 89 5c 24 f8", "movq %rbx, -0x8(%rsp)", "rsp+8 rbx same rbp same"},
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+8 rbx same rbp same"},
		{"48 8b 5c 24 f8", "movq -0x8(%rsp), %rbx", "rsp+8 rbx -16 rbp same"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"saved below the stack pointer, where a call writes", []line{
		{"48 89 5c 24 f8", "movq %rbx, -0x8(%rsp)", "rsp+8 rbx same rbp same"},
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+8 rbx same rbp same"},
		{"e8 fb 00 00 00", "callq 0x10a", "rsp+8 rbx -16 rbp same"},
		{"c3", "retq", "rsp+8 rbx ? rbp same"},
	}},
	{"saved on one of two ways", []line{
		{"48 83 ec 10", "subq $0x10, %rsp", "rsp+8 rbx same rbp same"},
		{"85 ff", "testl %edi, %edi", "rsp+24 rbx same rbp same"},
		{"74 05", "je 0xd", "rsp+24 rbx same rbp same"},
		{"48 89 5c 24 08", "movq %rbx, 0x8(%rsp)", "rsp+24 rbx same rbp same"},
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+24 rbx same rbp same"},
		{"48 83 c4 10", "addq $0x10, %rsp", "rsp+24 rbx ? rbp same"},
		{"c3", "retq", "rsp+8 rbx ? rbp same"},
	}},
	{"a call that does not come back", []line{
		{"85 ff", "testl %edi, %edi", "rsp+8 rbx same rbp same"},
		{"74 09", "je 0xd", "rsp+8 rbx same rbp same"},
		{"48 83 ec 08", "subq $0x8, %rsp", "rsp+8 rbx same rbp same"},
		{"e8 fb 00 00 00", "callq 0x108", "rsp+16 rbx same rbp same"},
		{"b8 01 00 00 00", "movl $0x1, %eax", "rsp+8 rbx same rbp same"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"a jump through a table", []line{
		{"53", "pushq %rbx", "rsp+8 rbx same rbp same"},
		{"ff 24 f8", "jmpq *(%rax,%rdi,8)", "rsp+16 rbx -16 rbp same"},
		{"5b", "popq %rbx", ""},
		{"c3", "retq", ""},
	}},
	{"half of the stack pointer", []line{
		{"89 ec", "movl %ebp, %esp", "rsp+8 rbx same rbp same"},
		{"90", "nop", "?"},
		{"c3", "retq", "?"},
	}},
	{"registers change places", []line{
		{"48 87 eb", "xchgq %rbx, %rbp", "rsp+8 rbx same rbp same"},
		{"48 89 e0", "movq %rsp, %rax", "rsp+8 rbx in rbp rbp in rbx"},
		{"31 e4", "xorl %esp, %esp", "rsp+8 rbx in rbp rbp in rbx"},
		{"48 89 c4", "movq %rax, %rsp", "rax+8 rbx in rbp rbp in rbx"},
		{"48 87 eb", "xchgq %rbx, %rbp", "rsp+8 rbx in rbp rbp in rbx"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"traps end it", []line{
		{"83 ff 01", "cmpl $0x1, %edi", "rsp+8 rbx same rbp same"},
		{"77 03", "ja 0x8", "rsp+8 rbx same rbp same"},
		{"cc", "int3", "rsp+8 rbx same rbp same"},
		{"0f 0b", "ud2", ""},
		{"f4", "hlt", "rsp+8 rbx same rbp same"},
		{"c3", "retq", ""},
	}},
	{"nothing that is known to be code", []line{
		{"53", "pushq %rbx", "rsp+8 rbx same rbp same"},
		{"0f c7 f8", "rdseedl %eax", "rsp+16 rbx -16 rbp same"},
		{"c3", "retq", ""},
	}},
}

var returnsRead = []struct {
	name, code string
	row        string // or an error
	certain    bool
}{
	// addq $0x8, %rsp; popq %rbx; popq %rbp; retq
	{"an epilogue", "48 83 c4 08 5b 5d c3", "rsp+32 rbx -24 rbp -16", true},
	// leave; retq
	{"leave", "c9 c3", "rbp+16 rbx same rbp -16", true},
	// leaq -0x8(%rbp), %rsp; popq %rbx; popq %rbp; retq
	{"from the frame pointer", "48 8d 65 f8 5b 5d c3", "rbp+16 rbx -24 rbp -16", true},
	// movq -0x8(%rbp), %r10; leave; leaq -0x8(%r10), %rsp; retq
	{"realigned by gcc", "4c 8b 55 f8 c9 49 8d 62 f8 c3", "[rbp-8]+0 rbx same rbp [rbp+0]", true},
	// pushq %rbp; movq %rsp, %rbp; pushq %rbx; popq %rbx; leave; retq
	{"from the first instruction", "55 48 89 e5 53 5b c9 c3", "rsp+8 rbx same rbp same", true},
	// pushq %rbx; movl $0x1, %ebx; leaq -0x8(%rbp), %rsp; popq %rbx; popq %rbp; retq
	{"before it is saved where the frame pointer leads", "53 bb 01 00 00 00 48 8d 65 f8 5b 5d c3", "rbp+16 rbx ? rbp -16", true},
	// callq 0x100; addq $0x8, %rsp; retq
	{"behind a call", "e8 fb 00 00 00 48 83 c4 08 c3", "rsp+16 rbx same rbp same", false},
	// testl %edi, %edi; je 0x9; movq 0x8(%rsp), %rbx; addq $0x18, %rsp; retq
	{"two returns that agree, but not on rbx", "85 ff 74 05 48 8b 5c 24 08 48 83 c4 18 c3", "rsp+32 rbx ? rbp same", true},
	// testl %edi, %edi; je 0x5; retq; popq %rax; retq
	{"two returns that do not agree", "85 ff 74 01 c3 58 c3", "the returns that it leads to do not agree where its frame ends: that at 0x1006 is one of them", false},
	// callq 0x100; retq
	{"a call that is the last instruction", "e8 fb 00 00 00 c3", "its calls lead to returns that are not of this frame", false},
	// callq 0x100; pushq %rax; callq 0x106; popq %rax; popq %rax; retq
	{"two calls that cannot both be aligned", "e8 fb 00 00 00 50 e8 fb 00 00 00 58 58 c3", "it leads to no return", false},
	// jmp 0x0; retq
	{"an endless loop", "eb fe c3", "it leads to no return", false},
	// ud2; retq
	{"a trap", "0f 0b c3", "it leads to no return", false},
	// jmpq *%rax; retq
	{"a jump through a register", "ff e0 c3", "it leads to no return", false},
	// movq 0x8(%rdx), %rsp; retq
	{"another stack", "48 8b 62 08 c3", "[rdx+8]+8 rbx same rbp same", true},
	// subq %rax, %rsp; retq
	{"a stack of run-time size", "48 29 c4 c3", "the stack pointer at the return at 0x1003 cannot be told", false},
	// andq $-0x10, %rsp; retq
	{"realigned, and not given back", "48 83 e4 f0 c3", "the stack pointer at the return at 0x1004 cannot be told", false},
}

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
				case strings.HasPrefix(err.Error(), "where the frame"):
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

// TestReturnAddresses asks for rows behind calls: what is there may be another function.
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

// TestReadBounds reads code that is long, has no end or cannot be read.
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
	require.EqualError(t, err, "no instruction at 0x5e20 was reached")

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

// TestManySlots writes more of the stack than is remembered: what was saved before is still
// known from the start, and what lies above is not known any more to be as it was.
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

// plausibleRow checks a row of code that may be anything.
func plausibleRow(t *testing.T, row *Row) {
	require.Less(t, row.Start, row.End)
	require.LessOrEqual(t, row.End-row.Start, machine.Addr(x86.Longest))
	require.Equal(t, RegisterRule{Kind: RuleOffset, Offset: -8}, row.Rule(machine.AMD64.PC))
	require.NotEqual(t, "?", strings.Fields(rowText(t, row))[0])
}

func codeOf(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

// rowText is a row in the form of the tables above.
func rowText(t *testing.T, row *Row) string {
	t.Helper()
	text := fmt.Sprintf("%s%+d", machine.AMD64.RegisterName(row.CFA.Register), row.CFA.Offset)
	if row.CFA.Kind == CFAExpression {
		v := evaluated(t, row.CFA.Expression)
		loaded := (v + 1<<19) >> 20
		text = fmt.Sprintf("%s%+d", placeText(loaded), int64(v-loaded<<20))
	}
	for _, reg := range []machine.DWARFReg{rbx, rbp} {
		text += " " + machine.AMD64.RegisterName(reg) + " "
		switch rule := row.Rule(reg); rule.Kind {
		case RuleNone:
			text += "?"
		case RuleSameValue:
			text += "same"
		case RuleOffset:
			text += fmt.Sprint(rule.Offset)
		case RuleRegister:
			text += "in " + machine.AMD64.RegisterName(rule.Register)
		case RuleExpression:
			text += placeText(evaluated(t, rule.Expression))
		default:
			require.Fail(t, "a rule of another kind", "%+v", rule)
		}
	}
	return text
}

// evaluated is the value of an expression where register r holds (r+1) << 20, and where the
// memory at each address holds that address << 20.
func evaluated(t *testing.T, e Expression) uint64 {
	t.Helper()
	regs := machine.NewRegisters(machine.AMD64, "")
	for reg := range machine.DWARFReg(16) {
		regs.SetUint(reg, uint64(reg+1)<<20)
	}
	v, err := e.evaluate(regs, shifted{})
	require.NoError(t, err)
	return v
}

type shifted struct{}

func (shifted) ReadMemory(p []byte, addr machine.Addr) error {
	copy(p, le(uint64(addr)<<20))
	return nil
}

// placeText is a register plus an offset out of which evaluated made an address.
func placeText(addr uint64) string {
	reg := (addr + 1<<19) >> 20
	return fmt.Sprintf("[%s%+d]", machine.AMD64.RegisterName(machine.DWARFReg(reg-1)), int64(addr-reg<<20))
}
