package deopt

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/ir"
	"reframe/deopt/layout"
	"reframe/deopt/names"
	"reframe/deopt/sites"
	"reframe/internal/livetest"
	"reframe/ptrace"
)

// Everywhere is one random C program, and how it is compiled: to IR by clang of a release
// at a level, and from there with a stackmap in every block of its functions, and a deopt
// bundle at every call of one of them, by llc of a release. llc-14 crashes where an i1 is to be recorded, which is so for most of them.
type Everywhere struct {
	Seed  int
	Clang int
	Level string
	LLC   int
}

func (e Everywhere) String() string {
	return fmt.Sprintf("seed %d, clang-%d %s, llc-%d", e.Seed, e.Clang, e.Level, e.LLC)
}

// waiting makes a program of csmith wait for SIGUSR1 before it begins.
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

// Build returns the path of the program and its module.
func (e Everywhere) Build(t *testing.T) (path string, m *ir.Module) {
	t.Helper()
	source := livetest.Csmith(t, e.Seed)
	dir := filepath.Dir(source)
	plain, ll, object := filepath.Join(dir, "plain.ll"), filepath.Join(dir, "p.ll"), filepath.Join(dir, "p.o")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(source, append(text, waiting...), 0o600))
	// A function that is inlined has no blocks of its own.
	command(t, dir, livetest.LLVM(t, e.Clang, "clang"), e.Level, "-fno-inline", "-w", "-Dmain=csmith_main", "-I/usr/include/csmith",
		"-S", "-emit-llvm", "-o", plain, source)
	m, err = ir.ParseFile(plain)
	require.NoError(t, err)
	text, err = os.ReadFile(plain)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ll, instrumented(t, m, text), 0o600))
	m, err = ir.ParseFile(ll)
	require.NoError(t, err)
	require.NoError(t, m.Check())
	command(t, dir, livetest.LLVM(t, e.LLC, "llc"), "-filetype=obj", "-relocation-model=pic", "-o", object, ll)
	path = filepath.Join(dir, "p")
	command(t, dir, livetest.Tool(t, "gcc"), object, "-o", path)
	return path, m
}

// command runs a tool that must succeed.
func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, out)
}

// chosen are the functions that csmith wrote; the others are of its headers.
var chosen = regexp.MustCompile(`^(func_\d+|csmith_main)$`)

// instrumented writes a stackmap with all values that are live there into each block of the
// chosen functions: behind its phis, and in the first one behind the allocas, whose places
// in the stack are values too. Calls of one another get a deopt bundle with all values that
// are live behind them. Blocks have ids from 1, calls from 1000001, in the order of the text.
func instrumented(t *testing.T, m *ir.Module, text []byte) []byte {
	t.Helper()
	// A private global has no symbol: what it holds cannot be known.
	lines := strings.Split(strings.ReplaceAll(string(text), " = private ", " = internal "), "\n")
	id, calls := 0, 1000000
	for _, f := range m.Funcs {
		if f.Declared() || !chosen.MatchString(f.Name) {
			continue
		}
		body, err := f.Body()
		require.NoError(t, err)
		for _, b := range body {
			at := slices.IndexFunc(b.Instrs, func(i *ir.Instr) bool { return i.Op != ir.OpPhi && i.Op != ir.OpAlloca })
			id++
			// A byte of shadow keeps the records of two blocks apart.
			line := &lines[b.Instrs[at].Line-1]
			*line = fmt.Sprintf("  call void (i64, i32, ...) @llvm.experimental.stackmap(%s)\n%s",
				operands(t, b, at, fmt.Sprintf("i64 %d", id), "i32 1"), *line)
			for _, i := range b.Instrs {
				if i.Call == nil || !chosen.MatchString(sites.CalledName(i)) {
					continue
				}
				calls++
				line := &lines[i.Line-1]
				call, metadata, found := strings.Cut(*line, ", !")
				if found {
					metadata = ", !" + metadata
				}
				*line = fmt.Sprintf(`%s "statepoint-id"="%d" [ "deopt"(%s) ]%s`, call, calls, operands(t, b, i.Index+1), metadata)
			}
		}
	}
	return []byte(strings.Join(lines, "\n") + "\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n")
}

// operands are those of the text first, and what is live before instruction at of a block but
// for what the one before it returns.
func operands(t *testing.T, b *ir.Block, at int, first ...string) string {
	t.Helper()
	live, err := ir.LiveAt(b, at)
	require.NoError(t, err)
	for _, v := range live {
		if at == 0 || v != ir.Value(b.Instrs[at-1]) || b.Instrs[at-1].Call == nil {
			first = append(first, fmt.Sprintf("%v %s", v.Type(), v.Ref()))
		}
	}
	return strings.Join(first, ", ")
}

// Everywheres are the programs of the test by itself: of the first sixty seeds those that have
// the most functions and end soon.
var Everywheres = []Everywhere{
	{2, 19, "-O1", 19}, {3, 19, "-O0", 19}, {7, 19, "-O1", 22}, {9, 19, "-O2", 19}, {11, 14, "-O1", 16},
	{15, 19, "-O1", 19}, {16, 14, "-O1", 16}, {25, 14, "-O2", 16}, {57, 19, "-O2", 22}, {59, 14, "-O0", 16},
}

// starter calls the main function of a program all of whose functions have sites.
const starter = `int csmith_main(int, char **);
int main(int n, char **v) { return csmith_main(n, v); }
`

// WithSites compiles a C program ahead of time: to IR as e says, with a stackmap in every block of the functions func_N and
// csmith_main and a deopt bundle at the calls of one of them (see [instrumented]), and from there by llc at a level
// of its own.
func (e Everywhere) WithSites(t *testing.T, source, code string) ([]string, *ir.Module) {
	t.Helper()
	dir := filepath.Dir(source)
	plain, ll, object, path := filepath.Join(dir, "plain.ll"), filepath.Join(dir, "p.ll"), filepath.Join(dir, "p.o"), filepath.Join(dir, "p")
	command(t, dir, livetest.LLVM(t, e.Clang, "clang"), e.Level, "-fno-inline", "-w", "-Dmain=csmith_main", "-I/usr/include/csmith",
		"-S", "-emit-llvm", "-o", plain, source)
	m, err := ir.ParseFile(plain)
	require.NoError(t, err)
	text, err := os.ReadFile(plain)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ll, instrumented(t, m, text), 0o600))
	m, err = ir.ParseFile(ll)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.c"), []byte(starter), 0o600))
	command(t, dir, livetest.LLVM(t, e.LLC, "llc"), code, "-filetype=obj", "-relocation-model=pic", "-o", object, ll)
	command(t, dir, livetest.Tool(t, "gcc"), object, "main.c", "-lm", "-o", path)
	return []string{path}, m
}

// Vector is <n x element>.
type Vector struct {
	N       int
	Element string
}

func (v Vector) String() string { return fmt.Sprintf("<%d x %s>", v.N, v.Element) }

// Bits is the width of an element.
func (v Vector) Bits() int {
	if w, ok := map[string]int{"half": 16, "bfloat": 16, "float": 32, "double": 64, "x86_fp80": 80, "fp128": 128, "ptr": 64}[v.Element]; ok {
		return w
	}
	var w int
	if n, err := fmt.Sscanf(v.Element, "i%d", &w); n != 1 || err != nil {
		panic(v.Element)
	}
	return w
}

// Number converts an element to an integer of as many bits.
func (v Vector) Number(from string) string {
	switch {
	case v.Element == "ptr":
		return fmt.Sprintf("ptrtoint ptr %s to i64", from)
	case v.Element[0] == 'i':
		return fmt.Sprintf("or i%d %s, 0", v.Bits(), from)
	}
	return fmt.Sprintf("bitcast %s %s to i%d", v.Element, from, v.Bits())
}

// Load is code that makes a vector of what is in memory. Bits that a store of the vector would not write are not in it.
func (v Vector) Load(to, from string) string {
	bits := v.N * v.Bits()
	if bits%8 == 0 {
		return fmt.Sprintf("  %s = load volatile %s, %s, align 1\n", to, v, from)
	}
	return fmt.Sprintf("  %[1]s.m = load volatile i%[2]d, %[3]s, align 1\n  %[1]s.t = trunc i%[2]d %[1]s.m to i%[4]d\n  %[1]s = bitcast i%[4]d %[1]s.t to %[5]s\n",
		to, (bits+7)/8*8, from, bits, v)
}

// look captures a live process and makes its frames.
func look(t *testing.T, p *livetest.Process, hold bool, o Options) *View {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{Hold: hold})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := Frames(target, o)
	require.NoError(t, err)
	return v
}

// open takes control of a process until the test or close ends it.
func open(t *testing.T, p *livetest.Process) *ptrace.Session {
	t.Helper()
	s, err := ptrace.Open(context.Background(), p.PID)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() }) // nothing where the test did so
	return s
}

// known reads the module that the process's JIT compiled.
func known(t *testing.T, p *livetest.Process) Options {
	t.Helper()
	m, err := ir.ParseFile(p.IR)
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return Options{Modules: []*ir.Module{m}}
}

// one returns the only frame of a function.
func one(t *testing.T, v *View, function string) *Frame {
	t.Helper()
	var found []*Frame
	for _, thread := range v.Threads {
		for _, f := range thread.Frames {
			if f.Function == function {
				found = append(found, f)
			}
		}
	}
	require.Len(t, found, 1, "frames of %s", function)
	return found[0]
}

// moduleOptions reads the module, and the layout where there is one, of a program of testdata/programs.
func moduleOptions(t *testing.T, version int, program string) Options {
	t.Helper()
	m, err := ir.ParseFile(livetest.IR(t, version, program))
	require.NoError(t, err)
	o := Options{Modules: []*ir.Module{m}}
	if path := livetest.Testdata(t, "programs") + "/" + strings.TrimSuffix(program, ".ll") + ".layout.json"; fileExists(path) {
		l, err := layout.Read(path)
		require.NoError(t, err)
		o.Layouts = append(o.Layouts, l)
	}
	return o
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// launched starts a command under control, its output in the void.
func launched(t *testing.T, command []string) *ptrace.Session {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = null, null
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	s, err := ptrace.Launch(context.Background(), command)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() }) // nothing where the test did so
	return s
}

// hosted starts an object host that waits, and what its module says.
func hosted(t *testing.T, version int, program, level string, h livetest.ObjectHostOptions) (*livetest.Process, func(), Options) {
	t.Helper()
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, version, program, level), h)
	m, err := ir.ParseFile(livetest.IR(t, version, program))
	require.NoError(t, err)
	return p, begin, Options{Modules: []*ir.Module{m}}
}

// pattern makes one of a text that is known to be good.
func pattern(by func(string) (*names.Pattern, error), text string) *names.Pattern {
	p, err := by(text)
	if err != nil {
		panic(err)
	}
	return p
}

// alone is one frame of the first thread, to be resumed without its callers.
func alone(v *View, f *Frame) *Stack { return &Stack{Thread: &v.Threads[0], Frames: []*Frame{f}} }
