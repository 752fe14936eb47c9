package machine

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestChain requires that Chain agrees with LLVM's CFI for a function with a frame pointer: the places of the saved frame pointer and return address. For a
// back chain, CFI describes only the latter.
func TestChain(t *testing.T) {
	names := map[*Arch][2]string{ // LLVM's names of the frame pointer and the return address
		AMD64: {"RBP", "RIP"}, ARM64: {"W29", "W30"}, ARM64BE: {"W29", "W30"}, RISCV64: {"X8", "X1"}, LOONG64: {"R22", "R1"},
		PPC64: {"X31", "LR8"}, PPC64LE: {"X31", "LR8"},
	}
	for _, a := range llvmArches() {
		t.Run(a.arch.Name, func(t *testing.T) {
			chain := a.arch.Chain
			require.Equal(t, a.arch != S390X, chain.Exists())
			if !chain.Exists() {
				return
			}
			base, link := names[a.arch][0], names[a.arch][1]
			text := run(t, "", livetest.LLVM(t, 19, "llvm-dwarfdump"), "--eh-frame", a.function(t, "call void %p()"))
			body := regexp.MustCompile(`CFA=` + base + `(\+\d+)?: (.*)`).FindStringSubmatch(text)
			require.NotNil(t, body, text)
			saved := func(name string) int64 { // offset from the CFA
				m := regexp.MustCompile(`\b` + name + `=\[CFA([-+]\d+)\]`).FindStringSubmatch(body[2])
				require.NotNil(t, m, body[0])
				at, err := strconv.ParseInt(m[1], 10, 64)
				require.NoError(t, err)
				return at
			}
			if chain.Base == a.arch.SP {
				require.Equal(t, chain.Return, saved(link))
				return
			}
			cfa := int64(0) // offset from the frame pointer
			if body[1] != "" {
				_, err := fmt.Sscan(body[1], &cfa)
				require.NoError(t, err)
			}
			require.Equal(t, chain.Linked, cfa+saved(base))
			require.Equal(t, chain.Return, cfa+saved(link))
			if !chain.NoCFA {
				require.Equal(t, chain.CFA, cfa)
			}
		})
	}
}
