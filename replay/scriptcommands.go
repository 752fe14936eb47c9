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

// scriptCommand is a command with its help.
type scriptCommand struct {
	name  string
	usage string // arguments after the name
	about string
	do    func(c *call) error
	asks  bool // the command checks earlier commands, and does not change their stdout and stderr
}

// scriptCommands lists the commands of scripts that testscript does not have, in the order of the help. It is a function because the commands
// themselves use it for their usage.
func scriptCommands() []scriptCommand {
	return []scriptCommand{
		{"launch", "[--ir FILE]... [--layout FILE]... [--stdin FILE] [--] COMMAND [ARG...]",
			"start a program in the current folder, stopped before its first\ninstruction", (*call).launch, false},
		{"until", "{RECORD [--function RE] | --at SYMBOL} [--stop-at COND] [--hit N]",
			"run the program to the N-th next exit at a site of the record, or call of the symbol,\nincluding code that its JIT generates later. With --stop-at only exits that match the\ncondition count (reframe help conditions). `! until` expects it to end before", (*call).until, false},
		{"continue", "", "run the program to its end. Its output is then stdout and stderr, and in\n$WORK/program.stdout and $WORK/program.stderr", (*call).goOn, false},
		{"record", "FILE [--memory minimal|writable|all] [--compress]", "write a core of the stopped program", (*call).record, false},
		{"core", "FILE [--exe FILE] [--sysroot DIR] [--ir FILE]... [--layout FILE]...",
			"open a core", (*call).core, false},
		{"frames", "[-t TID] [-f N] [--function NAME] [--stable | --json]",
			"print the frames as `reframe frames` does. --stable omits the parts that differ between\nruns: frames of native code, process and thread ids, addresses. It fails if no frame is\nat a recorded site", (*call).frames, false},
		{"frame", "N | FUNCTION [-t TID]",
			"select the frame for expect, set and resume. The default is the innermost frame with a\nrecord, of the thread that reached the exit, or else of the first thread that has one", (*call).choose, false},
		{"expect", "SLOT = VALUE | SLOT hex BITS | SLOT type TYPE | SLOT at LOCATION | SLOT undef |\n       SLOT guess | SLOT unavailable [RE] | SLOT object ID | SLOT dead | record ID | site KIND |\n       moment MOMENT | function NAME | resume FUNCTION [BLOCK] | method NAME | position N |\n       info KEY TEXT",
			"check the frame. SLOT is named as frames prints it: %i, loc0, '#0'. VALUE is parsed\nwith the slot's type: 25 is 0x19. LOCATION is the text in brackets of\nframes, optionally after its kind: '[rsp+16]', 'Indirect [rsp+16]'. RE must match a part\nof the reason. For frames of a virtual machine, SLOT is local[2], stack[0],\ncaller[1].local[0], object[4].x or lock[0], and method, position and info are\nthose of the innermost one", (*call).expect, true},
		{"set", "SLOT VALUE", "set a slot for the next resume; nothing is written to the program", (*call).set, false},
		{"resume", "[-t TID] [-f N] [--function NAME] [--to-frame N|all] [--result VALUE] [--call NAME=VALUE]\n       [--with COMMAND] [--force] [--steps N] [--timeout TIME] [--json]",
			"resume in the reference interpreter and print the result, as `reframe resume` does; with\n--with in the virtual machine's own, a shell command, in the current folder. `! resume`\nexpects it to fail, with the reason in stderr", (*call).resume, false},
		{"returns", "[TYPE] VALUE | nothing", "check the result of the interpreter", (*call).returns, true},
		{"throws", "TEXT", "check the text of the exception that left the frames in --with's interpreter", (*call).throws, true},
		{"prints", "TEXT", "check the output of the program or of the interpreter; the last newline may be omitted", (*call).prints, true},
		{"exits", "STATUS | SIGNAL", "check the exit status or signal of the program, or of the interpreted program", (*call).exits, true},
		{"verify", "[--ir FILE]... [--layout FILE]... [--with COMMAND] [--record ID]... [--site KIND]...\n       [--function RE] [--at SYMBOL]... [--every N] [--skip N] [--limit N] [--steps N]\n       [--timeout TIME] [--all] [--] COMMAND [ARG...]",
			"compare native code with the interpreter at each exit of a program, as `reframe verify`\ndoes: no exit may differ, and at least one must be the same. `! verify` expects a difference", (*call).verify, false},
	}
}

// Commands returns the help of the commands of scripts that testscript does not have.
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

// wrong returns an error about the arguments of a command, with its usage.
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
