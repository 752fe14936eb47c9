package verify_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// tenVariable makes the test program an interpreter of vmpatchpoint.ll's method: after its call, it returns the result plus 10 times the local.
const tenVariable = "REFRAME_TEST_TEN"

func init() {
	if _, is := os.LookupEnv(tenVariable); is {
		serveTen()
		os.Exit(0)
	}
}

func serveTen() {
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
			result = map[string]any{"returned": map[string]any{"type": "i64", "bits": fmt.Sprintf("%#x", returned+10*local)}, "steps": 1}
		}
		text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		fmt.Println(string(text))
	}
}

// TestVerifyWithAtPatchpoints requires that a VM frame that waits for the call of a patchpoint is compared after this call, with its result.
func TestVerifyWithAtPatchpoints(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	layout := clitest.TempFile(t, "ten.star", "def frames(site):\n    f = frame(\"ten\", site.operands[0].constant, \"in-call\")\n    f.local(0, site.operands[1])\n    return f\n")
	for _, llvm := range []int{14, 19, 22} {
		module := livetest.IR(t, llvm, "vmpatchpoint.ll")
		r := clitest.Run(t, append([]string{"verify", "--with", livetest.Tool(t, "env") + " " + tenVariable + "=1 " + self, "--layout", layout, "--ir", module, "--all", "--"},
			append(livetest.LliWords(t, llvm), "-jit-kind=mcjit", module)...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, "12 same, 0 different, 0 not comparable", "LLVM %d: %s", llvm, r.Stderr)
	}
}
