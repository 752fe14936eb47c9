package house

import "strings"

// Area is a folder whose packages belong together. If areas are nested, a package such as internal/llvm/ir belongs only to the inner area.
type Area struct{ Folder, Holds string }

// Areas lists the areas in order: a package may import packages of its own area and of areas above it in this list.
var Areas = []Area{
	{"internal/base", "files, errors in JSON, confinement: code that does not depend on frames"},
	{"deopt/frame", "the abstract frame and its JSON (public)"},
	{"internal/machine", "architectures, machine code, images of code (ELF, Mach-O, COFF), symbols, source lines"},
	{"internal/llvm/ir", "modules of LLVM IR"},
	{"deopt/stackmap", "records of stack maps (public)"},
	{"ptrace", "targets: processes and cores (public)"},
	{"deopt/unwind", "physical frames (public)"},
	{"deopt/interp", "the reference interpreter (public)"},
	{"internal/llvm", "calling conventions, and the matching of records with calls in the IR"},
	{"internal/progspace", "all code of a target, including patched code"},
	{"internal/vm", "a user's virtual machine: its layouts, the descriptions in its memory, the protocol of its interpreter, conditions"},
	{"internal/static", "verbs that need no process: maps, lint, instrument"},
	{"deopt", "abstract frames of a target (public): match, fill, resume"},
	{"internal/check", "verbs that run a process: trace, commit, verify, stress"},
	{"internal/cli", "the command line"},
	{"replay", "saved exits as tests"},
	{"internal/report", "what is printed: text, JSON, explanations of a frame, pages"},
	{"internal/debug", "debugging sessions, at a prompt and in editors"},
	{"internal/demo", "the target of reframe demo"},
	{"cmd/reframe", "one file for each verb"},
	{"test", "tests of the program by subject, comparisons with programs of others, and helpers that tests share"},
	{"bench", "benchmarks beside gdb, eu-stack and llvm-readobj"},
	{"scripts", "releases, and programs that check and measure the repository"},
}

// Module is the prefix of the paths of all packages.
const Module = "example.com/reframe/"

// AreaOf returns the position in [Areas] of the innermost area that contains a package, or -1.
func AreaOf(path string) int {
	best := -1
	for n, a := range Areas {
		if (path == a.Folder || strings.HasPrefix(path, a.Folder+"/")) && (best < 0 || len(a.Folder) > len(Areas[best].Folder)) {
			best = n
		}
	}
	return best
}
