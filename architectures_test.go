package reframe_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ofArchitectures are the folders whose business architectures are, and those that no port of the live verbs touches.
var ofArchitectures = []string{
	"deopt/isa", "deopt/abi", "deopt/machine", // an architecture is tables and a decoder here
	"deopt/object",                                                                             // the numbers of machines and relocations in files
	"deopt/ir",                                                                                 // what modules spell
	"bench", "demo", "scripts", "internal/livetest", "internal/clitest", "test", "cmd/reframe", // builds and examples
}

// namesArchitecture are the other files of production code that name an architecture, and why. The list must not grow: what differs between
// architectures belongs into a table of isa, abi or machine.
var namesArchitecture = map[string]string{
	"deopt/behindcall.go":          "what an x86-64 function does behind a call, read from its code",
	"deopt/commit/return.go":       "what a function leaves on the stack for its caller to take away, read from x86-64 code",
	"deopt/interp/access.go":       "address spaces and inline assembly of x86",
	"deopt/interp/environment.go":  "the control registers of floating-point units",
	"deopt/interp/format.go":       "the order of bytes in text",
	"deopt/interp/interp.go":       "the architecture that a module without a triple is taken for",
	"deopt/interp/varargs.go":      "varargs as the System V ABI of x86-64 passes them",
	"deopt/lanes/lanes.go":         "how each target legalizes vectors",
	"deopt/lint/code.go":           "what LLVM's code generators do to patchpoints",
	"deopt/lint/operands.go":       "which operands LLVM's code generators take",
	"deopt/maps/checksites.go":     "s390x records allocas otherwise",
	"deopt/maps/checkunwind.go":    "compact unwind information, and what x86-64 calls push",
	"deopt/maps/unlinkedcode.go":   "relocated calls of x86-64",
	"deopt/match.go":               "nops and calls of x86-64 that were written over",
	"deopt/patched/patched.go":     "the same",
	"deopt/patched/jump.go":        "the same",
	"deopt/siteconvention.go":      "calls through the GOT of x86-64",
	"deopt/sites/evidence.go":      "how x86-64 code holds constants",
	"deopt/sites/irfacts.go":       "symbols of x86 conventions",
	"deopt/stackmap/checkrules.go": "pairs of Power's vector registers share a number",
	"deopt/trace/patch.go":         "whether x86-64 code at a record does nothing",
	"deopt/unwind/call.go":         "calls of x86-64 have many lengths",
	"deopt/unwind/cfi/compact.go":  "one encoding of compact unwind information for each",
	"deopt/unwind/cfi/program.go":  "two instructions of CFI are AArch64's alone",
	"deopt/unwind/prove.go":        "functions of x86-64 that begin with a nop",
	"deopt/unwind/scan.go":         "the alignment of x86-64 stacks at calls",
	"deopt/unwind/stackplace.go":   "by what code its places in frames are found",
	"deopt/unwind/unwinder.go":     "what an x86-64 return has taken off the stack",
	"ptrace/copy.go":               "where signal handlers of x86-64 keep what they interrupted",
	"ptrace/coredelve.go":          "the notes that Delve writes for threads",
	"ptrace/corememory.go":         "the vsyscall page",
	"ptrace/coreregisters.go":      "the areas that cores of x86-64 have vector registers in",
	"ptrace/corewrite.go":          "the same, written",
	"ptrace/ptrace.go":             "a message says where the live verbs run",
	"ptrace/registers.go":          "whether a thread is in a system call, and by what it finds its own data",
	"ptrace/regset/places.go":      "notes of registers in cores, one table for each",
	"ptrace/regset/sets.go":        "one table of register sets for each",
}

// Which files name an architecture is known, each with its reason.
func TestFilesThatNameArchitectures(t *testing.T) {
	name := regexp.MustCompile(`(?i)amd64|arm64|aarch64|x86_64|riscv|ppc64|s390x|powerpc`)
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || name.MatchString(path.Base(file)) {
			return nil
		}
		for _, dir := range ofArchitectures {
			if strings.HasPrefix(file, dir+"/") {
				return nil
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(file, -1, len(text)), text, nil, 0)
		for {
			_, tok, literal := s.Scan()
			if tok == token.EOF {
				return nil
			}
			if (tok == token.IDENT || tok == token.STRING) && name.MatchString(literal) && !strings.HasPrefix(literal, `"reframe/`) {
				found[file] = true
			}
		}
	}))
	require.Equal(t, slices.Sorted(maps.Keys(namesArchitecture)), slices.Sorted(maps.Keys(found)))
}
