package main_test

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// valid holds JSON against a schema of doc.
func valid(t *testing.T, schema, text string) {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../doc/" + schema)
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err, text)
	require.NoError(t, s.Validate(v), text)
}

// Whatever maps is asked, its JSON is what the schema under doc says.
func TestMapsSchema(t *testing.T) {
	t.Parallel()
	statepoint := livetest.Object(t, 19, "jit_sp.ll")
	patchpoint := livetest.Object(t, 19, "jit_pp.ll")
	broken := changed(t, patchpoint, "broken.o", func(b []byte, at int) []byte { b[at] = 9; return b })
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	for _, args := range [][]string{
		{statepoint},
		{statepoint, "--ir", p.IR},
		{patchpoint},
		{patchpoint, "--function", "wor."},
		{patchpoint, "--function", "nothing"},
		{patchpoint, "--record", "2001"},
		{patchpoint, "--address", "0x1"},
		{"-p", pid(p)},
		{"-p", pid(p), "--ir", p.IR},
	} {
		r := reframe(t, append([]string{"maps", "--json"}, args...)...)
		require.Contains(t, []int{0, 1}, r.code, "%v\n%s", args, r.stderr)
		valid(t, "maps.schema.json", r.stdout)
	}
	for _, args := range [][]string{{statepoint}, {statepoint, "--ir", p.IR}, {broken}, {"-p", pid(p)}, {"-p", pid(p), "--ir", p.IR}} {
		r := reframe(t, append([]string{"maps", "--check", "--json"}, args...)...)
		require.Contains(t, []int{0, 1}, r.code, "%v\n%s", args, r.stderr)
		valid(t, "check.schema.json", r.stdout)
	}
}
