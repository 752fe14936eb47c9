package deopt_test

import (
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
)

// disagreements lists the disagreements with gdb that were examined. An entry applies to programs whose name starts with program, if its evidence is
// present; it concerns frames or registers.
var disagreements = []struct {
	program  string
	why      string
	frames   func(gap) bool
	register func(registerGap) bool
}{
	{
		program: "node",
		why: "V8's code has no CFI. gdb finds no frame in a function whose start does not push rbp and copy rsp to it, and none in " +
			"code without a symbol: it takes the word at the stack pointer for the return address. Here the frame pointer leads on, to the outermost frame.",
		frames: func(g gap) bool { return gdbTookTheTop(g) && g.end.Complete },
	},
	{
		program: "java",
		why: "HotSpot's code has neither CFI nor symbols: gdb takes the word at the stack pointer for the return address. Here the code " +
			"and the frame pointer lead on: through all interpreted methods (TestJavaStacks); where compiled ones are left out, a frame says that they may be.",
		frames: func(g gap) bool { return gdbTookTheTop(g) && (g.end.Complete || g.guessed()) },
	},
	{
		program: "go",
		why:     "A goroutine's first function, and mcall, return to address 0. gdb shows that as a frame.",
		frames: func(g gap) bool {
			return g.ours == nil && g.end.Complete && g.missing == 1 && g.theirs.PC == 0
		},
	},
	{
		program: "go",
		why: "A thread begins in runtime.clone, which nobody called; its CFI says that it has a return address all the same. What is there is no code: gdb shows " +
			"two frames of it.",
		frames: func(g gap) bool {
			last := g.stackPair.ours[len(g.stackPair.ours)-1]
			return g.ours == nil && strings.HasPrefix(last.Function, "runtime.clone") && !g.view.Space().Executable(g.theirs.PC)
		},
	},
	{
		program: "go",
		why: "A thread that is being preempted is in a signal handler. The trampoline below that, runtime.sigreturn__sigaction, has CFI as if it had been called: " +
			"gdb follows it. Here its instructions say what it is.",
		frames: func(g gap) bool {
			return g.ours != nil && g.theirs != nil && g.ours.Signal && g.ours.PC == g.theirs.PC && g.theirs.Function == "runtime.sigreturn__sigaction" && g.end.Complete
		},
	},
	{
		program: "go",
		why: "runtime.mcall has left the stack of a goroutine, and runs the scheduler on the thread's own stack, which begins with mstart. gdb takes the word above for a " +
			"return address of 0.",
		frames: func(g gap) bool {
			if g.ours == nil || g.theirs == nil || g.theirs.PC != 0 || g.missing != 1 || !g.end.Complete {
				return false
			}
			after := slices.IndexFunc(g.stackPair.ours, func(f *deopt.Frame) bool { return strings.HasPrefix(f.Function, "runtime.mcall") }) + 1
			return after > 0 && !slices.ContainsFunc(g.stackPair.ours[after:], func(f *deopt.Frame) bool {
				return !strings.HasPrefix(f.Function, "runtime.mstart") && !strings.HasPrefix(f.Function, "runtime.rt0_go") && !strings.HasPrefix(f.Function, "runtime.clone")
			})
		},
	},
	{
		program: "go without debug information",
		why: "runtime.mcall changes to the stack of the scheduler in the middle and never returns. Its CFI knows nothing of the change, nor does its code say " +
			"what is above: the caller is on the other stack.",
		frames: func(g gap) bool {
			last := g.stackPair.ours[len(g.stackPair.ours)-1]
			return strings.HasPrefix(last.Function, "runtime.mcall") && g.theirs != nil && (g.ours == nil && g.theirs.PC == 0 || g.ours != nil && g.ours.PC == g.theirs.PC)
		},
	},
	{
		program: "go",
		why: "Go's .debug_frame has no rules but those of the CFA and the return address (cmd/link, writeframes), so that gdb shows in every frame " +
			"the rbp that the innermost one has. Each function has pushed it.",
		register: func(r registerGap) bool { return r.name == "rbp" && r.stale() },
	},
}

// gdbTookTheTop reports whether the gap begins at a frame without CFI for which gdb assumes that the return address is on top of the stack.
func gdbTookTheTop(g gap) bool {
	return g.ours != nil && g.theirs != nil && g.ours.PC == g.theirs.PC && g.ours.FDE.Start == 0 &&
		g.theirs.CFA == g.theirs.RSP+machine.Addr(machine.AMD64.Pointer)
}

// guessed reports whether a frame after the first of the gap is marked as uncertain.
func (g gap) guessed() bool {
	for _, f := range g.stackPair.ours[g.ours.Index:] {
		if f.Physical().Guess != "" {
			return true
		}
	}
	return false
}

// stale reports whether gdb shows the register with the value that it has in the callee's frame.
func (r registerGap) stale() bool {
	w, ok := r.stackPair.theirs.frames[r.theirs].Registers[r.name]
	return ok && r.theirs > 0 && w == r.stackPair.theirs.frames[r.theirs-1].Registers[r.name]
}

// explained returns the reason why a gap differs, or "".
func (g gap) explained(program string) string {
	for _, d := range disagreements {
		if strings.HasPrefix(program, d.program) && d.frames != nil && d.frames(g) {
			return d.why
		}
	}
	return ""
}

// explained returns the reason why a register differs, or "".
func (r registerGap) explained(program string) string {
	for _, d := range disagreements {
		if strings.HasPrefix(program, d.program) && d.register != nil && d.register(r) {
			return d.why
		}
	}
	return ""
}
