package verify_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// tenVariable is an environment variable that makes the test program an interpreter of vmpatchpoint.ll's method. After its call the interpreter
// returns the sum of the result and of the local times the variable's value. The correct value is 10.
const tenVariable = "REFRAME_TEST_TEN"

func init() {
	if value, is := os.LookupEnv(tenVariable); is {
		ten, _ := strconv.ParseUint(value, 10, 64)
		serveTen(ten)
		os.Exit(0)
	}
}

func serveTen(ten uint64) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Frames []struct {
					Locals []struct{ Bits string }
				}
				Returned *struct{ Bits string }
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := any(map[string]any{"protocol": "reframe.vm/1", "name": "ten"})
		if m.Method == "resume" {
			returned, _ := strconv.ParseUint(m.Params.Returned.Bits, 0, 64)
			local, _ := strconv.ParseUint(m.Params.Frames[0].Locals[0].Bits, 0, 64)
			result = map[string]any{"returned": map[string]any{"type": "i64", "bits": fmt.Sprintf("%#x", returned+ten*local)}, "steps": 1, "locked": false}
		}
		text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		fmt.Println(string(text))
	}
}

// TestVerifyWithAtPatchpoints requires that a VM frame which waits for the call of a patchpoint is compared after the call, with the result of the
// call.
func TestVerifyWithAtPatchpoints(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	layout := clitest.TempFile(t, "ten.star", "def frames(site):\n    f = frame(\"ten\", site.operands[0].constant, \"in-call\")\n    f.local(0, site.operands[1])\n    return f\n")
	for _, llvm := range []int{14, 19, 22} {
		module := livetest.IR(t, llvm, "vmpatchpoint.ll")
		r := clitest.Run(t, append([]string{"verify", "--with", livetest.Tool(t, "env") + " " + tenVariable + "=10 " + self, "--layout", layout, "--ir", module, "--all", "--"},
			append(livetest.LliWords(t, llvm), "-jit-kind=mcjit", module)...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, "12 same, 0 different, 0 not comparable", "LLVM %d: %s", llvm, r.Stderr)
	}
}

// TestStressWith requires that stress deoptimizes with the VM's own interpreter, and that a wrong result of the interpreter is found at its exit.
func TestStressWith(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	layout := clitest.TempFile(t, "ten.star", "def frames(site):\n    f = frame(\"ten\", site.operands[0].constant, \"in-call\")\n    f.local(0, site.operands[1])\n    return f\n")
	module := livetest.IR(t, 19, "vmpatchpoint.ll")
	stress := func(factor string, flags ...string) clitest.Result {
		return clitest.Run(t, append(append([]string{"stress", "--with", livetest.Tool(t, "env") + " " + tenVariable + "=" + factor + " " + self, "--layout", layout, "--ir", module}, flags...),
			append([]string{"--"}, append(livetest.LliWords(t, 19), "-jit-kind=mcjit", module)...)...)...)
	}
	r := stress("10", "--probability", "1")
	require.Equal(t, 0, r.Code, r.Stderr+r.Stdout)
	require.Contains(t, r.Stdout, ": 12 committed, 0 left to native code\n")
	require.Contains(t, r.Stdout, "nothing differs: exit status 14, ")
	r = stress("11", "--only", "7")
	require.Equal(t, 3, r.Code, r.Stderr+r.Stdout)
	require.Contains(t, r.Stdout, "exit 7, hit 7 of record 5, thread lli")
	require.Contains(t, r.Stdout, "causes the difference alone")
	require.Contains(t, r.Stdout, "  compare with native code: reframe verify ")
	require.Equal(t, 3, clitest.RunSuggestion(t, r.Stdout).Code)
	r = clitest.Run(t, append([]string{"stress", "--with", "exec ./no-such-vm", "--layout", layout, "--ir", module, "--probability", "1", "--"},
		append(livetest.LliWords(t, 19), "-jit-kind=mcjit", module)...)...)
	require.Equal(t, 2, r.Code, r.Stderr+r.Stdout)
	require.Contains(t, r.Stderr, "exec ./no-such-vm: ")
	r = clitest.Run(t, "stress", "--with", "./vm", "--no-self-description", "--ir", module, "--", "true")
	require.Contains(t, r.Stderr, "--with requires the layout of the virtual machine: --layout FILE.star")
}

// jumpedTo is a module whose function makes a call for every fourth argument. The return address is also the target of a jump, which leads to another
// result.
const jumpedTo = livetest.Prelude + `
define i64 @callee(i64 %x) noinline {
  %r = mul i64 %x, %x
  ret i64 %r
}
define i64 @compiled(i64 %x) noinline GC {
entry:
  %low = and i64 %x, 3
  %calls = icmp eq i64 %low, 0
  %other = mul i64 %x, 7
  br i1 %calls, label %call, label %after
call:
  CALL
  br label %after
after:
  %v = phi i64 [ %r, %call ], [ %other, %entry ]
  %ten = mul i64 %x, 10
  %sum = add i64 %v, %ten
  ret i64 %sum
}
define i32 @main() {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  %all = phi i64 [ 0, %entry ], [ %plus, %loop ]
  %v = call i64 @compiled(i64 %n)
  %plus = add i64 %all, %v
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, 40
  br i1 %more, label %loop, label %done
done:
  %status = trunc i64 %plus to i32
  %low = and i32 %status, 127
  ret i32 %low
}
`

// TestVerifyWhereCodeJumpsToAReturnAddress requires that a record whose address is also the target of a jump has an exit only if the thread has
// executed the record's site, and that such exits are compared.
func TestVerifyWhereCodeJumpsToAReturnAddress(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	layout := clitest.TempFile(t, "ten.star", "def frames(site):\n    f = frame(\"ten\", site.operands[0].constant, \"in-call\")\n    f.local(0, site.operands[1])\n    return f\n")
	with := []string{"--with", livetest.Tool(t, "env") + " " + tenVariable + "=10 " + self, "--layout", layout}
	statepoint := "%t = call " + livetest.Statepoint(5, "@callee", "%x", "i64 3, i64 %x") + "\n  %r = call i64 @llvm.experimental.gc.result.i64(token %t)"
	stackmap := "%r = call i64 @callee(i64 %x)\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %x, i64 %r)"
	patchpoint := "%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 5, i32 13, ptr @callee, i32 1, i64 %x, i64 3, i64 %x)"
	for _, c := range []struct {
		name, call, gc string
		flags          []string
	}{
		{"statepoint, own interpreter", statepoint, `gc  "statepoint-example"`, with},
		{"statepoint", statepoint, `gc  "statepoint-example"`, nil},
		{"stackmap", stackmap, "", nil},
		{"patchpoint", patchpoint, "", with},
	} {
		module := livetest.Module(t, strings.NewReplacer("CALL", c.call, "GC", c.gc).Replace(jumpedTo))
		for _, llvm := range []int{19, 22} {
			r := clitest.Run(t, append(append([]string{"verify", "--ir", module, "--all", "--record", "5"}, c.flags...), append([]string{"--"},
				append(livetest.LliWords(t, llvm), "-jit-kind=mcjit", module)...)...)...)
			require.Equal(t, 0, r.Code, "%s, LLVM %d: %s", c.name, llvm, r.Stderr)
			require.Contains(t, r.Stderr, "10 same, 0 different, 0 not comparable", "%s, LLVM %d: %s", c.name, llvm, r.Stderr)
		}
	}
}
