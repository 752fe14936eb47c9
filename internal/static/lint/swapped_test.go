package lint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/livetest"
)

// TestLintSwapped requires a finding if a layout gives one value the name of another value that has a slot too; the finding names both. Names of one
// value in two functions mostly agree. There is no finding for a name that the site does not have, for a value whose own name no slot uses, or for an
// exit whose conditions no values of the site meet.
func TestLintSwapped(t *testing.T) {
	t.Parallel()
	const head = `{"schema":"reframe.layout/v1","exits":[
 {"function":"sum_opt","when":[{"operand":0,"equals":3}],"resume":{"function":"sum","block":"loop"},
  "slots":[
`
	m, err := ir.ParseFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	for slots, want := range map[string][]string{
		"{\"operand\":1,\"name\":\"%i\"},\n{\"operand\":2,\"name\":\"%acc\"},\n{\"operand\":3,\"name\":\"%n\"}": {},
		"{\"operand\":1,\"name\":\"acc\"},\n{\"operand\":2,\"name\":\"%i\"},\n{\"operand\":3,\"name\":\"%n\"}": {
			"4 exits[0].slots[0] warning: swapped", "5 exits[0].slots[1] warning: swapped",
		},
		"{\"operand\":3,\"name\":\"%i\"},\n{\"operand\":1,\"name\":\"%acc\"},\n{\"operand\":2,\"name\":\"%n\"}": {
			"4 exits[0].slots[0] warning: swapped", "5 exits[0].slots[1] warning: swapped", "6 exits[0].slots[2] warning: swapped",
		},
		// The slots leave out %acc and do not give it another name, which may be intended.
		"{\"operand\":1,\"name\":\"%acc\"},\n{\"operand\":3,\"name\":\"%n\"}": {"31 cannot resume: unrecorded %i"},
	} {
		l, err := layout.Parse("exits.json", []byte(head+slots+"]}]}"))
		require.NoError(t, err)
		require.ElementsMatch(t, want, linted(t, m, l), slots)
	}
	l, err := layout.Parse("exits.json", []byte(head+"{\"operand\":1,\"name\":\"%acc\"},{\"operand\":2,\"name\":\"%i\"},{\"operand\":3,\"name\":\"%n\"}]}]}"))
	require.NoError(t, err)
	report, err := lint.Lint([]*ir.Module{m}, []*layout.Layout{l})
	require.NoError(t, err)
	require.Equal(t, "operand 1, which is %i in @sum_opt, becomes %acc, and operand 2, which is %acc, becomes %i", report.Findings[0].What)
	require.Equal(t, "exchange the operands, unless the names have other meanings in @sum", report.Findings[0].Do)
}
