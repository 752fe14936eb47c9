package frametest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/static/instrument"
	"example.com/reframe/test/livetest"
)

// Everywhere is a random C program with the way to compile it. A release of clang compiles it to IR at a level. Then each block of its functions gets
// a stackmap, and each call between these functions a deopt bundle. A release of llc compiles the result.
type Everywhere struct {
	Seed  int
	Clang int
	Level string
	LLC   int
}

// Compiled returns the program of a seed of csmith with the given compilation.
func Compiled(seed, clang int, level string, llc int) Everywhere {
	return Everywhere{seed, clang, level, llc}
}

func (e Everywhere) String() string {
	return fmt.Sprintf("seed %d, clang-%d %s, llc-%d", e.Seed, e.Clang, e.Level, e.LLC)
}

// waiting makes a program of csmith wait for SIGUSR1 before it starts.
const waiting = `
#undef main
#include <signal.h>
#include <stdio.h>
int main(void) {
  char *argv[] = {"program", 0};
  sigset_t set;
  int got;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, 0);
  puts("ready");
  fflush(stdout);
  sigwait(&set, &got);
  return csmith_main(1, argv);
}
`

// Build compiles the program, and returns its path and its module.
func (e Everywhere) Build(t *testing.T) (path string, m *ir.Module) {
	t.Helper()
	source := livetest.Csmith(t, e.Seed)
	dir := filepath.Dir(source)
	plain, ll, object := filepath.Join(dir, "plain.ll"), filepath.Join(dir, "p.ll"), filepath.Join(dir, "p.o")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(source, append(text, waiting...), 0o600))
	// Inlining would remove blocks of functions.
	Command(t, "", livetest.LLVM(t, e.Clang, "clang"), e.Level, "-fno-inline", "-w", "-Dmain=csmith_main", "-I/usr/include/csmith",
		"-S", "-emit-llvm", "-o", plain, source)
	text, err = os.ReadFile(plain)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ll, e.instrumented(t, text), 0o600))
	m, err = ir.ParseFile(ll)
	require.NoError(t, err)
	require.NoError(t, m.Check())
	Command(t, dir, livetest.LLVM(t, e.LLC, "llc"), "-filetype=obj", "-relocation-model=pic", "-o", object, ll)
	path = filepath.Join(dir, "p")
	Command(t, dir, livetest.Tool(t, "gcc"), object, "-o", path)
	return path, m
}

// Command runs a tool, which must succeed. If dir is empty and args contain "-o", the result may come from the cache.
func Command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	livetest.NeedsTools(t)
	if dir == "" && slices.Contains(args, "-o") {
		livetest.Make(t, name, args...)
		return
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, out)
}

// chosen matches the functions that csmith generated; the others are in csmith's headers.
var chosen = regexp.MustCompile(`^(func_\d+|csmith_main)$`)

// instrumented inserts a stackmap with all live values into each block of the chosen functions. Calls between these functions get a deopt bundle with
// all values that are live after the call. Ids are numbered in the order of the text: those of blocks from 1, those of calls from 1000001.
func (e Everywhere) instrumented(t *testing.T, text []byte) []byte {
	t.Helper()
	// A private global has no symbol, so its contents would be unknown.
	m, err := ir.Parse("plain.ll", []byte(strings.ReplaceAll(string(text), " = private ", " = internal ")))
	require.NoError(t, err)
	r, err := instrument.Module(m, instrument.Options{Function: Pattern(names.Loose, chosen.String()), Blocks: true, Release: e.LLC, Bundles: chosen.MatchString, FirstBundle: 1000001})
	require.NoError(t, err)
	require.NotEmpty(t, r.Sites)
	return []byte(r.Text)
}

// Everywheres are the programs that tests use by default: of the first sixty seeds, those with the most functions that end soon.
var Everywheres = []Everywhere{
	{2, 19, "-O1", 19}, {3, 19, "-O0", 19}, {7, 19, "-O1", 22}, {9, 19, "-O2", 19}, {11, 14, "-O1", 16},
	{15, 19, "-O1", 19}, {16, 14, "-O1", 16}, {25, 14, "-O2", 16}, {57, 19, "-O2", 22}, {59, 14, "-O0", 16},
}

// starter calls the main function of a program in which all functions have sites.
const starter = `int csmith_main(int, char **);
int main(int n, char **v) { return csmith_main(n, v); }
`

// WithSites compiles a C program ahead of time: to IR as e specifies, with sites in the functions func_N and csmith_main (see instrumented), and then
// with llc at the level code.
func (e Everywhere) WithSites(t *testing.T, source, code string) ([]string, *ir.Module) {
	t.Helper()
	dir := filepath.Dir(source)
	plain, ll, object, path := filepath.Join(dir, "plain.ll"), filepath.Join(dir, "p.ll"), filepath.Join(dir, "p.o"), filepath.Join(dir, "p")
	Command(t, dir, livetest.LLVM(t, e.Clang, "clang"), e.Level, "-fno-inline", "-w", "-Dmain=csmith_main", "-I/usr/include/csmith",
		"-S", "-emit-llvm", "-o", plain, source)
	text, err := os.ReadFile(plain)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ll, e.instrumented(t, text), 0o600))
	m, err := ir.ParseFile(ll)
	require.NoError(t, err)
	start := filepath.Join(dir, "main.c")
	require.NoError(t, os.WriteFile(start, []byte(starter), 0o600))
	Command(t, "", livetest.LLVM(t, e.LLC, "llc"), code, "-filetype=obj", "-relocation-model=pic", "-o", object, ll)
	Command(t, "", livetest.Tool(t, "gcc"), object, start, "-lm", "-o", path)
	return []string{path}, m
}
