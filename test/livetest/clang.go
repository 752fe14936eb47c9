package livetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// CModule compiles C sources, given by their paths, to one module of LLVM IR with clang and llvm-link of an LLVM release. It returns the path of the
// module's text.
func CModule(t testing.TB, version int, flags []string, sources ...string) string {
	t.Helper()
	modules := make([]string, len(sources))
	for i, source := range sources {
		args := append(slices.Clone(flags), source)
		modules[i] = build(t, recipe{
			output: strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)) + ".ll",
			tool:   LLVM(t, version, "clang"),
			args:   append([]string{"-S", "-emit-llvm"}, args...),
			inputs: dependencies(t, args),
		})
	}
	return build(t, recipe{output: "linked.ll", tool: LLVM(t, version, "llvm-link"), args: append([]string{"-S"}, modules...), inputs: modules})
}

// ModuleBinary builds an executable from a module of LLVM IR, given by its path, with clang of an LLVM release, without further optimization. Flags
// are passed to the linker. It returns the executable's path.
func ModuleBinary(t testing.TB, version int, module string, flags ...string) string {
	t.Helper()
	return build(t, recipe{
		output: strings.TrimSuffix(filepath.Base(module), ".ll"),
		tool:   LLVM(t, version, "clang"),
		args:   append([]string{"-O0", "-Wno-override-module", module, "-lm"}, flags...),
		inputs: []string{module},
	})
}

// DebianSource returns the directory of an unpacked Debian source package that scripts/sources.sh has fetched.
func DebianSource(t testing.TB, name string) string {
	t.Helper()
	NeedsTools(t)
	dir := filepath.Join(CacheRoot(), "sources", name)
	_, err := os.Stat(dir)
	require.NoError(t, err, "run scripts/sources.sh")
	return dir
}
