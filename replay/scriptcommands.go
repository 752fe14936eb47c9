package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"
)

// call is one use of a command in a script.
type call struct {
	*run
	ts   *testscript.TestScript
	name string
	args []string
}

// scriptCommand is a command and its help.
type scriptCommand struct {
	name  string
	usage string // arguments after the name
	about string
	do    func(c *call) error
	asks  bool // it checks earlier commands, and keeps their stdout and stderr
}

// scriptCommands lists the commands of scripts besides testscript's own, in the order of the help. It is a function because the commands call it for
// their usage.
func scriptCommands() []scriptCommand {
	return []scriptCommand{
		{"launch", "[--ir FILE]... [--layout FILE]... [--stdin FILE] [--] COMMAND [ARG...]",
			"start a program under control, in the current folder: it stands before its first\ninstruction", (*call).launch, false},
		{"until", "{RECORD [--function RE] | --at SYMBOL} [--stop-at COND] [--hit N]",
			"let the program run until it comes to a site of the record for the N-th time from here,\nor to a call of the symbol; in code too that its JIT has yet to make. Of --stop-at only\nexits count that fulfil the condition (reframe help conditions). `! until` wants it to\nend before", (*call).until, false},
		{"continue", "", "let the program run to its end. What it printed is stdout and stderr then, and\n$WORK/program.stdout and $WORK/program.stderr", (*call).goOn, false},
		{"record", "FILE [--memory minimal|writable|all] [--compress]", "keep the program, where it stands, as a core", (*call).record, false},
		{"core", "FILE [--exe FILE] [--sysroot DIR] [--ir FILE]... [--layout FILE]...",
			"look at a core", (*call).core, false},
		{"frames", "[-t TID] [-f N] [--function NAME] [--stable | --json]",
			"print the frames as `reframe frames` does. --stable leaves out what differs from run to\nrun: frames of native code, the numbers of processes and threads, addresses. It fails\nwhere none of the frames stands at a recorded site", (*call).frames, false},
		{"frame", "N | FUNCTION [-t TID]",
			"choose the frame that expect, set and resume are about. Without it that is the innermost\none with a record, of the thread that came to the place, or else of the first that has one", (*call).choose, false},
		{"expect", "SLOT = VALUE | SLOT hex BITS | SLOT type TYPE | SLOT at LOCATION | SLOT undef |\n       SLOT guess | SLOT unavailable [RE] | SLOT object ID | SLOT dead | record ID | site KIND |\n       moment MOMENT | function NAME | resume FUNCTION [BLOCK] | method NAME | position N",
			"say what the frame must hold. SLOT is as frames prints it: %i, loc0, '#0'. VALUE is read\nin the slot's type: 25 is 0x19. LOCATION is what frames prints in brackets; its kind may\nstand before it: '[rsp+16]', 'Indirect [rsp+16]'. RE is searched in the reason. Of the\nframes of a virtual machine SLOT is local[2], stack[0], caller[1].local[0], object[4].x,\nand method and position are those of the innermost one", (*call).expect, true},
		{"set", "SLOT VALUE", "give a slot another value for the resume that follows; nothing is written to the program", (*call).set, false},
		{"resume", "[-t TID] [-f N] [--function NAME] [--to-frame N|all] [--result VALUE] [--call NAME=VALUE]\n       [--with COMMAND] [--force] [--steps N] [--timeout TIME] [--json]",
			"let the reference interpreter resume, and print what came of it, as `reframe resume`\ndoes; with --with the virtual machine's own, a command for sh, in the current folder.\n`! resume` wants it to fail; stderr is why", (*call).resume, false},
		{"returns", "[TYPE] VALUE | nothing", "say what the interpreter must have returned", (*call).returns, true},
		{"throws", "TEXT", "say what the exception must say by which --with's interpreter has it left", (*call).throws, true},
		{"prints", "TEXT", "say what the program, or the interpreter, must have printed. The newline at its end may\nbe missing", (*call).prints, true},
		{"exits", "STATUS | SIGNAL", "say how the program must have ended, or how the interpreter says that it would", (*call).exits, true},
		{"verify", "[--ir FILE]... [--layout FILE]... [--with COMMAND] [--record ID]... [--site KIND]...\n       [--function RE] [--at SYMBOL]... [--every N] [--skip N] [--limit N] [--steps N]\n       [--timeout TIME] [--all] [--] COMMAND [ARG...]",
			"hold native code against the interpreter at each exit of a program, as `reframe verify`\ndoes: no exit may differ, and one at least must be the same. `! verify` wants one that differs", (*call).verify, false},
	}
}

// Commands returns the help of the commands of scripts besides testscript's own.
func Commands() string {
	var b strings.Builder
	for _, c := range scriptCommands() {
		fmt.Fprintln(&b, c.spelled())
		for line := range strings.Lines(c.about) {
			fmt.Fprintf(&b, "          %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return b.String()
}

func (c *scriptCommand) spelled() string { return strings.TrimRight(c.name+" "+c.usage, " ") }

// commands returns the commands of one script.
func (r *run) commands() map[string]func(*testscript.TestScript, bool, []string) {
	out := map[string]func(*testscript.TestScript, bool, []string){}
	for _, c := range scriptCommands() {
		out[c.name] = r.command(c)
	}
	return out
}

// wrong returns an error in the use of a command.
func (c *call) wrong(format string, args ...any) error {
	all := scriptCommands()
	usage := all[slices.IndexFunc(all, func(s scriptCommand) bool { return s.name == c.name })].spelled()
	text := fmt.Sprintf(format, args...)
	if text != "" {
		text = c.name + ": " + text + "\n"
	}
	return fmt.Errorf("%susage: %s", text, usage)
}

// parse parses the flags and returns the arguments, whose number must be from least to most.
func (c *call) parse(f *pflag.FlagSet, least, most int) ([]string, error) {
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	if err := f.Parse(c.args); errors.Is(err, pflag.ErrHelp) {
		return nil, c.wrong("")
	} else if err != nil {
		return nil, c.wrong("%v", err)
	}
	if n := f.NArg(); n < least || n > most {
		return nil, c.wrong("")
	}
	return f.Args(), nil
}

// flags returns an empty flag set for the command.
func (c *call) flags() *pflag.FlagSet { return pflag.NewFlagSet(c.name, pflag.ContinueOnError) }

// many is more than the possible number of arguments.
const many = 1 << 30

// out returns the writer for the script's stdout.
func (c *call) out() io.Writer { return c.ts.Stdout() }
