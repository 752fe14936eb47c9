package truth_test

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// avx512 is true if the processor supports functions with 512-bit vectors.
var avx512 = func() bool {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return false
	}
	for _, want := range []string{" avx512f", " avx512bw", " avx512vl", " avx512dq"} {
		if !strings.Contains(string(text), want) {
			return false
		}
	}
	return true
}()

// chooseFlags chooses how the program is compiled.
func (p *program) chooseFlags(r *rand.Rand) {
	add := func(percent int, flags ...string) {
		if chance(r, percent) {
			p.Flags = append(p.Flags, flags...)
		}
	}
	p.Flags = append(p.Flags, pick(r, "-O0", "-O1", "-O2", "-O2", "-O3"))
	if p.Tame || !chance(r, 4) {
		p.Flags = append(p.Flags, "-enable-patchpoint-liveness=false")
	}
	p.Steps, p.Depth = 60, 4+r.Intn(6)
	add(50, inRegisters)
	add(25, "-fixup-allow-gcptr-in-csr", "-max-registers-for-gc-values=4")
	if p.Machine != "amd64" {
		p.Dies = true
		p.Steps, p.Depth = 1000, 40
		return
	}
	if chance(r, 20) {
		p.Threads = 2 + r.Intn(3)
	}
	if p.Tame {
		p.Flags = append(p.Flags, "-relocation-model=static")
		p.Links = []string{"-no-pie"}
		return
	}
	switch r.Intn(10) {
	case 0:
		p.Flags = append(p.Flags, "-global-isel", "-global-isel-abort=2")
	case 1:
		p.Flags = append(p.Flags, "-fast-isel", "-fast-isel-abort=0")
	}
	add(15, "-frame-pointer="+pick(r, "all", "none", "non-leaf"))
	add(8, "-stackrealign")
	if p.Flags[0] != "-O0" {
		add(15, "-regalloc="+pick(r, "basic", "greedy"))
		add(8, "-no-stack-slot-sharing")
		add(8, "-enable-shrink-wrap=true")
		add(8, "-post-RA-scheduler")
		add(8, "-disable-block-placement")
		add(8, "-tail-dup-size=20")
	}
	switch r.Intn(4) {
	case 0:
		p.How = "mcjit"
	case 1:
		p.How = "orc"
	default:
		if chance(r, 50) {
			p.Flags = append(p.Flags, "-relocation-model=pic", "-code-model="+pick(r, "small", "small", "medium", "large"))
			p.Links = []string{"-pie"}
		} else {
			p.Flags = append(p.Flags, "-relocation-model=static", "-code-model="+pick(r, "small", "small", "large"))
			p.Links = []string{"-no-pie"}
		}
		return
	}
	if chance(r, 20) {
		p.Flags = append(p.Flags, "-code-model="+pick(r, "small", "large"))
	}
}

// A built program can be run.
type built struct {
	module  string // the compiled module
	source  string // the module that is passed to reframe; it may still have the guards that opt lowers
	command []string
	program string // the file that contains the code; "" if a JIT compiles it
}

// A notBuilt error says that a tool did not accept the program.
type notBuilt struct{ tool, text string }

func (e *notBuilt) Error() string { return e.tool + ": " + e.text }

// reason returns a short reason why a tool did not accept the program.
func (e *notBuilt) reason() string {
	for _, known := range []string{"ran out of registers", "undefined reference", "Symbols not found", "Cannot select", "relocation R_", "parseRegisterLiveOutMask", "must be followed by", "it took more than", "the program died in"} {
		if strings.Contains(e.text, known) {
			return e.tool + ": " + known
		}
	}
	if strings.Contains(e.text, "LLVM ERROR") || strings.Contains(e.text, "error:") {
		_, after, _ := strings.Cut(e.text, "rror:")
		return e.tool + ": " + strings.TrimSpace(after[:min(len(after), 60)])
	}
	return e.tool + ": crashed"
}

// llcFlags are the flags of llc for a machine.
var llcFlags = map[string][]string{
	"riscv64": {"-mattr=+m,+d,+a,+c", "-target-abi=lp64d"},
}

// runtimeIn compiles the runtime into a directory, once for each combination of arguments.
func runtimeIn(t testing.TB, dir, machine, compiler string, shared bool) string {
	t.Helper()
	name := filepath.Join(dir, "runtime-"+machine+map[bool]string{true: ".so", false: ".o"}[shared])
	if _, err := os.Stat(name); err == nil {
		return name
	}
	flags := []string{"-O1", "-g0", "-fasynchronous-unwind-tables", "-fno-optimize-sibling-calls", "-fPIC", "testdata/runtime.c", "-o", name}
	if shared {
		flags = append(flags, "-shared")
	} else {
		flags = append(flags, "-c")
	}
	out, err := exec.Command(livetest.Tool(t, compiler), flags...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return name
}

// toolSeconds bounds the processor time of a compiler, which normally takes less than one second.
const toolSeconds = 20

// attempt runs a tool and returns its error.
func attempt(tool string, args ...string) error {
	// On some programs llc's basic register allocator does not end within minutes. A limit of processor time does not depend on the load of the
	// machine.
	cmd := exec.Command("prlimit", append([]string{fmt.Sprintf("--cpu=%d", toolSeconds), tool}, args...)...)
	cmd.Env = append(os.Environ(), "LLVM_DISABLE_SYMBOLIZATION=1")
	var text strings.Builder
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() && (ws.Signal() == syscall.SIGXCPU || ws.Signal() == syscall.SIGKILL) {
			return &notBuilt{filepath.Base(tool), fmt.Sprintf("it took more than %d seconds", toolSeconds)}
		}
		return &notBuilt{filepath.Base(tool), fmt.Sprintf("%v: %s", err, text.String())}
	}
	return nil
}

// crossTools are the prefixes of Debian's compilers.
var crossTools = map[string]string{"arm64": "aarch64-linux-gnu-", "ppc64le": "powerpc64le-linux-gnu-", "riscv64": "riscv64-linux-gnu-", "s390x": "s390x-linux-gnu-"}

// build compiles the program in a directory. All its errors are of type *notBuilt.
func (p *program) build(t testing.TB, dir string) (*built, error) {
	t.Helper()
	base := filepath.Join(dir, fmt.Sprintf("p%d-%d-%s", p.Seed, p.Version, p.Machine))
	b := &built{module: base + ".ll"}
	require.NoError(t, os.WriteFile(b.module, []byte(p.IR()), 0o600))
	if passes := p.passes(); passes != "" {
		given := b.module
		b.module = base + ".opt.ll"
		if err := attempt(livetest.LLVM(t, p.Version, "opt"), "-passes="+passes, "-S", given, "-o", b.module); err != nil {
			return nil, err
		}
		if inlines, _ := p.optimized(); !inlines && p.Seed%2 == 0 {
			b.source = given
		}
	}
	if b.source == "" {
		b.source = b.module
	}
	if p.How != "aot" {
		kind := map[string][]string{"mcjit": {"-jit-kind=mcjit"}, "orc": {"-jit-kind=orc"}}[p.How]
		b.command = append([]string{livetest.Tool(t, "env"), "LLVM_DISABLE_SYMBOLIZATION=1", "JITDUMPDIR=" + dir, "LD_PRELOAD=" + runtimeIn(t, dir, p.Machine, "gcc", true), livetest.LLVM(t, p.Version, "lli")}, kind...)
		b.command = append(append(b.command, p.Flags...), b.module)
		return b, nil
	}
	object := base + ".o"
	flags := append(append([]string{}, llcFlags[p.Machine]...), p.Flags...)
	if err := attempt(livetest.LLVM(t, p.Version, "llc"), append(flags, "-filetype=obj", b.module, "-o", object)...); err != nil {
		return nil, err
	}
	b.program = base
	gcc := crossTools[p.Machine] + "gcc"
	links := append([]string{object, runtimeIn(t, dir, p.Machine, gcc, false), "-o", base, "-pthread", "-Wl,-z,notext", "-z", "noexecstack"}, p.Links...)
	if p.Machine != "amd64" {
		links = append(links, "-static", "-Wl,-z,separate-code")
	}
	if err := attempt(livetest.Tool(t, gcc), links...); err != nil {
		return nil, err
	}
	b.command = []string{base}
	return b, nil
}
