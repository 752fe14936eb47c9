package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/machine/names"
)

// command is a command and its help.
type command struct {
	names   []string // the first is its name, the others are aliases known from gdb and dlv
	group   string
	usage   string // arguments after the name
	about   string
	do      func(p *Prompt, ctx context.Context, args string) error
	repeats bool // an empty line repeats the command
	// complete lists candidates for the next word, given the typed words after the name.
	complete func(p *Prompt, typed []string) []string
}

func (c *command) name() string { return c.names[0] }

// The groups of commands, in the order of help.
const (
	running    = "running the process"
	stopping   = "breakpoints"
	reversing  = "going back in the process, where its stub supports it"
	looking    = "frames, values and memory"
	stepping   = "the interpreter, from the exit on"
	comparing  = "comparing native code with the interpreter"
	keeping    = "keeping results"
	supporting = "help and quit"
)

var groups = []string{running, reversing, stopping, looking, stepping, comparing, keeping, supporting}

// commands lists all commands, in the order of help. It is a function, because a variable would depend on itself: help is one of the commands, and
// calls it.
func commands() []*command {
	return []*command{
		{names: []string{"continue", "c"}, group: running, about: "resume the process to the next breakpoint, or to its end. Ctrl-C stops it. The run of the interpreter since the exit is discarded", do: (*Prompt).goOn, repeats: true},
		{names: []string{"kill", "k"}, group: running, about: "end the process", do: (*Prompt).kill},
		{names: []string{"detach"}, group: running, about: "detach from the process, and end the session", do: (*Prompt).detach},

		{names: []string{"reverse-continue", "rc"}, group: reversing, about: "run the process backwards to the last exit with a breakpoint, or to the start of the recording. Ctrl-C stops it. The stub must support reverse execution (--remote): rr and QEMU with icount replay do", do: (*Prompt).reverseContinue, repeats: true},
		{names: []string{"reverse-stepi", "rsi"}, group: reversing, usage: "[N]", about: "go back by one machine instruction, or by N", do: (*Prompt).reverseStep, repeats: true},
		{names: []string{"reverse-entry"}, group: reversing, about: "go back to the entry of the frame's activation, before its first instruction. Other activations of the function, as in a recursion, do not count", do: (*Prompt).reverseEntry},
		{names: []string{"reverse-write"}, group: reversing, usage: "SLOT", about: "go back to before the last instruction that wrote a value of the frame, or to the entry of the activation if none did. A value in memory is watched; if the value is the address of a variable, the variable is watched. For a register, single steps find the last instruction or call of the function that changed it: a write of the same value is not found. Ctrl-C stops it", do: (*Prompt).reverseWrite, complete: (*Prompt).completeSlots},

		{names: []string{"break", "b"}, group: stopping, usage: "[RECORD | KIND | [function] NAME | at SYMBOL]... [if COND]", about: "stop at exits: of a record by its id, of a kind of site (stackmap, patchpoint, statepoint, deoptimize), of a function by its name or a regular expression, at calls of a symbol; without arguments, at each exit. An exit must match all arguments. COND compares values of the exit: if %i > 100 && local[2] == 3 (reframe help conditions)", do: (*Prompt).breakAt, complete: (*Prompt).completeBreak},
		{names: []string{"tbreak", "tb"}, group: stopping, usage: "...", about: "set a breakpoint that is deleted after its first hit", do: (*Prompt).breakOnce, complete: (*Prompt).completeBreak},
		{names: []string{"breakpoints", "bl"}, group: stopping, about: "list the breakpoints", do: (*Prompt).listBreakpoints},
		{names: []string{"delete", "d"}, group: stopping, usage: "[N]...", about: "delete breakpoints; without a number, all", do: (*Prompt).deleteBreakpoints},
		{names: []string{"disable"}, group: stopping, usage: "N...", about: "disable breakpoints", do: (*Prompt).disable},
		{names: []string{"enable"}, group: stopping, usage: "N...", about: "enable breakpoints", do: (*Prompt).enable},
		{names: []string{"exits"}, group: stopping, usage: "[NAME]", about: "list the places in the present code that have exits, optionally only in functions of that name", do: (*Prompt).exits, complete: (*Prompt).completeFunctions},

		{names: []string{"bt", "backtrace", "where"}, group: looking, about: "print the backtrace: physical frames with the virtual machine's frames below them. During a run of the interpreter, its functions replace the frame", do: (*Prompt).backtrace},
		{names: []string{"frame", "f"}, group: looking, usage: "[N]", about: "select a frame of the backtrace", do: (*Prompt).frame},
		{names: []string{"up"}, group: looking, usage: "[N]", about: "select the caller", do: (*Prompt).up, repeats: true},
		{names: []string{"down"}, group: looking, usage: "[N]", about: "select the callee", do: (*Prompt).down, repeats: true},
		{names: []string{"threads"}, group: looking, about: "list the threads of the process", do: (*Prompt).threads},
		{names: []string{"thread", "t"}, group: looking, usage: "TID", about: "select a thread", do: (*Prompt).thread},
		{names: []string{"locals"}, group: looking, about: "print the values of the frame", do: (*Prompt).locals},
		{names: []string{"print", "p"}, group: looking, usage: "[/x] EXPR", about: "evaluate an expression with the frame's values: %acc + 1, local[2], object[4].x, $rsp, %i > 3 && %p == 0", do: (*Prompt).print, complete: (*Prompt).completeSlots},
		{names: []string{"x"}, group: looking, usage: "/[N][FORMAT][SIZE] EXPR", about: "print memory at an address: x/8gx $rsp. FORMAT is x, d, u, o, c, a or s (a string); SIZE is b, h, w or g: 1, 2, 4 or 8 bytes. During a run of the interpreter, this is the memory of the run", do: (*Prompt).memory, complete: (*Prompt).completeSlots},
		{names: []string{"list", "l"}, group: looking, about: "print the IR around the present place, with the known values beside it. For a virtual machine's interpreter, print its instruction, if it reports it", do: (*Prompt).list, repeats: true},
		{names: []string{"disassemble", "disas"}, group: looking, usage: "[EXPR]", about: "print the machine instructions around the frame's pc, or around an address", do: (*Prompt).disassemble},
		{names: []string{"registers"}, group: looking, about: "print the registers as the frame's function sees them", do: (*Prompt).registers},
		{names: []string{"info", "i"}, group: looking, usage: "breakpoints | registers | threads | locals | frame | exits", about: "run the command of that name, as in gdb", do: (*Prompt).info, complete: completeInfo},
		{names: []string{"explain"}, group: looking, usage: "[SLOT]", about: "explain how the frame was rebuilt, or how one value was read", do: (*Prompt).explain, complete: (*Prompt).completeSlots},

		{names: []string{"step", "s"}, group: stepping, usage: "[-b | N]", about: "run one instruction of the IR in the interpreter, or N, and enter called functions. The process stays stopped. With --with the virtual machine's own interpreter runs one of its instructions. -b also runs native code: see both", do: (*Prompt).step, repeats: true},
		{names: []string{"next", "n"}, group: stepping, usage: "[N]", about: "like step, but over calls", do: (*Prompt).next, repeats: true},
		{names: []string{"finish", "fin"}, group: stepping, about: "run the interpreter until the function returns", do: (*Prompt).finish},
		{names: []string{"until", "u"}, group: stepping, usage: "BLOCK | POSITION | METHOD @ POSITION | CONDITION", about: "run the interpreter to the start of a block of the function; with --with, to a position, or to where a condition holds", do: (*Prompt).until, repeats: true, complete: (*Prompt).completeBlocks},
		{names: []string{"resume"}, group: stepping, about: "run the interpreter to the end", do: (*Prompt).resume},
		{names: []string{"back", "reverse-step", "rs"}, group: stepping, usage: "[N]", about: "go back by one instruction, or by N", do: (*Prompt).back, repeats: true},
		{names: []string{"restart"}, group: stepping, about: "go back to the exit", do: (*Prompt).restart},
		{names: []string{"leave"}, group: stepping, about: "discard the run of the interpreter, and return to the physical frames", do: (*Prompt).leaveRun},
		{names: []string{"output"}, group: stepping, about: "print the output of the interpreted program since the exit", do: (*Prompt).output},
		{names: []string{"set"}, group: stepping, usage: "SLOT VALUE", about: "set a value of the exit for the interpreter; the process does not change. The run restarts", do: (*Prompt).set, complete: (*Prompt).completeSlots},
		{names: []string{"result"}, group: stepping, usage: "VALUE", about: "set the result of the call that the frame waits for. The run restarts", do: (*Prompt).result},

		{names: []string{"both"}, group: comparing, usage: "[N]", about: "run native code and the interpreter, both to the next record with values in this activation, or to its return, and print their values side by side; repeat N times or until they differ. All other threads stay stopped. step -b is the same", do: (*Prompt).both, repeats: true},
		{names: []string{"diff"}, group: comparing, about: "print only the values that differ", do: (*Prompt).diff},
		{names: []string{"bisect"}, group: comparing, about: "run both until they differ or return, and name the first instruction of the IR whose value differs in native code", do: (*Prompt).bisect},

		{names: []string{"record"}, group: keeping, usage: "FILE", about: "write a core of the present state", do: (*Prompt).record},
		{names: []string{"script"}, group: keeping, usage: "FILE.txtar", about: "write a replay script, a test, for the recorded core, with the values that were set", do: (*Prompt).script},
		{names: []string{"commit"}, group: keeping, about: "run the interpreter to the return, and write its result into the process: the thread continues in the caller", do: (*Prompt).commit},

		{names: []string{"help", "h"}, group: supporting, usage: "[COMMAND]", about: "list the commands, or explain one", do: (*Prompt).help, complete: completeCommands},
		{names: []string{"quit", "q", "exit"}, group: supporting, about: "end the session. A process that it started is killed, another one continues", do: (*Prompt).quit},
	}
}

// find returns a command by its name, or by an unambiguous prefix of its name.
func find(word string) (*command, error) {
	all := commands()
	for _, c := range all {
		if slices.Contains(c.names, word) {
			return c, nil
		}
	}
	var fit []*command
	var known []string
	for _, c := range all {
		if slices.ContainsFunc(c.names, func(name string) bool { return strings.HasPrefix(name, word) }) {
			fit = append(fit, c)
		}
		known = append(known, c.name())
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		var which []string
		for _, c := range fit {
			which = append(which, c.name())
		}
		return nil, fmt.Errorf("%q may be %s", word, strings.Join(which, ", "))
	}
	text := fmt.Sprintf("unknown command %q; help lists the commands", word)
	if list := names.ByDistance(word, known); len(list) > 0 && names.Distance(word, list[0]) <= 2 {
		text = fmt.Sprintf("unknown command %q; did you mean %s?", word, list[0])
	}
	return nil, fmt.Errorf("%s", text)
}

// help implements the help command.
func (p *Prompt) help(_ context.Context, args string) error {
	if args != "" {
		c, err := find(args)
		if err != nil {
			return err
		}
		p.printf("%s\n", strings.TrimRight(p.Printer.Bold(c.name())+" "+c.usage, " "))
		if len(c.names) > 1 {
			p.printf("  also %s\n", strings.Join(c.names[1:], ", "))
		}
		p.printf("  %s\n", c.about)
		return nil
	}
	for _, group := range groups {
		shown := false
		for _, c := range commands() {
			if c.group != group {
				continue
			}
			if !shown {
				shown = true
				p.printf("%s\n", p.Printer.Bold(group))
			}
			head, _, _ := strings.Cut(c.about, ". ")
			head, _, _ = strings.Cut(head, ": ")
			name := c.name()
			if len(c.names) > 1 {
				name += ", " + c.names[1]
			}
			p.printf("  %-20s %s\n", name, head)
		}
	}
	p.printf("help COMMAND explains a command. An unambiguous prefix of a name is enough; an empty line repeats the last step.\n")
	return nil
}

// completeInfo lists the arguments of info.
func completeInfo(*Prompt, []string) []string {
	return []string{"breakpoints", "registers", "threads", "locals", "frame", "exits"}
}

// info implements the info command.
func (p *Prompt) info(ctx context.Context, args string) error {
	word, rest, _ := strings.Cut(args, " ")
	for _, name := range completeInfo(p, nil) {
		if word != "" && strings.HasPrefix(name, word) {
			c, err := find(name)
			if err != nil {
				return err
			}
			return c.do(p, ctx, strings.TrimSpace(rest))
		}
	}
	return wrong("")
}

// quit implements the quit command.
func (p *Prompt) quit(context.Context, string) error {
	p.over = true
	return nil
}

// kill implements the kill command.
func (p *Prompt) kill(context.Context, string) error {
	if p.Leave == nil {
		return fmt.Errorf("%s does not run", p.Session.Still())
	}
	p.over, p.left = true, true
	if err := p.Leave(true); err != nil {
		return err
	}
	p.printf("killed\n")
	return nil
}

// detach implements the detach command.
func (p *Prompt) detach(context.Context, string) error {
	if p.Leave == nil {
		return fmt.Errorf("%s does not run", p.Session.Still())
	}
	p.over, p.left = true, true
	if err := p.Leave(false); err != nil {
		return err
	}
	p.printf("it continues by itself\n")
	return nil
}

// completeCommands lists the names of the commands.
func completeCommands(*Prompt, []string) (names []string) {
	for _, c := range commands() {
		names = append(names, c.name())
	}
	return names
}
