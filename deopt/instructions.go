package deopt

import (
	"golang.org/x/arch/x86/x86asm"

	"reframe/deopt/a64"
	"reframe/deopt/isa"
	"reframe/deopt/machine"
	"reframe/deopt/x86"
)

// instructions is what is asked of the code of one architecture. Each function takes bytes that start with an instruction, as many as
// the longest has if there are so many.
type instructions struct {
	longest int                   // bytes
	length  func(code []byte) int // 0 where it is not known
	isCall  func(code []byte) bool
	// jump is where an instruction leads that is a jump, no call, and holds its target.
	jump func(code []byte, at machine.Addr) (to machine.Addr, ok bool)
	// callFrom says whether a call ends at pc, by the instructions from start on, where one starts.
	callFrom func(m machine.Memory, start, pc machine.Addr) bool
	// patchpointCall is the length of the call that LLVM puts at the start of a patchpoint's region; 0 where there is another code.
	patchpointCall func(code []byte) int
	// text spells it as the GNU assembler does; nil where nothing here can.
	text func(code []byte, at machine.Addr, symbol func(machine.Addr) string) (string, int)
}

// instructionsOf are those of the architectures whose code is read; of others nothing is known of what their code does.
var instructionsOf = map[*machine.Arch]*instructions{
	machine.AMD64:   {x86.Longest, x86.Length, amd64IsCall, amd64Jump, x86.CallFrom, amd64PatchpointCall, x86.Text},
	machine.ARM64:   {a64.Size, a64.Length, a64.IsCall, a64.Jump, a64.CallFrom, arm64PatchpointCall, a64.Text},
	machine.PPC64:   byTables(machine.PPC64),
	machine.PPC64LE: byTables(machine.PPC64LE),
	machine.RISCV64: byTables(machine.RISCV64),
	machine.S390X:   byTables(machine.S390X),
}

func byTables(arch *machine.Arch) *instructions {
	set := isa.Of(arch)
	return &instructions{set.Longest, set.Length, set.IsCall, set.Jump, set.CallFrom, set.PatchpointCall, nil}
}

// longestPatchpointCall is as many bytes as any has.
const longestPatchpointCall = isa.LongestPatchpointCall

func amd64IsCall(code []byte) bool {
	inst, known := x86.Decode(code)
	return known && x86.IsCall(inst)
}

func amd64Jump(code []byte, at machine.Addr) (to machine.Addr, ok bool) {
	inst, _ := x86.Decode(code)
	by, ok := inst.Args[0].(x86asm.Rel)
	return at + machine.Addr(inst.Len) + machine.Addr(int64(by)), ok && inst.Op != x86asm.CALL
}

// amd64PatchpointCall knows movabs $target,%r11 and call *%r11.
func amd64PatchpointCall(code []byte) int {
	const movabs, call = 10, 3
	mov, known := x86.Decode(code)
	if !known || mov.Op != x86asm.MOV || mov.Len != movabs || mov.Args[0] != x86asm.Arg(x86asm.R11) {
		return 0
	}
	jump, known := x86.Decode(code[movabs:]) // which there is: mov has that length
	if !known || jump.Op != x86asm.CALL || jump.Len != call || jump.Args[0] != x86asm.Arg(x86asm.R11) {
		return 0
	}
	return movabs + call
}

// arm64PatchpointCall knows movz and two movk of x16, and blr x16 (AArch64AsmPrinter::LowerPATCHPOINT).
func arm64PatchpointCall(code []byte) int {
	const n = 4 * a64.Size
	if len(code) < n || !a64.SetsWord(code, 16, 32, false) || !a64.SetsWord(code[a64.Size:], 16, 16, true) ||
		!a64.SetsWord(code[2*a64.Size:], 16, 0, true) || !a64.CallThrough(code[3*a64.Size:], 16) {
		return 0
	}
	return n
}
