package debug_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	server "example.com/reframe/internal/debug/dap"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// driven runs another client of reframe dap. The client prints ok on success.
func driven(t *testing.T, c *exec.Cmd) {
	t.Helper()
	c.WaitDelay = livetest.Patience
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, "\n"+string(out), "\nok\n")
}

// TestDAPOfVSCode requires that a session works with the client library of Visual Studio Code that authors of debug adapters use in tests. The
// session launches a program, stops, steps in both directions, and disconnects.
func TestDAPOfVSCode(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	launch := launchNull(t)
	launch["noSelfDescription"] = true
	given, err := json.Marshal(map[string]any{
		"binary": clitest.Binary(), "patience": livetest.Patience.Milliseconds(), "launch": launch, "line": lineWith(t, launch["ir"].(string), "call void (i64, i32"),
		"attach": map[string]any{"pid": p.PID, "ir": p.IR, "layout": clitest.DeoptimizeLayout(t)},
	})
	require.NoError(t, err)
	c := exec.Command(livetest.Tool(t, "node"), "testdata/dap/vscode.js", string(given))
	c.Env = append(os.Environ(), "NODE_PATH="+livetest.NodeModules(t))
	driven(t, c)
	clitest.RequireUnharmed(t, p)
}

// TestDAPSpecification requires that the tests cover all requests of the specification, as listed in its authors' TypeScript version.
func TestDAPSpecification(t *testing.T) {
	livetest.Slow(t) // files that an earlier make check has downloaded are reused
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(livetest.NodeModules(t), "@vscode", "debugprotocol", "lib", "debugProtocol.d.ts"))
	require.NoError(t, err)
	var theirs, ours []string
	for _, m := range regexp.MustCompile(`interface \w+Request extends Request \{\s+// command: '(\w+)';`).FindAllStringSubmatch(string(text), -1) {
		theirs = append(theirs, m[1])
	}
	for _, a := range specification {
		ours = append(ours, a.request)
	}
	require.ElementsMatch(t, theirs, ours)
}

// TestDAPOfEmacs requires that the session of TestDAPOfVSCode works in Emacs with Debian's package dap-mode, in batch mode.
func TestDAPOfEmacs(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	launch := launchNull(t)
	c := exec.Command(livetest.Tool(t, "emacs"), "--batch", "-l", "testdata/dap/emacs.el")
	home := t.TempDir()
	c.Env = append(os.Environ(), "HOME="+home, "DAP_HOME="+home, "DAP_BINARY="+clitest.Binary(), fmt.Sprintf("DAP_PATIENCE=%d", int(livetest.Patience.Seconds())),
		"DAP_IR="+launch["ir"].(string), "DAP_PROGRAM="+launch["program"].(string), "DAP_ARGS="+strings.Join(launch["args"].([]string), " "))
	driven(t, c)
}

// TestVSCodeExtension requires that the tool with which extensions are published packs the extension, and that the manifest lists exactly the members
// of a launch configuration.
func TestVSCodeExtension(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	const at = "../../editors/vscode"
	modules, node := livetest.NodeModules(t), livetest.Tool(t, "node")
	out, err := exec.Command(node, "--check", at+"/extension.js").CombinedOutput()
	require.NoError(t, err, "%s", out)
	file := filepath.Join(t.TempDir(), "reframe.vsix")
	c := exec.Command(node, filepath.Join(modules, "@vscode", "vsce", "vsce"), "package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", file)
	c.Dir = at
	out, err = c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	packed, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer packed.Close()
	var names []string
	for _, f := range packed.File {
		names = append(names, f.Name)
	}
	require.ElementsMatch(t, []string{"extension.vsixmanifest", "[Content_Types].xml", "extension/package.json", "extension/extension.js", "extension/README.md"}, names)

	text, err := os.ReadFile(at + "/package.json")
	require.NoError(t, err)
	var manifest struct {
		Contributes struct {
			Debuggers []struct {
				Type                    string
				ConfigurationAttributes map[string]struct{ Properties map[string]any }
				ConfigurationSnippets   []struct{ Body map[string]any }
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &manifest))
	d := manifest.Contributes.Debuggers[0]
	require.Equal(t, "reframe", d.Type)
	offered := map[string]bool{}
	for _, of := range d.ConfigurationAttributes {
		for name := range of.Properties {
			offered[name] = true
		}
	}
	known := map[string]bool{"processId": true}
	arguments := reflect.TypeFor[server.Arguments]()
	for n := range arguments.NumField() {
		known[arguments.Field(n).Tag.Get("json")] = true
	}
	documented(t, known)
	delete(known, "noDebug") // the editor adds it itself
	delete(known, "with")    // always refused, with a reason
	require.Equal(t, known, offered)
	require.Len(t, d.ConfigurationSnippets, 3)
	for _, s := range d.ConfigurationSnippets {
		of := d.ConfigurationAttributes[s.Body["request"].(string)].Properties
		for name := range s.Body {
			require.True(t, of[name] != nil || name == "type" || name == "request" || name == "name", name)
		}
	}
}

// documented requires that doc/user/editors.md describes each member of a launch configuration, and that its examples use no other members.
func documented(t *testing.T, known map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("../../doc/user/editors.md")
	require.NoError(t, err)
	for name := range known {
		require.Contains(t, string(text), "`"+name+"`")
	}
	examples := regexp.MustCompile(`(?m)^    (\{ "type": "reframe".*\})$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, examples, 5)
	for _, m := range examples {
		var example map[string]any
		require.NoError(t, json.Unmarshal([]byte(m[1]), &example), m[1])
		for name := range example {
			require.True(t, known[name] || name == "type" || name == "request" || name == "name", name)
		}
	}
}
