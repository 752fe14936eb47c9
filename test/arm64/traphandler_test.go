package arm64_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestTrapHandlerOnARM64 requires that the tests of the SIGTRAP handler in package ptrace pass on arm64. It omits one that requires a program which
// QEMU's machine lacks.
func TestTrapHandlerOnARM64(t *testing.T) {
	livetest.Slow(t)
	if !machineTurn(t) {
		return
	}
	c, _ := arm64(t)
	tests := filepath.Join(t.TempDir(), "ptrace.test")
	goFor(t, "arm64", "test", "-vet=off", "-c", "-o", tests, "example.com/reframe/ptrace")
	files := map[string]string{"ptrace.test": tests, "traps": c.Build(t, []string{"-static", "-O1"}, "../../ptrace/testdata/traps.c")}
	out := onARM64(t, files, "run traphandler ptrace.test -traps /traps -test.v -test.run ^TestTrapHandler -test.skip Restartable")
	stdout := string(out["traphandler.stdout"])
	require.Equal(t, "0", string(out["traphandler.code"]), "%s%s", stdout, out["traphandler.stderr"])
	for _, name := range []string{"Alone", "OfAFrozenProcess", "IsTheDefault", "IsTakenOut", "IsSalvaged", "IsRestored", "OfTheProgram", "UnderAFilter"} {
		require.Contains(t, stdout, "--- PASS: TestTrapHandler"+name)
	}
}
