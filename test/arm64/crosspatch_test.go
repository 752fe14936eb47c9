package arm64_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// patchModule has patchpoints of 64 bytes, each after an ordinary call: one with a number as its target, one with a symbol, and two without a target.
const patchModule = `
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
@__LLVM_StackMaps = external hidden constant i8
@maps = dso_local constant ptr @__LLVM_StackMaps
@scale = dso_local global i64 3
declare dso_local void @ordinary()
declare dso_local void @stop()
define dso_local i64 @work(i64 %n, i64 %m) noinline {
  %s = load volatile i64, ptr @scale
  %a = mul i64 %n, %s
  call void @ordinary()
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 11, i32 64, ptr inttoptr (i64 TARGET to ptr), i32 0, i64 %a, i64 %n, i64 %m, i64 -5)
  SYMBOL
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 13, i32 64, ptr null, i32 0, i64 %a, i64 %n, i64 %m, i64 -5)
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 14, i32 64, ptr null, i32 0, i64 %a, i64 %n, i64 %m, i64 -5)
  %t = add i64 %a, %n
  %u = add i64 %t, %m
  ret i64 %u
}
`

const patchSymbol = `call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 12, i32 64, ptr @stop, i32 0, i64 %a, i64 %n, i64 %m, i64 -5)`

// patchMachine describes how the program is built for an architecture.
type patchMachine struct {
	triple, layout string
	flags          []string // of llc
	llvm           []int    // releases that compile the patchpoints
	target         uint64   // of the patchpoint whose target is a number; on ppc64 the address of the descriptor of stop
	links          []string // flags of the linker: the addresses of stop and of its descriptor
	noSymbol       bool     // llc has no relocation, or a wrong one, for the call of a symbol
	nop            bool     // each ordinary call is followed by a nop
	ends           int      // offset in a region at which its last near call starts
	ways           []string
}

var patchMachines = map[string]patchMachine{
	"arm64": {triple: "aarch64-linux-gnu", layout: crossLayouts["arm64"].layout, llvm: []int{14, 19, 22},
		target: 0x1000000, links: []string{"-Wl,--section-start=.stop=0x1000000"}, noSymbol: true, ends: 60, ways: []string{"near", "register"}},
	"ppc64le": {triple: "powerpc64le-linux-gnu", layout: crossLayouts["ppc64le"].layout, llvm: []int{14, 19, 22}, nop: true,
		target: 0x11000000, links: []string{"-Wl,--section-start=.stop=0x11000000"}, ends: 60, ways: []string{"near", "register"}},
	"ppc64": {triple: "powerpc64-linux-gnu", layout: "E-m:e-Fi64-i64:64-n32:64-S128-v256:256:256-v512:512:512", llvm: []int{14, 19, 22}, nop: true,
		target: 0x11800000, links: []string{"-Wl,--section-start=.stop=0x11000000", "-Wl,--section-start=.descriptor=0x11800000"}, ends: 60, ways: []string{"near", "register"}},
	"s390x": {triple: "s390x-linux-gnu", layout: crossLayouts["s390x"].layout, llvm: []int{14, 19, 22},
		target: 0x110000000, links: []string{"-Wl,-Ttext-segment=0x100000000", "-Wl,--section-start=.stop=0x110000000"}, ends: 58, ways: []string{"near", "register"}},
	"riscv64": {triple: "riscv64-linux-gnu", layout: "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128", flags: []string{"-mattr=+m,+d,+c", "-target-abi=lp64d"}, llvm: []int{19, 22},
		target: 0x30000000, links: []string{"-Wl,--section-start=.stop=0x30000000"}, noSymbol: true, ends: 60, ways: []string{"near", "register", "short"}},
}

// TestPatchpointsOfOtherMachines requires that a core's frame at a patchpoint is recognized by the call in the patchpoint's region, whether LLVM or
// the program wrote it. The callee prints its return address, which must be the frame's pc. An ordinary call that ends at the start of a region must
// not be taken for a call of the patchpoint.
func TestPatchpointsOfOtherMachines(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	tried := 0
	for _, c := range livetest.Crosses {
		m, ok := patchMachines[c.Arch]
		if !ok {
			continue
		}
		at := tried
		tried++
		t.Run(c.Arch, func(t *testing.T) {
			t.Parallel()
			for v, version := range m.llvm {
				if !livetest.Whole() && v != at%len(m.llvm) {
					continue // each release is tested with one or two machines
				}
				t.Run(fmt.Sprint(version), func(t *testing.T) { patchpointsOf(t, &c, &m, version) })
			}
		})
	}
	require.Equal(t, len(patchMachines), tried)
}

func patchpointsOf(t *testing.T, c *livetest.Cross, m *patchMachine, version int) {
	symbol := patchSymbol
	if m.noSymbol {
		symbol = ""
	}
	text := strings.NewReplacer("TARGET", fmt.Sprint(m.target), "SYMBOL", symbol).Replace(patchModule)
	module := clitest.TempFile(t, "crosspatch.ll", fmt.Sprintf("target datalayout = %q\ntarget triple = %q\n%s", m.layout, m.triple, text))
	object := livetest.Object(t, version, module, append([]string{"-mtriple=" + m.triple, "-O2", "-enable-patchpoint-liveness=false"}, m.flags...)...)
	// QEMU omits code from its cores if it is in the same mapping as the file's headers.
	flags := append([]string{"-static", "-O1", "-fasynchronous-unwind-tables", "-fno-optimize-sibling-calls", "-Wall", "-Wextra", "-Werror", "-Wl,-z,separate-code", object}, m.links...)
	program := c.Build(t, flags, "testdata/crosspatch.c")

	type run struct {
		args   []string
		record int  // the id of the frame's record, 0 for none
		bare   bool // the frame has the record also without the module
	}
	runs := []run{{[]string{"ordinary"}, 0, true}, {[]string{"constant"}, 11, true}}
	if !m.noSymbol {
		// Without a module, the call may also be an ordinary one before a stackmap.
		runs = append(runs, run{[]string{"symbol"}, 12, false})
	}
	for _, way := range m.ways {
		for _, at := range livetest.ShareOf([]int{0, 24}, c.Arch, way) {
			runs = append(runs, run{[]string{way, fmt.Sprint(at)}, 13, false})
		}
	}
	runs = append(runs, run{[]string{"near", fmt.Sprint(m.ends)}, 13, false})
	for _, r := range runs {
		t.Run(strings.Join(r.args, "_"), func(t *testing.T) {
			truth := filepath.Join(t.TempDir(), "truth")
			args := slices.Concat([]string{truth}, r.args)
			var core string
			if c.WritesCores() {
				core = c.Core(t, program, args...)
			} else {
				core = livetest.RISCV64Core(t, c, program, args...)
			}
			said, err := os.ReadFile(truth)
			require.NoError(t, err)
			pc := strings.TrimSpace(string(said))

			if r.record == 0 { // without --exe no code is found, so a note names the flag
				for _, verb := range []string{"frames", "resume", "explain"} {
					x := clitest.Run(t, verb, "--core", core)
					require.Contains(t, x.Stderr, "the core names none of its files; --exe says which program it is of")
				}
			}
			given := []string{"frames", "--json", "--core", core, "--exe", program}
			checkPatched(t, clitest.Run(t, append(given, "--ir", module)...).Object(t), pc, r.record, true)
			if r.bare {
				checkPatched(t, clitest.Run(t, given...).Object(t), pc, r.record, false)
			}
			if r.record == 0 && !m.nop {
				x := clitest.Run(t, "explain", "--core", core, "--exe", program, "--ir", module, pc)
				require.Contains(t, x.Stdout, "its patchpoint starts at this return address, and the call before it is still running", "%s", x.Stderr)
			}
			if r.record == 0 {
				return
			}
			x := clitest.Run(t, "resume", "--core", core, "--exe", program, "--ir", module)
			if r.record == 11 && !m.noSymbol { // the interpreter reaches the patchpoint with a symbol
				require.Equal(t, 2, x.Code)
				require.Contains(t, x.Stderr, "a call of @stop is not supported")
				return
			}
			require.Equal(t, 0, x.Code, x.Stderr)
			require.Contains(t, x.Stdout, "work returned i64 162 after ")
		})
	}
}

// checkPatched requires the frame of work at the pc that the program printed, with the given record.
func checkPatched(t *testing.T, report map[string]any, pc string, record int, named bool) {
	t.Helper()
	f := clitest.FrameOf(t, report, "work")
	require.Equal(t, pc, f["pc"])
	if record == 0 {
		require.NotContains(t, f, "record")
		require.Equal(t, "native", f["kind"])
		return
	}
	r := f["record"].(map[string]any)
	require.Equal(t, []string{fmt.Sprint(record), "patchpoint", "in-call"}, []string{fmt.Sprint(r["id"]), r["site"].(string), r["moment"].(string)})
	var bits, names []string
	for _, s := range clitest.Objects(t, f["slots"]) {
		require.Equal(t, "ok", s["status"], "%v", s)
		bits = append(bits, s["hex"].(string))
		name, _ := s["name"].(string)
		names = append(names, name)
	}
	require.Equal(t, []string{"0x78", "0x28", "0x2", "0xfffffffffffffffb"}, bits)
	if named {
		require.Equal(t, []string{"%a", "%n", "%m", ""}, names)
	}
}
