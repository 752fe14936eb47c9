package interp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestStringsOfLibstdcxx requires that statements of doc/user/interpreter.md about std::string in libstdc++ are true. With the compiler flags given
// there, a module contains all code of std::string. Without them only the library contains it, even with -D_GLIBCXX_EXTERN_TEMPLATE=0.
func TestStringsOfLibstdcxx(t *testing.T) {
	livetest.Slow(t)
	const program = `#include <cstdio>
#include <string>
#include <vector>
int main(int argc, char **) {
  std::string s;
  for (int i = 0; i < 40; i++) s += char('a' + (i + argc) % 26);
  std::string t = s.substr(3, 5) + "x";
  s.insert(2, "zz");
  std::vector<std::string> v;
  v.push_back(t);
  v.push_back(s.append("end"));
  std::printf("%s %s %d\n", v[0].c_str(), v[1].c_str(), int(s.find("end")));
  return 0;
}
`
	dir := t.TempDir()
	source, module, native := filepath.Join(dir, "s.cpp"), filepath.Join(dir, "s.ll"), filepath.Join(dir, "s")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	build := func(args ...string) {
		livetest.Make(t, "clang-19", append(args, "-fno-exceptions", "-x", "c++", source)...)
	}
	build("-O1", "-o", native, "-lstdc++")
	want := status(t, native)
	require.NotEmpty(t, want.Output)
	for _, flags := range []string{"-std=c++20 -O1", "-std=c++20 -O2", "-std=c++17 -O1 -D_GLIBCXX_ASSERTIONS", "-std=c++11 -O2 -D_GLIBCXX_ASSERTIONS"} {
		build(append(strings.Fields(flags), "-S", "-emit-llvm", "-o", module)...)
		text, err := os.ReadFile(module)
		require.NoError(t, err)
		require.Equal(t, want, interpreted(t, string(text)), flags)
	}
	for _, flags := range []string{"-std=c++17 -O1", "-std=c++17 -O1 -D_GLIBCXX_EXTERN_TEMPLATE=0"} {
		build(append(strings.Fields(flags), "-S", "-emit-llvm", "-o", module)...)
		text, err := os.ReadFile(module)
		require.NoError(t, err)
		require.Contains(t, string(text), "\ndeclare void @_ZNSt7__cxx1112basic_string", flags)
	}
}
