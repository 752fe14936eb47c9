package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/base/near"
)

// command is a command and its help.
type command struct {
	names   []string // the first is its name, the others are aliases known from gdb and dlv
	group   string
	usage   string // arguments after the name
	about   string
	do      func(p *Prompt, ctx context.Context, args string) error
	repeats bool // an empty line repeats it
	// complete lists candidates for the next word, given the typed words after the name.
	complete func(p *Prompt, typed []string) []string
}

func (c *command) name() string { return c.names[0] }

// The groups of commands, in the order of help.
const (
	running    = "running the process"
	stopping   = "where it stops"
	looking    = "looking around"
	stepping   = "the interpreter, from the exit on"
	comparing  = "native code beside the interpreter"
	keeping    = "keeping what was found"
	supporting = "help and the end"
)

var groups = []string{running, stopping, looking, stepping, comparing, keeping, supporting}

// commands lists all commands, in the order of help. It is a function because help calls it.
func commands() []*command {
	return []*command{
		{names: []string{"continue", "c"}, group: running, about: "let the process go on to the next breakpoint, or to its end. Ctrl-C stops it where it is. What the interpreter did since the exit is given up", do: (*Prompt).goOn, repeats: true},
		{names: []string{"kill", "k"}, group: running, about: "end the process", do: (*Prompt).kill},
		{names: []string{"detach"}, group: running, about: "let the process go, and end the session", do: (*Prompt).detach},

		{names: []string{"break", "b"}, group: stopping, usage: "[RECORD | KIND | [function] NAME | at SYMBOL]... [if COND]", about: "stop at exits: of a record by its id, of a kind of site (stackmap, patchpoint, statepoint, deoptimize), of a function by its name or a regular expression, at calls of a symbol; without any, at each exit. What is named must all fit. COND is about the exit's values: if %i > 100 && local[2] == 3 (reframe help conditions)", do: (*Prompt).breakAt, complete: (*Prompt).completeBreak},
		{names: []string{"tbreak", "tb"}, group: stopping, usage: "...", about: "the same, once", do: (*Prompt).breakOnce, complete: (*Prompt).completeBreak},
		{names: []string{"breakpoints", "bl"}, group: stopping, about: "the breakpoints that are set", do: (*Prompt).listBreakpoints},
		{names: []string{"delete", "d"}, group: stopping, usage: "[N]...", about: "take breakpoints away; without a number, all", do: (*Prompt).deleteBreakpoints},
		{names: []string{"disable"}, group: stopping, usage: "N...", about: "have breakpoints stop nothing", do: (*Prompt).disable},
		{names: []string{"enable"}, group: stopping, usage: "N...", about: "have them stop it again", do: (*Prompt).enable},
		{names: []string{"exits"}, group: stopping, usage: "[NAME]", about: "the places in the code, as it is now, at which exits can be seen; of functions of that name alone", do: (*Prompt).exits, complete: (*Prompt).completeFunctions},

		{names: []string{"bt", "backtrace", "where"}, group: looking, about: "the backtrace: physical frames with the virtual machine's frames below them; where the interpreter goes on, its functions in their place", do: (*Prompt).backtrace},
		{names: []string{"frame", "f"}, group: looking, usage: "[N]", about: "look at a frame of the backtrace", do: (*Prompt).frame},
		{names: []string{"up"}, group: looking, usage: "[N]", about: "look at the caller", do: (*Prompt).up, repeats: true},
		{names: []string{"down"}, group: looking, usage: "[N]", about: "look at what it has called", do: (*Prompt).down, repeats: true},
		{names: []string{"threads"}, group: looking, about: "the threads of the process", do: (*Prompt).threads},
		{names: []string{"thread", "t"}, group: looking, usage: "TID", about: "look at another thread", do: (*Prompt).thread},
		{names: []string{"locals"}, group: looking, about: "the values of the frame", do: (*Prompt).locals},
		{names: []string{"print", "p"}, group: looking, usage: "[/x] EXPR", about: "work out an expression of the frame's values: %acc + 1, local[2], object[4].x, $rsp, %i > 3 && %p == 0", do: (*Prompt).print, complete: (*Prompt).completeSlots},
		{names: []string{"x"}, group: looking, usage: "/[N][FORMAT][SIZE] EXPR", about: "memory at an address: x/8gx $rsp. FORMAT is x, d, u, o, c, a or s (a string); SIZE is b, h, w or g: 1, 2, 4 or 8 bytes. Where the interpreter goes on it is memory as that has it", do: (*Prompt).memory, complete: (*Prompt).completeSlots},
		{names: []string{"list", "l"}, group: looking, about: "the IR around the place, with the values that are known beside it. Where a virtual machine's interpreter stands: its instruction there, as far as it says", do: (*Prompt).list, repeats: true},
		{names: []string{"disassemble", "disas"}, group: looking, usage: "[EXPR]", about: "the instructions around the frame's place, or around an address", do: (*Prompt).disassemble},
		{names: []string{"registers"}, group: looking, about: "the registers as the frame's function sees them", do: (*Prompt).registers},
		{names: []string{"info", "i"}, group: looking, usage: "breakpoints | registers | threads | locals | frame | exits", about: "the same as these commands, for who is used to gdb", do: (*Prompt).info, complete: completeInfo},
		{names: []string{"explain"}, group: looking, usage: "[SLOT]", about: "how the frame came to be, or how one value was read", do: (*Prompt).explain, complete: (*Prompt).completeSlots},

		{names: []string{"step", "s"}, group: stepping, usage: "[-b | N]", about: "have the interpreter run an instruction of the IR, or N, into functions that are called. The process stands. With --with it is the virtual machine's own interpreter that runs, by its instructions. -b has native code go on too: see both", do: (*Prompt).step, repeats: true},
		{names: []string{"next", "n"}, group: stepping, usage: "[N]", about: "the same, over calls", do: (*Prompt).next, repeats: true},
		{names: []string{"finish", "fin"}, group: stepping, about: "to where the function has returned", do: (*Prompt).finish},
		{names: []string{"until", "u"}, group: stepping, usage: "BLOCK", about: "to the beginning of a block of the function", do: (*Prompt).until, repeats: true, complete: (*Prompt).completeBlocks},
		{names: []string{"resume"}, group: stepping, about: "to the end", do: (*Prompt).resume},
		{names: []string{"back", "reverse-step", "rs"}, group: stepping, usage: "[N]", about: "back by an instruction, or by N", do: (*Prompt).back, repeats: true},
		{names: []string{"restart"}, group: stepping, about: "back to the exit", do: (*Prompt).restart},
		{names: []string{"leave"}, group: stepping, about: "give up what the interpreter did, and look at the physical frames again", do: (*Prompt).leaveRun},
		{names: []string{"output"}, group: stepping, about: "what the program would have printed since the exit", do: (*Prompt).output},
		{names: []string{"set"}, group: stepping, usage: "SLOT VALUE", about: "give a value of the exit another one for what the interpreter makes of it; the process stays as it is. The run begins anew", do: (*Prompt).set, complete: (*Prompt).completeSlots},
		{names: []string{"result"}, group: stepping, usage: "VALUE", about: "say what the call returns for which the frame waits. The run begins anew", do: (*Prompt).result},

		{names: []string{"both"}, group: comparing, usage: "[N]", about: "have native code and the interpreter go on, each to the next record of this activation that shows values, or to its return, N times or until they differ, and show both side by side. All other threads stand. step -b is the same", do: (*Prompt).both, repeats: true},
		{names: []string{"diff"}, group: comparing, about: "what of that differs", do: (*Prompt).diff},
		{names: []string{"bisect"}, group: comparing, about: "have both go on until they differ or return, and name the first instruction of the IR whose value native code does not have", do: (*Prompt).bisect},

		{names: []string{"record"}, group: keeping, usage: "FILE", about: "keep this moment as a core", do: (*Prompt).record},
		{names: []string{"script"}, group: keeping, usage: "FILE.txtar", about: "write a replay script for the moment that was recorded, with the values that were set: a test", do: (*Prompt).script},
		{names: []string{"commit"}, group: keeping, about: "have the interpreter go on to the return, and make the process what that came to: the thread goes on in the caller", do: (*Prompt).commit},

		{names: []string{"help", "h"}, group: supporting, usage: "[COMMAND]", about: "what there is to be said, or what a command does", do: (*Prompt).help, complete: completeCommands},
		{names: []string{"quit", "q", "exit"}, group: supporting, about: "end the session. A process that it has started is killed, another one goes on", do: (*Prompt).quit},
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
	var names []string
	for _, c := range all {
		if slices.ContainsFunc(c.names, func(name string) bool { return strings.HasPrefix(name, word) }) {
			fit = append(fit, c)
		}
		names = append(names, c.name())
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
	text := fmt.Sprintf("there is no command %q; help lists them", word)
	if list := near.Sorted(word, names); len(list) > 0 && near.Distance(word, list[0]) <= 2 {
		text = fmt.Sprintf("there is no command %q; did you mean %s?", word, list[0])
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
			p.printf("  %-18s %s\n", name, head)
		}
	}
	p.printf("help COMMAND says more. A beginning that is no other command's is enough; an empty line repeats the last step.\n")
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
		return fmt.Errorf("a core does not run")
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
		return fmt.Errorf("a core does not run")
	}
	p.over, p.left = true, true
	if err := p.Leave(false); err != nil {
		return err
	}
	p.printf("it goes on by itself\n")
	return nil
}

// completeCommands lists the names of the commands.
func completeCommands(*Prompt, []string) (names []string) {
	for _, c := range commands() {
		names = append(names, c.name())
	}
	return names
}
