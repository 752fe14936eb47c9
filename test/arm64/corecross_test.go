package arm64_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// framesOfGDB returns the program counters and functions of gdb's frames, for each thread.
func framesOfGDB(t *testing.T, tool, program, core string) [][]string {
	t.Helper()
	script := clitest.TempFile(t, "frames.py", `
for t in gdb.selected_inferior().threads():
    t.switch()
    print("---")
    f = gdb.newest_frame()
    while f:
        print("%x %s" % (f.pc(), f.name()))
        f = f.older()
`)
	gdb := exec.Command(livetest.Tool(t, tool), "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-x", script, program, core)
	out, err := gdb.Output()
	require.NoError(t, err)
	var all [][]string
	_, text, _ := strings.Cut(string(out), "\n---\n")
	for thread := range strings.SplitSeq(text, "---\n") {
		all = append(all, strings.Split(strings.TrimSpace(thread), "\n"))
	}
	return all
}

// crossModule calls abort after a site. Its values are in callee-saved registers, or on the stack.
const crossModule = `
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @abort()
@scale = dso_local global i64 3
define dso_local void @stop() noinline {
  call void @abort()
  ret void
}
define dso_local i64 @work(i64 %n, i32 %small, double %d) noinline {
  %s = load volatile i64, ptr @scale
  %a = mul i64 %n, %s
  call void @stop()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %a, i64 %n, i32 %small, double %d, i64 -5)
  %x = sext i32 %small to i64
  %t = add i64 %a, %n
  %u = add i64 %t, %x
  ret i64 %u
}
define dso_local i64 @outer(i64 %k) noinline {
  %s = load volatile i64, ptr @scale
  %b = add i64 %k, %s
  %r = call i64 @work(i64 %b, i32 -2, double 2.5)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 0, i64 %b)
  %t = add i64 %r, %b
  ret i64 %t
}
define dso_local i32 @main() {
  %r = call i64 @outer(i64 37)
  %t = trunc i64 %r to i32
  ret i32 %t
}
`

// crossLayouts holds the triples of other machines, with the data layouts of clang 19.
var crossLayouts = map[string]struct{ triple, layout string }{
	"arm64":   {"aarch64-linux-gnu", "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"},
	"ppc64le": {"powerpc64le-linux-gnu", "e-m:e-Fn32-i64:64-n32:64-S128-v256:256:256-v512:512:512"},
	"s390x":   {"s390x-linux-gnu", "E-m:e-i1:8:16-i8:8:16-i64:64-f128:64-v128:64-a:8:16-n32:64"},
}

// TestCoresOfOtherMachines requires that cores of other architectures can be read. QEMU's cores name no files, so --exe gives the program. The frames
// must equal gdb's, the recorded values must be available, and the interpreter must compute the same result as the program in QEMU.
func TestCoresOfOtherMachines(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, c := range livetest.Crosses {
		if !c.WritesCores() || c.Arch == "ppc64" { // on ppc64 a nop follows each call, and the record describes the address after the nop
			continue
		}
		t.Run(c.Arch, func(t *testing.T) {
			t.Parallel()
			l := crossLayouts[c.Arch]
			module := clitest.TempFile(t, "cross.ll", fmt.Sprintf("target datalayout = %q\ntarget triple = %q\n%s", l.layout, l.triple, crossModule))
			object := livetest.Object(t, 19, module, "-mtriple="+l.triple, "-O2")
			program := c.Build(t, []string{"-static"}, object)
			core := c.Core(t, program)
			given := []string{"--core", core, "--exe", program, "--ir", module}

			r := clitest.Run(t, append([]string{"frames", "--json"}, given...)...)
			require.Contains(t, []int{0, 1}, r.Code, r.Stderr)
			report := r.Object(t)
			require.Equal(t, "core", report["target"].(map[string]any)["kind"])
			require.Equal(t, c.Arch, report["target"].(map[string]any)["arch"])
			work := clitest.FrameOf(t, report, "work")
			require.Equal(t, map[string]any{"id": "7"}, map[string]any{"id": fmt.Sprint(work["record"].(map[string]any)["id"])})
			want := map[string]string{"%a": "120", "%n": "40", "%small": "-2", "": "-5"}
			for _, s := range clitest.Objects(t, work["slots"]) {
				name, _ := s["name"].(string)
				if name == "%d" { // QEMU 7.2 writes only the general registers
					require.Regexp(t, `^[fv](8|31): not in the core$`, s["reason"])
					continue
				}
				require.Equal(t, "ok", s["status"], "%v", s)
				require.Equal(t, want[name], s["value"], "%v", s)
			}

			theirs := framesOfGDB(t, "gdb-multiarch", program, core)[0]
			var ours []string
			for _, f := range clitest.Frames(t, report) {
				ours = append(ours, f["pc"].(string)[2:]+" "+f["function"].(string))
				if f["function"] == "main" {
					break
				}
			}
			require.GreaterOrEqual(t, len(ours), 5)
			require.GreaterOrEqual(t, len(theirs), len(ours))
			require.Equal(t, theirs[:len(ours)], ours)

			r = clitest.Run(t, append([]string{"resume"}, given...)...)
			require.Equal(t, 2, r.Code)
			require.Regexp(t, `%d: [fv](8|31): not in the core`, r.Stderr)
			// All values of @outer are available, and its memory is in the core.
			r = clitest.Run(t, append([]string{"resume", "--function", "outer", "--result", "158"}, given...)...)
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, "outer returned i64 198 after ")
			r = clitest.Run(t, append([]string{"explain", "--json"}, given...)...)
			require.Equal(t, 1, r.Code, r.Stderr)
			clitest.RequireValid(t, "explain.schema.json", r.Stdout)
			r = clitest.Run(t, append([]string{"explain"}, given...)...)
			require.Equal(t, 1, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, "record 7")

			// Without the program, neither code nor stack maps are available.
			clitest.Run(t, "resume", "--core", core, "--ir", module).FailsEmpty(t, 2, "core "+core)
		})
	}
}

// TestKernelCoreAsGDBSeesIt requires that all frames of a multithreaded process equal gdb's, in a core that the kernel wrote, up to the start of each
// thread or of the program.
func TestKernelCoreAsGDBSeesIt(t *testing.T) {
	t.Parallel()
	program := livetest.CBinary(t, "threads.c")
	p := livetest.C(t, "threads.c", nil, "3", "0", "2", "0")
	core := clitest.KernelCore(t, p)
	r := clitest.Run(t, "frames", "--core", core, "--json")
	require.Contains(t, []int{0, 1}, r.Code, "it has no stack map, and gdb too may not come to the end of each")
	var theirs, ours []string
	for _, thread := range framesOfGDB(t, "gdb", program, core) {
		theirs = append(theirs, pcsOf(thread))
	}
	require.Len(t, theirs, 6)
	for _, thread := range clitest.Objects(t, r.Object(t)["threads"]) {
		ours = append(ours, pcsOf(stackOf(t, thread)))
	}
	require.ElementsMatch(t, theirs, ours)
}

// stackOf returns the frames of a thread in the form of framesOfGDB.
func stackOf(t *testing.T, thread map[string]any) (stack []string) {
	t.Helper()
	for _, f := range clitest.Objects(t, thread["frames"]) {
		name, _ := f["function"].(string)
		stack = append(stack, f["pc"].(string)[2:]+" "+name)
	}
	return stack
}

// pcsOf returns the program counters of a stack without the functions: if an address has several symbols, gdb may choose another one.
func pcsOf(stack []string) string {
	var pcs []string
	for _, f := range until(stack) {
		pc, _, _ := strings.Cut(f, " ")
		pcs = append(pcs, pc)
	}
	return strings.Join(pcs, " ")
}

// until cuts a stack after the first function of a thread or a program, because gdb stops at main.
func until(stack []string) []string {
	for n, f := range stack {
		if strings.HasSuffix(f, " main") || strings.HasSuffix(f, " start_thread") {
			return stack[:n+1]
		}
	}
	return stack
}
