package unwind

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/test/livetest"
)

// tally counts the results of one method of unwinding.
type tally struct {
	right, wrong, unknown int
	why                   map[string]int // number of unknown results by reason
}

func (c *tally) add(got string) {
	switch got {
	case "right":
		c.right++
	case "wrong":
		c.wrong++
	default:
		c.unknown++
		if c.why == nil {
			c.why = map[string]int{}
		}
		c.why[got]++
	}
}

// share returns the fraction of right results, from 0 to 1.
func (c *tally) share() float64 {
	return float64(c.right) / float64(max(1, c.right+c.wrong+c.unknown))
}

func (c *tally) String() string {
	return fmt.Sprintf("%d right, %d wrong, %d unknown: %.2f %%", c.right, c.wrong, c.unknown, 100*c.share())
}

// elfText is the code of an ELF file as it is linked.
type elfText struct {
	addr machine.Addr
	code []byte
}

func textOf(t *testing.T, file *elf.File) elfText {
	t.Helper()
	s := file.Section(".text")
	b, err := s.Data()
	require.NoError(t, err)
	return elfText{machine.Addr(s.Addr), b}
}

func (e elfText) ReadMemory(p []byte, addr machine.Addr) error {
	if at := uint64(addr - e.addr); addr >= e.addr && at <= uint64(len(e.code)) && uint64(len(p)) <= uint64(len(e.code))-at {
		copy(p, e.code[at:])
		return nil
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not in .text"}
}

type function struct {
	name       string
	start, end machine.Addr
}

// functionsOf lists the functions of a file that have symbols, without the split-off parts of functions.
func functionsOf(t *testing.T, file *elf.File) []function {
	t.Helper()
	symbols, _ := file.Symbols()
	dynamic, _ := file.DynamicSymbols()
	text := file.Section(".text")
	seen := map[uint64]bool{}
	var out []function
	for _, s := range append(symbols, dynamic...) {
		kind := elf.ST_TYPE(s.Info)
		if kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC || s.Size == 0 || seen[s.Value] || s.Value < text.Addr || s.Value-text.Addr >= text.Size ||
			strings.Contains(s.Name, ".cold") {
			continue
		}
		seen[s.Value] = true
		out = append(out, function{s.Name, machine.Addr(s.Value), machine.Addr(s.Value + s.Size)})
	}
	slices.SortFunc(out, func(a, b function) int { return int(int64(a.start) - int64(b.start)) })
	return out
}

// switchesStacks lists functions that return on another stack than they were called on.
var switchesStacks = map[string]bool{"swapcontext": true, "setcontext": true, "longjmp": true, "__longjmp": true}

// TestReadLibraries reads functions of real libraries, and compares the rows at every instruction, and after every call, with the CFI that the
// compiler wrote for them.
func TestReadLibraries(t *testing.T) {
	livetest.Slow(t)
	for _, lib := range []struct {
		name              string
		one               int     // number n if every n-th function is compared
		function, returns float64 // minimum share of rows that each method finds
	}{
		// Rows are unknown in code that only a jump table leads to.
		{"libc.so.6", 3, .96, .95},
		// Rows are unknown in landing pads, and in code that only throws.
		{"libstdc++.so.6", 7, .87, .80},
	} {
		t.Run(lib.name, func(t *testing.T) {
			path := strings.TrimSpace(string(run(t, livetest.Tool(t, "gcc"), "-print-file-name="+lib.name)))
			file, err := elf.Open(path)
			require.NoError(t, err)
			defer file.Close()
			c := libComparison{t: t, text: textOf(t, file)}
			c.table, err = cfi.NewTable(sectionsOf(t, path, 0))
			require.NoError(t, err)
			functions := functionsOf(t, file)
			require.Greater(t, len(functions), 2000)
			for n := 0; n < len(functions); n += lib.one {
				if !switchesStacks[functions[n].name] {
					c.function(functions[n])
				}
			}
			t.Logf("the function: frames %v; registers %v; %v", &c.whole.frames, &c.whole.registers, c.whole.frames.why)
			t.Logf("to its returns: frames %v; registers %v; %v", &c.returns.frames, &c.returns.registers, c.returns.frames.why)
			t.Logf("to its returns, certain: frames %v; registers %v", &c.certain.frames, &c.certain.registers)
			require.Zero(t, c.whole.frames.wrong+c.whole.registers.wrong)
			require.Zero(t, c.certain.frames.wrong+c.certain.registers.wrong)
			// Allow a few wrong rows: where all returns follow a call that throws, the code after that call belongs to another function, because
			// the cold parts of functions are adjacent.
			require.Less(t, float64(c.returns.frames.wrong), .001*float64(c.returns.frames.right))
			require.Less(t, float64(c.returns.registers.wrong), .001*float64(c.returns.registers.right))
			for _, way := range []*counts{&c.whole, &c.returns, &c.certain} {
				for why := range way.frames.why {
					require.Contains(t, unknownBecause, why)
				}
			}
			require.GreaterOrEqual(t, c.whole.frames.share(), lib.function)
			require.GreaterOrEqual(t, c.returns.frames.share(), lib.returns)
		})
	}
}

// libComparison compares the rows read from code with CFI.
type libComparison struct {
	t                       *testing.T
	text                    elfText
	table                   *cfi.Table
	whole, returns, certain counts
}

// function compares each instruction of a function.
func (c *libComparison) function(fn function) {
	rows, err := readFunction(c.text, fn.start, fn.end)
	require.NoError(c.t, err, fn.name)
	ended := false // execution does not continue here from the previous instruction
	for pc := fn.start; pc < fn.end; {
		inst, _ := amd64.Decode(c.text.code[pc-c.text.addr:])
		if inst.Len == 0 {
			return
		}
		nop := inst.Op == x86asm.NOP || inst.Op == x86asm.XCHG && inst.Args[0] == inst.Args[1]
		if !ended || !nop { // padding before the next jump target never runs
			c.place(fn, rows, pc, false)
			ended = inst.Op == x86asm.RET || inst.Op == x86asm.JMP || inst.Op == x86asm.CALL
		}
		pc += machine.Addr(inst.Len)
		if inst.Op == x86asm.CALL {
			c.place(fn, rows, pc, true)
		}
	}
}

// place compares the row that was read from code with CFI's at one address.
func (c *libComparison) place(fn function, rows *codeRows, pc machine.Addr, ret bool) {
	lookup := pc
	if ret {
		lookup--
	}
	fde, err := c.table.Find(lookup)
	if err != nil {
		return // assembly without CFI
	}
	truth, err := fde.Rules(lookup)
	require.NoError(c.t, err)
	if truth.CFA.Kind != cfi.CFARegister || truth.Rule(truth.ReturnAddress).Kind == cfi.RuleUndefined {
		return // for example a signal trampoline, or the start of a thread
	}
	var known *moment
	if m, _, _, err := rows.moment(pc, ret); err == nil {
		known = &m
	}
	row, err := rows.row(pc, ret)
	c.compare(fn, pc, &c.whole, known, row, truth, err)
	row, certain, err := readToReturn(c.text, pc, ret)
	c.compare(fn, pc, &c.returns, known, row, truth, err)
	if certain {
		c.compare(fn, pc, &c.certain, known, row, truth, err)
	}
}

// anotherRegister is the reason for an unknown result if the row and CFI name registers with an unknown distance.
const anotherRegister = "another register"

// compare compares a row with CFI's. If they name different registers, the reading from the start of the function gives the distance between the two.
func (c *libComparison) compare(fn function, pc machine.Addr, to *counts, known *moment, row, truth *cfi.Row, err error) {
	if err != nil {
		to.frames.add(reason(err))
		return
	}
	got, want := row.CFA.Offset, truth.CFA.Offset
	if row.CFA.Register != truth.CFA.Register || row.CFA.Kind != cfi.CFARegister {
		ok := row.CFA.Kind == cfi.CFARegister && known != nil
		if ok {
			want, ok = known.regs[truth.CFA.Register].plus(want).from(known.regs[row.CFA.Register])
		}
		if !ok {
			to.frames.add(anotherRegister)
			return
		}
	}
	if got != want {
		if to != &c.returns {
			c.t.Logf("%s at %v: CFA %d%+d, not %+d", fn.name, pc, row.CFA.Register, got, want)
		}
		to.frames.add("wrong")
		return
	}
	to.frames.add("right")
	for _, reg := range keptRegisters {
		got := c.compareRule(reg, known, row.Rule(reg), truth.Rule(reg))
		if got == "wrong" && to != &c.returns {
			c.t.Logf("%s at %v: %s is at %+v, not %+v", fn.name, pc, machine.AMD64.RegisterName(reg), row.Rule(reg), truth.Rule(reg))
		}
		to.registers.add(got)
	}
}

// compareRule compares a rule with CFI's. CFI may describe a save only when the register is about to change, and a restore some instructions late.
func (c *libComparison) compareRule(reg machine.DWARFReg, known *moment, got, truth cfi.RegisterRule) string {
	unchanged := known != nil && known.regs[reg] == initially(reg)
	saved := truth.Kind == cfi.RuleOffset
	switch {
	case got.Kind == cfi.RuleNone:
		return "unknown"
	case got.Kind == cfi.RuleOffset && saved && got.Offset == truth.Offset,
		got.Kind == cfi.RuleSameValue && (!saved || unchanged),
		got.Kind == cfi.RuleOffset && !saved && unchanged && known.rule(reg) == got:
		return "right"
	case got.Kind == cfi.RuleSameValue && known == nil, got.Kind != cfi.RuleSameValue && got.Kind != cfi.RuleOffset:
		return "not comparable"
	}
	return "wrong"
}
