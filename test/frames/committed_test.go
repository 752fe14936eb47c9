package frames_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
)

// TestCommittedCores requires the right frames for the cores in the repository, which scripts/cores.sh has written: of the demo's target at its exit,
// and at the exit of a virtual machine's method. The test needs no other program.
func TestCommittedCores(t *testing.T) {
	const (
		files  = "../../internal/demo/"
		exe    = "--exe=" + files + "target-gcc12-llc19-amd64"
		module = "--ir=" + files + "target-llc19.ll"
	)
	r := clitest.Run(t, "frames", "--core", "../../testdata/cores/demo.core.zst", exe, module)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, `
  #0   native  __llvm_deoptimize+0x47
  #1   jit     sum_opt+0x44                    record 2882400000, deoptimize, in call
        #0       i32    3                      constant
        %i       i64    26                     [rsp+16]
        %acc     i64    5525                   [rsp+8]
        %n       i64    1000                   [rsp+0]
  #2   native  call_optimized+0x20
  #3   jit     main_jit+0x16
  #4   native  run+0x15e
  #5   native  _start+0xf
`)

	r = clitest.Run(t, "resume", "--core", "../../testdata/cores/demo.core.zst", exe, module, "--layout", files+"target.layout.json", "-f", "1")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "sum returned i64 332833500 after 6819 instructions; 0 writes discarded\n")

	r = clitest.Run(t, "frames", "--core", "../../testdata/cores/vm.core.zst", exe) // the core contains the layout and the IR
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, `
      vm Order.total @ 4, reexecute
           local[0]                object 0
           stack[0]         i32    146600                 slot 17
           stack[1]         i32    14660                  slot 19
         inlined into Shop.total @ 18, in call
           local[0]         i32    2000                   slot 6
           local[1]         i32    1466                   slot 8
           local[2]         double 1.0491464917005e+12    slot 10
           extra 2          i64    0                      slot 4
         object 0, not allocated: Order
           +16              i32    146600                 slot 24
           +24              i32    14660                  slot 26
           +32              i32    50                     slot 28
`)
}
