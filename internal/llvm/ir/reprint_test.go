package ir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestReadsWhatOptPrints requires that this package parses the output of every release's printer and optimizer for a module.
func TestReadsWhatOptPrints(t *testing.T) {
	livetest.Slow(t)
	passes := [][]string{nil, {"-passes=default<O2>"}, {"-passes=mem2reg,instcombine,simplifycfg"}}
	cases := []struct {
		file     string
		versions []int
		args     func(version int) []string
	}{
		{"common.ll", versions, opaque14},
		{"debug.ll", versions, opaque14},
		{"constants.ll", versions, opaque14},
		{"typed.ll", []int{14, 16}, func(v int) []string { return map[int][]string{16: {"-opaque-pointers=0"}}[v] }},
		{"relocate.ll", []int{16, 19, 22}, opaque14},
		{"llvm19.ll", []int{19, 22}, opaque14},
		{"llvm22.ll", []int{22}, opaque14},
	}
	for _, c := range cases {
		file := filepath.Join("testdata", c.file)
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		written := parse(t, string(src))
		for _, v := range c.versions {
			for _, pass := range passes {
				name := fmt.Sprintf("%s/%d%v", c.file, v, pass)
				args := append(c.args(v), pass...)
				out := opt(t, v, file, args...)
				m, err := Parse(name, []byte(out))
				require.NoError(t, err)
				require.NoError(t, m.Check(), name)
				if pass == nil {
					compareModules(t, name, written, m)
				}
			}
		}
	}
}

// compareModules requires that a module is unchanged after LLVM printed it: the same functions, blocks, instructions and flags with the same numbers.
func compareModules(t *testing.T, name string, want, got *Module) {
	t.Helper()
	for _, f := range want.Funcs {
		if f.Declared() {
			continue
		}
		other := got.Func(f.Name)
		require.NotNil(t, other, "%s: %s", name, f.Ref())
		a, err := f.Body()
		require.NoError(t, err)
		b, err := other.Body()
		require.NoError(t, err)
		require.Equal(t, shapeOf(a), shapeOf(b), "%s: %s", name, f.Ref())
	}
}

// shapeOf returns blocks as text, without the parts that depend on pointers or debug information.
func shapeOf(blocks []*Block) []string {
	var lines []string
	for _, b := range blocks {
		lines = append(lines, b.Name+":")
		for _, in := range b.Instrs {
			if strings.HasPrefix(intrinsic(in), "dbg.") {
				continue // LLVM 19 and later print debug records in their place
			}
			line := fmt.Sprintf("%s = %v %s flags %x", in.Name, in.Op, in.Pred, in.Flags)
			for _, a := range in.Args {
				if c, ok := a.(*Const); ok && (c.Kind == ConstExpr || a.Type().Kind == VectorKind) {
					continue // LLVM folds constant expressions, and some releases print undef in place of poison
				}
				line += " " + a.Ref()
			}
			for _, to := range in.Blocks {
				line += " " + to.Name
			}
			lines = append(lines, fmt.Sprint(line, in.Cases, in.Path))
		}
	}
	return lines
}

// TestReadsWhatLLVMStressMakes reads random modules of llvm-stress, with all instructions.
func TestReadsWhatLLVMStressMakes(t *testing.T) {
	livetest.Slow(t)
	for _, v := range versions {
		for seed := range 8 {
			src, errs, ok := llvm(t, v, "llvm-stress", "-size=300", fmt.Sprintf("-seed=%d", seed))
			require.True(t, ok, errs)
			made := parse(t, src)
			requireAsAssembled(t, v, src)
			file := write(t, "stress.ll", src)
			printed := parse(t, opt(t, v, file))
			compareModules(t, fmt.Sprintf("llvm-stress-%d seed %d", v, seed), made, printed)
			parse(t, opt(t, v, file, "-passes=default<O1>"))
		}
	}
}

func TestReadsSharedPrograms(t *testing.T) {
	for _, file := range programs(t) {
		m, err := ParseFile(file)
		require.NoError(t, err)
		require.NoError(t, m.Check())
	}
}
