package trace

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestTraceLibraryThatIsLoadedLate requires that every call of a library's code is an exit, although glibc relocates a library after it has reported
// it.
func TestTraceLibraryThatIsLoadedLate(t *testing.T) {
	module, err := filepath.Abs("testdata/dlopened.ll")
	require.NoError(t, err)
	host := livetest.CProgram(t, "gcc", []string{"-O1", "-Wall", "-Werror", "-ldl"}, "testdata/dlopens.c")
	m, err := ir.ParseFile(module)
	require.NoError(t, err)
	for _, c := range []struct {
		version int
		flags   string
	}{
		{14, ""}, {19, ""}, {22, ""}, // R_X86_64_64 of a symbol
		{19, "-Wl,-Bsymbolic"}, // R_X86_64_RELATIVE
		{19, "-Wl,-Bsymbolic -Wl,-z,pack-relative-relocs"},
	} {
		t.Run(fmt.Sprintf("LLVM %d %s", c.version, c.flags), func(t *testing.T) {
			flags := append([]string{"-shared", "-Wl,-z,notext"}, strings.Fields(c.flags)...)
			library := livetest.Link(t, "dlopened.so", flags, livetest.PICObject(t, c.version, module))
			ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
			defer cancel()
			s, err := ptrace.Launch(ctx, []string{host, library})
			require.NoError(t, err)
			var exits, want []string
			o := Options{Options: deopt.Options{Modules: []*ir.Module{m}}, Wait: true, Warn: func(text string) { t.Error(text) }}
			sum, err := Run(ctx, s, o, func(x *Exited) error {
				exits = append(exits, fmt.Sprint(x.Frame.Function, " ", x.Frame.Record.ID, " x=", x.Frame.Slots[0].Value, " y=", x.Frame.Slots[1].Value))
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, s.Detach())
			for i := range 100 {
				want = append(want, fmt.Sprintf("f0 1 x=%d y=2", i))
			}
			require.Equal(t, want, exits)
			require.Equal(t, End{Kind: EndExited}, sum.End)
		})
	}
}
