package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/test/livetest"
)

// stepped is the state of a program between two instructions, as testdata/reading.py prints it.
type stepped struct {
	Frames []steppedFrame
	Stack  string // bytes of the stack in hexadecimal, from 128 bytes below the stack pointer
}

type steppedFrame struct {
	PC, Function string
	Registers    map[string]*string
}

// register returns the value that gdb reports for a register; false if gdb does not know it.
func (f *steppedFrame) register(t *testing.T, name string) (machine.Addr, bool) {
	t.Helper()
	text := f.Registers[name]
	if text == nil {
		return 0, false
	}
	v, err := strconv.ParseUint(*text, 0, 64)
	require.NoError(t, err)
	return machine.Addr(v), true
}

func (f *steppedFrame) pc(t *testing.T) machine.Addr {
	t.Helper()
	v, err := strconv.ParseUint(f.PC, 0, 64)
	require.NoError(t, err)
	return machine.Addr(v)
}

// readProgram is a program with its recorded steps.
type readProgram struct {
	path      string
	text      elfText
	functions []function
	table     *cfi.Table
	steps     []stepped
}

// steppedMemory is the memory of a program at one moment: its code and its stack.
type steppedMemory struct {
	text  elfText
	stack elfText
}

func (m steppedMemory) ReadMemory(p []byte, addr machine.Addr) error {
	if m.text.ReadMemory(p, addr) == nil {
		return nil
	}
	return m.stack.ReadMemory(p, addr)
}

// stepThrough compiles testdata/reading.c, and reading.ll if a version of llc is given, and runs it instruction by instruction.
func stepThrough(t *testing.T, llvm int, llcFlags, flags []string) *readProgram {
	t.Helper()
	dir := t.TempDir()
	p := &readProgram{path: filepath.Join(dir, "reading")}
	args := append([]string{"-no-pie", "-o", p.path, "testdata/reading.c"}, flags...)
	if llvm != 0 {
		object := filepath.Join(dir, "reading.o")
		if llvm == 14 {
			llcFlags = append([]string{"-opaque-pointers"}, llcFlags...)
		}
		livetest.Make(t, livetest.LLVM(t, llvm, "llc"), append(llcFlags, "-filetype=obj", "-o", object, "testdata/reading.ll")...)
		args = append(args, "-DLLVM", object)
	}
	run(t, livetest.Tool(t, "gcc"), args...)
	for line := range bytes.Lines(run(t, livetest.Tool(t, "gdb"), "-nx", "-batch", "-x", "testdata/reading.py", "--args", p.path)) {
		if bytes.HasPrefix(line, []byte("{")) {
			var s stepped
			require.NoError(t, json.Unmarshal(line, &s))
			p.steps = append(p.steps, s)
		}
	}
	file, err := elf.Open(p.path)
	require.NoError(t, err)
	defer file.Close()
	p.text, p.functions = textOf(t, file), functionsOf(t, file)
	p.table, err = cfi.NewTable(sectionsOf(t, p.path, 0))
	require.NoError(t, err)
	return p
}

// unknownBecause lists all reasons in the tested code for which reading gives no row, or no comparable row.
var unknownBecause = map[string]string{
	"no function":                         "in a part that the compiler split off a function, where no reading can begin",
	"no instruction at PC was reached":    "behind a jump table, or where only the exception handler jumps to",
	"no call that was reached ends at PC": "the same",
	"the CFA at PC is unknown from its code": "in a loop that touches page after page the stack pointer is another one each time; " +
		"where the code keeps no register for its end, nothing tells",
	anotherRegister: "only CFI may know",
	"the returns that it leads to do not agree where its frame ends: that at PC is one of them": "one is behind a call that does not come back",
	"it leads to no return":                                "a function that does not return, or ends in a jump to where a register says",
	"its calls lead to returns that are not of this frame": "the only ones are behind a call that does not come back",
	"the stack pointer at the return at PC is unknown":     "the way leads through a loop that moves the stack pointer, or behind a call that does not come back",
}

// wronglyRead lists functions for which reading to the returns gives a wrong row. Such a row is never marked as certain.
var wronglyRead = map[string]string{
	"finish": "it ends in a system call that does not come back, and without optimization nothing is behind that but the next function",
}

// TestEveryInstruction stops before every instruction of a program. It computes the caller of the innermost frame, and that caller's caller, in three
// ways: from the program's CFI, from the instructions of the function from its start, and from those up to its returns. The results must equal gdb's,
// which uses the CFI: the caller's pc, the CFA, and each register that a way claims to know.
func TestEveryInstruction(t *testing.T) {
	livetest.Slow(t)
	for _, build := range []struct {
		name              string
		llvm              int
		llc, flags        []string
		function, returns float64 // minimum share of frames that each method finds
		long              bool    // only for make fidelity
	}{
		{name: "gcc -O0", flags: []string{"-O0"}, function: .96, returns: .90},
		{long: true, name: "gcc -O1", flags: []string{"-O1"}, function: .95, returns: .85},
		{long: true, name: "gcc -O2", flags: []string{"-O2"}, function: .96, returns: .85},
		{long: true, name: "gcc -Os", flags: []string{"-Os"}, function: .96, returns: .85},
		{long: true, name: "gcc -O0 without frame pointers", flags: []string{"-O0", "-fomit-frame-pointer"}, function: .96, returns: .90},
		{long: true, name: "gcc -O2 with frame pointers", flags: []string{"-O2", "-fno-omit-frame-pointer"}, function: .96, returns: .85},
		{long: true, name: "gcc -O2 with probes", flags: []string{"-O2", "-fstack-clash-protection", "-fcf-protection=full"}, function: .93, returns: .84},
		{name: "gcc -O3 with AVX and canaries", flags: []string{"-O3", "-mavx2", "-fstack-protector-all"}, function: .95, returns: .88},
		{long: true, name: "llc 14", llvm: 14, flags: []string{"-O2"}, function: .97, returns: .86},
		{long: true, name: "llc 19", llvm: 19, flags: []string{"-O2"}, function: .97, returns: .86},
		{name: "llc 22", llvm: 22, flags: []string{"-O2"}, function: .97, returns: .86},
		{long: true, name: "llc 22 -O0", llvm: 22, llc: []string{"-O0"}, flags: []string{"-O2"}, function: .97, returns: .86},
		{long: true, name: "llc 22 with frame pointers", llvm: 22, llc: []string{"-frame-pointer=all"}, flags: []string{"-O2"}, function: .97, returns: .86},
	} {
		if build.long && !livetest.Whole() {
			continue
		}
		t.Run(build.name, func(t *testing.T) {
			p := stepThrough(t, build.llvm, build.llc, build.flags)
			require.Greater(t, len(p.steps), 700)
			c := comparison{readProgram: p, t: t, read: map[machine.Addr]*codeRows{}}
			for i := range p.steps {
				var before *stepped
				if i > 0 {
					before = &p.steps[i-1]
				}
				c.step(before, &p.steps[i])
			}
			require.Less(t, c.astray, 5)
			for _, way := range []struct {
				name  string
				least float64
				*counts
			}{
				{"CFI", 1, &c.cfi}, {"the function", build.function, &c.function},
				{"to its returns", build.returns, &c.returns}, {"to its returns, certain", 0, &c.certain},
			} {
				t.Logf("%-24s frames %v; registers %v; %v", way.name, &way.frames, &way.registers, way.frames.why)
				require.GreaterOrEqual(t, way.frames.share(), way.least)
				require.Zero(t, way.registers.wrong)
				for why := range way.frames.why {
					require.Contains(t, unknownBecause, why)
				}
				if way.counts != &c.returns {
					require.Zero(t, way.frames.wrong)
				}
			}
		})
	}
}

// comparison compares the methods of unwinding with gdb, and counts the results.
type comparison struct {
	*readProgram
	t                               *testing.T
	read                            map[machine.Addr]*codeRows
	cfi, function, returns, certain counts
	// astray counts the places where gdb is wrong: after the pop of rbp in a function whose stack gcc realigned, where its CFI still computes
	// registers from rbp.
	astray int
	popped bool
}

type counts struct{ frames, registers tally }

// step compares every method with gdb for the two innermost frames of s; before is the previous step, or nil.
func (c *comparison) step(before, s *stepped) {
	if before != nil {
		c.stepped(before, s)
	}
	for n := 0; n+1 < len(s.Frames); n++ {
		f := &s.Frames[n]
		lookup := f.pc(c.t)
		if n > 0 {
			lookup--
		}
		if c.text.ReadMemory(make([]byte, 1), lookup) != nil {
			continue // the C library
		}
		fde, err := c.table.Find(lookup)
		require.NoError(c.t, err)
		row, err := fde.Rules(lookup)
		require.NoError(c.t, err)
		if c.popped && row.Rule(rbp).Kind == cfi.RuleExpression {
			c.astray++
			return
		}
		c.ask(s, n, &c.cfi, step{row: row, rule: FromCFI}, nil)

		row, err = c.rows(lookup, f.pc(c.t), n > 0)
		c.ask(s, n, &c.function, step{row: row, rule: FromCode, partial: true}, err)

		row, certain, err := readToReturn(c.text, f.pc(c.t), n > 0)
		c.ask(s, n, &c.returns, step{row: row, rule: FromCode, partial: true}, err)
		if certain {
			c.ask(s, n, &c.certain, step{row: row, rule: FromCode, partial: true}, err)
		}
	}
}

// stepped checks that an instruction has changed only the registers that its decoding lists as written.
func (c *comparison) stepped(before, after *stepped) {
	inst, known, err := amd64.Read(c.text, before.Frames[0].pc(c.t))
	if err != nil {
		return // the C library
	}
	require.True(c.t, known, before.Frames[0].PC)
	// A hypervisor emulates CPUID, and some then lose the trap flag: such a step is two instructions.
	if next := before.Frames[0].pc(c.t) + machine.Addr(inst.Len); inst.Op == x86asm.CPUID && after.Frames[0].pc(c.t) != next {
		return
	}
	for reg := range machine.DWARFReg(16) {
		name := machine.AMD64.RegisterName(reg)
		old, _ := before.Frames[0].register(c.t, name)
		v, _ := after.Frames[0].register(c.t, name)
		require.True(c.t, v == old || amd64.Writes(inst).Has(reg), "%s: %v writes %s", before.Frames[0].PC, inst, name)
	}
	c.popped = c.popped && inst.Op != x86asm.RET || inst.Op == x86asm.LEAVE || inst.Op == x86asm.POP && inst.Args[0] == x86asm.Arg(x86asm.RBP)
}

// ask unwinds frame n of a step by one method, and compares the caller with gdb's.
func (c *comparison) ask(s *stepped, n int, to *counts, way step, unknown error) {
	if unknown != nil {
		to.frames.add(reason(unknown))
		return
	}
	f := &s.Frames[n]
	sp, _ := s.Frames[0].register(c.t, "rsp")
	stack, err := hex.DecodeString(s.Stack)
	require.NoError(c.t, err)
	w := newWalk(&Unwinder{
		Arch: machine.AMD64, Executable: func(machine.Addr) bool { return true },
		Memory: steppedMemory{c.text, elfText{sp - 128, stack}}, Finder: sameCode{&Code{}},
	})
	frame := &Frame{PC: f.pc(c.t), Registers: machine.NewRegisters(machine.AMD64, "gdb does not know it")}
	for reg := range machine.DWARFReg(16) {
		if v, ok := f.register(c.t, machine.AMD64.RegisterName(reg)); ok {
			frame.Registers.SetUint(reg, uint64(v))
		}
	}
	got, end, err := w.apply(frame, &way)
	require.Nil(c.t, end, "%s at %s", f.Function, f.PC)
	require.NoError(c.t, err, "%s at %s", f.Function, f.PC)
	to.frames.add(c.compare(f, &s.Frames[n+1], frame, got, to))
}

// compare compares a caller with gdb's.
func (c *comparison) compare(f, want *steppedFrame, frame *Frame, got caller, to *counts) string {
	cfa, ok := want.register(c.t, "rsp")
	require.True(c.t, ok)
	if frame.CFA != cfa || got.pc != want.pc(c.t) {
		require.Contains(c.t, wronglyRead, f.Function, "at %s: CFA %v pc %v, not %v %s", f.PC, frame.CFA, got.pc, cfa, want.PC)
		return "wrong"
	}
	for _, reg := range keptRegisters {
		name := machine.AMD64.RegisterName(reg)
		known, ok := want.register(c.t, name)
		v, err := got.regs.Addr(reg)
		switch {
		case !ok:
		case err != nil:
			to.registers.add("unknown")
		case v != known:
			to.registers.add("wrong")
			c.t.Errorf("%s at %s: %s is %v, not %v", f.Function, f.PC, name, v, known)
		default:
			to.registers.add("right")
		}
	}
	return "right"
}

// rows returns the row from the instructions of the function at an address.
func (c *comparison) rows(lookup, pc machine.Addr, ret bool) (*cfi.Row, error) {
	fn := c.functionAt(lookup)
	if fn == nil {
		return nil, fmt.Errorf("no function")
	}
	rows := c.read[fn.start]
	if rows == nil {
		var err error
		rows, err = readFunction(c.text, fn.start, fn.end)
		require.NoError(c.t, err)
		c.read[fn.start] = rows
	}
	return rows.row(pc, ret)
}

func (p *readProgram) functionAt(pc machine.Addr) *function {
	for i := range p.functions {
		if f := &p.functions[i]; pc >= f.start && pc < f.end {
			return f
		}
	}
	return nil
}

var addresses = regexp.MustCompile(`0x[0-9a-f]+`)

// reason returns the reason for an unknown row, without addresses.
func reason(err error) string { return addresses.ReplaceAllString(err.Error(), "PC") }
