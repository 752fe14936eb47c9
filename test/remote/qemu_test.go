package remote_test

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// qemuModule has a record with values in general and floating-point registers.
const qemuModule = `
declare void @llvm.experimental.stackmap(i64, i32, ...)
@sink = global i64 0
define dso_local i64 @work(i64 %a, i32 %small, double %d) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %a, i32 %small, double %d, i64 -5)
  %n = fptosi double %d to i64
  %s = sext i32 %small to i64
  %t = add i64 %n, %s
  %r = mul i64 %t, %a
  store volatile i64 %r, ptr @sink
  ret i64 %r
}
define dso_local i32 @main() {
  %r = call i64 @work(i64 120, i32 -2, double 2.5)
  %t = trunc i64 %r to i32
  ret i32 %t
}
`

// targets holds the triples of other machines, with the data layouts of clang 19.
var targets = map[string]struct{ triple, layout string }{
	"arm64":   {"aarch64-linux-gnu", "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"},
	"ppc64le": {"powerpc64le-linux-gnu", "e-m:e-Fn32-i64:64-n32:64-S128-v256:256:256-v512:512:512"},
	"riscv64": {"riscv64-linux-gnu", "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128"},
	"s390x":   {"s390x-linux-gnu", "E-m:e-i1:8:16-i8:8:16-i64:64-f128:64-v128:64-a:8:16-n32:64"},
}

// TestProgramsInQEMU requires the values of a record on each architecture that QEMU emulates, including those in floating-point registers, which
// QEMU's cores lack.
func TestProgramsInQEMU(t *testing.T) {
	for n := range livetest.Crosses {
		c := &livetest.Crosses[n]
		if _, known := targets[c.Arch]; !known {
			continue
		}
		t.Run(c.Arch, func(t *testing.T) {
			t.Parallel()
			program, module := qemuProgram(t, c)
			s := c.Stub(t, program)
			defer s.Close()
			at := recordOf(t, program, 7)
			s.Break(at)
			pc, stopped := s.Continue()
			require.True(t, stopped)
			require.Equal(t, at, pc)

			r := clitest.Run(t, "frames", "--remote", "unix:"+s.Serve(), "--exe", program, "--ir", module, "--json")
			require.Equal(t, 0, r.Code, r.Stderr)
			report := r.Object(t)
			require.Equal(t, c.Arch, report["target"].(map[string]any)["arch"])
			work := clitest.FrameOf(t, report, "work")
			require.Equal(t, "7", fmt.Sprint(work["record"].(map[string]any)["id"]))
			var values []any
			for _, slot := range clitest.Objects(t, work["slots"]) {
				require.Equal(t, "ok", slot["status"], "%v", slot)
				values = append(values, slot["value"])
			}
			require.Equal(t, []any{"120", "-2", "2.5", "-5"}, values)
			require.NotEmpty(t, clitest.FrameOf(t, report, "main"))
		})
	}
}

// qemuProgram builds qemuModule as a static program.
func qemuProgram(t *testing.T, c *livetest.Cross) (program, module string) {
	target := targets[c.Arch]
	module = filepath.Join(t.TempDir(), "qemu.ll")
	require.NoError(t, os.WriteFile(module, fmt.Appendf(nil, "target datalayout = %q\ntarget triple = %q\n%s", target.layout, target.triple, qemuModule), 0o600))
	flags := []string{"-mtriple=" + target.triple, "-O2"}
	if c.Arch == "riscv64" {
		flags = append(flags, "-mattr=+m,+a,+f,+d,+c", "-target-abi=lp64d")
	}
	return c.Build(t, []string{"-static"}, livetest.Object(t, 19, module, flags...)), module
}

// recordOf returns the address of a record of a static program.
func recordOf(t *testing.T, program string, id int) uint64 {
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	data, err := f.Section(".llvm_stackmaps").Data()
	require.NoError(t, err)
	list, err := stackmap.Parse(data, stackmap.Options{Order: f.ByteOrder})
	require.NoError(t, err)
	m := list.Maps[0]
	for n := range m.Functions {
		for r := range m.Records(&m.Functions[n]) {
			if int(r.ID) == id {
				return uint64(m.Functions[n].Addr) + uint64(r.Offset)
			}
		}
	}
	require.Fail(t, "no record")
	return 0
}
