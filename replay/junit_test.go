package replay_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/replay"
	"example.com/reframe/test/livetest"
)

// readJUnit reads the file with Python's parser, which is expat.
const readJUnit = `
import json, sys, xml.etree.ElementTree as tree
def show(e):
    a = {k: v for k, v in e.attrib.items() if k != "time"}
    return [e.tag, a, (e.text or "").strip(), [show(c) for c in e]]
print(json.dumps(show(tree.parse(sys.argv[1]).getroot())))
`

func TestJUnit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.xml")
	j, err := replay.CreateJUnit(path, false)
	require.NoError(t, err)
	for _, r := range []replay.Result{
		{Kind: replay.Script, Path: "osr/sum/exit.txtar", Outcome: replay.OK, MS: 1500},
		{Kind: replay.Script, Path: "bad.txtar", Outcome: replay.Failed, Message: "bad.txtar:7: expect %i = \"25\"\nit is <26> & ]]> more", Log: "> frames\n\x1b[31mred\x00\ufffe"},
		{Kind: replay.Script, Path: "/abs/it's.txtar", Outcome: replay.Skipped, Message: "needs \t lli"},
		{Kind: replay.Core, Path: "crash/\"<core>&.1\"", Outcome: replay.Partial, Message: "é %t: unavailable"},
	} {
		require.NoError(t, j.Add(&r))
	}
	require.NoFileExists(t, path, "it is not whole yet")
	require.NoError(t, j.Close())
	out, err := exec.Command(livetest.Tool(t, "python3"), "-c", readJUnit, path).Output()
	require.NoError(t, err)
	require.JSONEq(t, `["testsuites", {}, "", [["testsuite", {"name": "reframe replay", "tests": "4", "failures": "2", "errors": "0", "skipped": "1"}, "", [
		["testcase", {"name": "exit.txtar", "classname": "osr.sum", "file": "osr/sum/exit.txtar"}, "", []],
		["testcase", {"name": "bad.txtar", "classname": "scripts", "file": "bad.txtar"}, "", [
			["failure", {"type": "failed", "message": "bad.txtar:7: expect %i = \"25\""}, "bad.txtar:7: expect %i = \"25\"\nit is <26> & ]]> more", []],
			["system-out", {}, "> frames\n\ufffd[31mred\ufffd\ufffd", []]]],
		["testcase", {"name": "it's.txtar", "classname": "abs", "file": "/abs/it's.txtar"}, "", [["skipped", {"message": "needs \t lli"}, "", []]]],
		["testcase", {"name": "\"<core>&.1\"", "classname": "crash", "file": "crash/\"<core>&.1\""}, "", [
			["failure", {"type": "partial", "message": "é %t: unavailable"}, "é %t: unavailable", []]]]
	]]]]`, string(out))
	require.True(t, json.Valid(out))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), `<?xml version="1.0" encoding="UTF-8"?>`+"\n"))
	require.Contains(t, string(text), `time="1.500"`)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")

	for text, report := range map[string]bool{"": true, `<?xml version="1.0"?><testsuites></testsuites>`: true, "<html></html>": false, "exec true # <testsuite": false} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		j, err := replay.CreateJUnit(path, false)
		if !report {
			require.ErrorIs(t, err, os.ErrExist, text)
			continue
		}
		require.NoError(t, err, text)
		require.NoError(t, j.Close())
	}
	_, err = replay.CreateJUnit(filepath.Join(t.TempDir(), "no", "folder.xml"), false)
	require.ErrorIs(t, err, os.ErrNotExist)
}
