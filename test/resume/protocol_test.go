package resume_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// standing returns a core of tinyvm at an exit that has inlined frames and virtual objects, and the command of its interpreter.
func standing(t *testing.T) (core, serve string) {
	t.Helper()
	binary, program, serve := clitest.TinyVM(t)
	p := livetest.Program(t, binary, "--stand", "1", program)
	core = filepath.Join(t.TempDir(), "exit.core")
	r := clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core)
	require.Equal(t, 0, r.Code, r.Stderr)
	return core, serve
}

// TestProtocolCheck requires that tinyvm's interpreters in C++ and in Python comply with the protocol. Each line that is sent in either direction
// must match the schema of messages, without further members.
func TestProtocolCheck(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	core, serve := standing(t)
	_, program, _ := clitest.TinyVM(t)
	python := tinyvmtest.ServeInPython(t, program)
	seen := map[string]bool{}
	for command, summary := range map[string]string{
		serve:  "\n23 checks tried, 0 broken\n",
		python: "\n22 checks tried, 0 broken\n", // it writes only changed bytes, and the process's own memory is unchanged
	} {
		lines := filepath.Join(t.TempDir(), "lines")
		r := clitest.Run(t, "protocol", "check", command, core, "--log", lines)
		require.Equal(t, 0, r.Code, "%s\n%s", r.Stdout, r.Stderr)
		require.Contains(t, r.Stdout, summary)
		require.Contains(t, r.Stdout, "\nthe exit: 2 frames and 2 objects; it took 7 requests: 5 ranges read, ")
		require.Contains(t, r.Stdout, " written, 64 bytes allocated\n")
		text, err := os.ReadFile(lines)
		require.NoError(t, err)
		spoken(t, string(text), seen)
		require.Contains(t, string(text), `"stop":{"after":1}`)
		require.Contains(t, string(text), `"stopped":{"frames":[`)

		r = clitest.Run(t, "protocol", "check", command, core, "--json")
		require.Equal(t, 0, r.Code, r.Stderr)
		clitest.RequireValid(t, "protocol.schema.json", r.Stdout)
		require.Contains(t, r.Stdout, `"outcome": "returned i64 0x41f13c9226b00000 (4358480491)"`)
	}
	// Answers to all methods must have been validated.
	for _, method := range []string{"initialize", "resume", "memory.read", "memory.write", "memory.allocate", "symbol"} {
		require.True(t, seen[method], method)
	}
}

// spoken validates the lines of a log against the schema of messages. Unknown members are errors, except the members that the check itself adds,
// whose names contain the check's.
func spoken(t *testing.T, log string, seen map[string]bool) {
	t.Helper()
	asked := map[string]string{} // the method of each pending request, by sender and id
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"reframe.check"`) || strings.Contains(line, `"error"`) && !strings.Contains(line, `"result"`) {
			if strings.Contains(line, `"method":"resume"`) {
				asked[line[:1]+idOf(t, line)] = "resume"
			}
			continue
		}
		var m struct {
			ID             json.RawMessage
			Method         string
			Params, Result json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line[2:]), &m), line)
		messages(t, "request-or-answer", []byte(line[2:]))
		if m.Method != "" {
			asked[line[:1]+string(m.ID)] = m.Method
			messages(t, m.Method+".params", m.Params)
			continue
		}
		method := asked[map[string]string{">": "<", "<": ">"}[line[:1]]+string(m.ID)]
		require.NotEmpty(t, method, "an answer to nothing: %s", line)
		messages(t, method+".result", m.Result)
		seen[method] = true
	}
}

func idOf(t *testing.T, line string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(line[2:]), &m))
	return string(m.ID)
}

// strictMessages caches the definitions, because a test validates hundreds of lines.
var strictMessages sync.Map

// strictly returns a definition that forbids unknown members of objects.
func strictly(definition string) (*jsonschema.Schema, error) {
	schema, err := clitest.ClosedSchema("../../doc/user/schema/messages.schema.json")
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("messages.json", schema); err != nil {
		return nil, err
	}
	at := "messages.json"
	if definition != "request-or-answer" {
		at += "#/$defs/" + definition
	}
	return c.Compile(at)
}

// messages validates JSON against a definition of doc/user/schema/messages.schema.json that forbids unknown members.
func messages(t *testing.T, definition string, text []byte) {
	t.Helper()
	read, _ := strictMessages.LoadOrStore(definition, sync.OnceValues(func() (*jsonschema.Schema, error) { return strictly(definition) }))
	compiled, err := read.(func() (*jsonschema.Schema, error))()
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(v), "%s: %s", definition, text)
}

// TestProtocolPageKeepsItsSchema requires that the examples in doc/user/protocol.md match the schema.
func TestProtocolPageKeepsItsSchema(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../doc/user/protocol.md")
	require.NoError(t, err)
	asked, examples := map[string]string{}, 0
	for n, block := range strings.Split(string(page), "```") {
		text, is := strings.CutPrefix(block, "json\n")
		if n%2 == 0 || !is {
			continue
		}
		for d := json.NewDecoder(strings.NewReader(text)); d.More(); examples++ {
			var m map[string]json.RawMessage
			require.NoError(t, d.Decode(&m), text)
			id, whole := string(m["id"]), fmt.Sprint(n)
			line, err := json.Marshal(m)
			require.NoError(t, err)
			messages(t, "request-or-answer", line)
			var method string
			if err := json.Unmarshal(m["method"], &method); err == nil {
				asked[whole+id] = method
				messages(t, method+".params", m["params"])
			} else {
				messages(t, asked[whole+id]+".result", m["result"])
			}
		}
	}
	require.GreaterOrEqual(t, examples, 12)
	var outcomes int
	for line := range strings.Lines(string(page)) {
		if text, is := strings.CutPrefix(line, "| `{"); is {
			text, _, _ = strings.Cut("{"+text, "` |")
			messages(t, "resume.result", []byte(text))
			outcomes++
		}
	}
	require.Equal(t, 5, outcomes)
}

// TestProtocolCheckSaysWhatIsWrong requires that violations by an interpreter are reported with status 1, and that errors in the command line are
// reported before anything is started.
func TestProtocolCheckSaysWhatIsWrong(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	r := clitest.Run(t, "protocol", "check", "cat")
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Equal(t, "BROKEN  it answers initialize with its protocol version and a name\n"+
		"          initialize (id 1): requests are not allowed during initialize\n"+
		"\n1 check tried, 1 broken; 23 not tried: it ended during initialize\n", r.Stdout)
	r = clitest.Run(t, "protocol", "check", `sed -u 's/"id":\([0-9]*\),.*initialize.*/"id":\1,"result":{"protocol":"reframe.vm\/1","name":"sed"}}/;t;s/.*/{}/'`)
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "kept    it answers initialize with its protocol version and a name\n          it is sed\n"+
		"BROKEN  an unknown request is answered with the error -32601\n          \"{}\": not a message of JSON-RPC 2.0: \"jsonrpc\" is not \"2.0\"\n")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", 64, "usage: reframe protocol check COMMAND"},
		{"test x", 64, "usage: reframe protocol check COMMAND"},
		{"check", 64, "the command of the interpreter is missing"},
		{"check x 1 2", 64, "expected one target"},
		{"check x /dev/null", 2, "/dev/null"},
		{"check x -f 1", 64, "-f, --function, --result, --layout and --ir require a process or a core"},
		{"check x --timeout 0s", 64, "--timeout 0s: must be above 0"},
	} {
		r := clitest.Run(t, append([]string{"protocol"}, strings.Fields(c.args)...)...)
		require.Equal(t, c.code, r.Code, "%s: %s", c.args, r.Stderr)
		require.Contains(t, r.Stderr, c.says, c.args)
	}
	log := clitest.TempFile(t, "lines", "mine")
	clitest.Run(t, "protocol", "check", "true", "--log", log).FailsEmpty(t, 2, "the file exists; --force overwrites it")
}

// TestProtocolDocument requires that the screen in the document is a real one.
func TestProtocolDocument(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	core, _ := standing(t)
	vm, program, _ := clitest.TinyVM(t)
	clitest.CopyFile(t, core, filepath.Join(dir, "exit.core"))
	clitest.CopyFile(t, program, filepath.Join(dir, "points.tvm"))
	require.NoError(t, os.Symlink(vm, filepath.Join(dir, "tinyvm")))
	require.NoError(t, os.Symlink(clitest.Binary(), filepath.Join(dir, "reframe")))
	require.Len(t, clitest.TypeDocument(t, "../../doc/user/protocol.md", dir), 1)
}
