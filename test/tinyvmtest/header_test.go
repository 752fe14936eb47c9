package tinyvmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestHeader requires that the header which interpreters copy compiles as C99 and C++17 without warnings, and that a program that uses only this
// header answers as the protocol requires.
func TestHeader(t *testing.T) {
	const program = `#include "reframe_vm.h"
static void resume(const rf_json *request) {
  const rf_json *frame = rf_get(request, "frames") ? rf_get(request, "frames")->first : 0;
  rf_steps(2);
  rf_returned("i64", rf_bits(rf_get(frame, "bits")) + 1, rf_str(rf_get(frame, "text")));
}
int main(void) { rf_serve("small", resume); }
`
	dir := t.TempDir()
	header := livetest.Testdata(t, "..", "examples", "protocol")
	for _, c := range []struct{ compiler, std, file string }{{"gcc", "-std=c99", "small.c"}, {"g++", "-std=c++17", "small.cpp"}} {
		source, binary := filepath.Join(dir, c.file), filepath.Join(dir, c.compiler)
		require.NoError(t, os.WriteFile(source, []byte(program), 0o644))
		out, err := exec.Command(livetest.Tool(t, c.compiler), c.std, "-pedantic", "-Wall", "-Wextra", "-Werror", "-I", header, source, "-o", binary).CombinedOutput()
		require.NoError(t, err, "%s", out)
		cmd := exec.Command(binary)
		cmd.Stdin = strings.NewReader(strings.Join([]string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":"reframe.vm/1"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"resume","params":{"frames":[{"bits":"0xfffffffffffffffe","text":"a\"\u00e9\n"}]}}`,
			`{"jsonrpc":"2.0","id":3,"method":"resume","params":{}}`,
			`{"jsonrpc":"2.0","id":4,"method":"resume","params":{"frames":[{"bits":12,"text":null}]}}`,
			`{"jsonrpc":"2.0","id":5,"method":"nothing"}`,
			`{"jsonrpc":"2.0","method":"nothing"}`,
			strings.Repeat("[", 100) + strings.Repeat("]", 100),
			`{"jsonrpc":"2.0","id":6,"method":"resume"`,
			`[]`,
			"",
		}, "\n"))
		got, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, strings.Join([]string{
			`{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/1","name":"small"}}`,
			`{"jsonrpc":"2.0","id":2,"result":{"steps":2,"returned":{"type":"i64","bits":"0xffffffffffffffff","text":"a\u0022é\u000a"}}}`,
			`{"jsonrpc":"2.0","id":3,"result":{"steps":2,"returned":{"type":"i64","bits":"0x1"}}}`,
			`{"jsonrpc":"2.0","id":4,"result":{"steps":2,"returned":{"type":"i64","bits":"0x1"}}}`,
			`{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"no such method"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no request"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no request"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no request"}}`,
			"",
		}, "\n"), string(got))
	}
}
