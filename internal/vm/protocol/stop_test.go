package protocol_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/test/livetest"
)

// stopsBy returns the result of a resume with a stop, from an interpreter that sends this answer.
func stopsBy(t *testing.T, stop *protocol.Stop, answer string) (*protocol.Answer, error) {
	t.Helper()
	livetest.NeedsTools(t)
	script := greets + "cat <<'END'\n" + `{"jsonrpc":"2.0","id":2,"result":` + strings.ReplaceAll(answer, "\n", " ") + "}\nEND\nread l\n"
	c, err := protocol.Start(t.Context(), protocol.Spec{Command: script, Hello: hello, Errors: os.Stderr})
	require.NoError(t, err)
	defer c.Close()
	require.False(t, c.About.Step)
	a, err := c.Resume(t.Context(), &protocol.Resume{Stop: stop}, host())
	require.Equal(t, err != nil, c.Ended())
	return a, err
}

// TestStops requires that the state in which an interpreter stopped is sent back unchanged.
func TestStops(t *testing.T) {
	t.Parallel()
	a, err := stopsBy(t, &protocol.Stop{After: 3}, `{"stopped":{"frames":[
		{"method":"A.a","method_bits":"0x10","position":4,"resume":"reexecute","text":"add","locals":[{"index":2,"type":"i128","bits":"0x112233445566778899"},{"index":3,"object":7}],"stack":[{"index":0,"dead":true}],
		 "monitors":[{"owner":{"object":7},"eliminated":true}],"extra":{"depth":{"type":"i64","bits":"0x1"}},"more":1},
		{"method":"A.b","resume":"in-call"}],
		"objects":[{"id":7,"class":"C","fields":[{"at":8,"object":7}]},{"id":8}]},"steps":3,"tail":["x"]}`)
	require.NoError(t, err)
	require.Empty(t, a.Tail)
	text, err := json.Marshal(&protocol.Resume{Frames: a.Stopped.Frames, Objects: a.Stopped.Objects, Stop: &protocol.Stop{After: 1, Frames: 2}})
	require.NoError(t, err)
	require.JSONEq(t, `{"frames":[
		{"method":"A.a","method_bits":"0x10","position":4,"resume":"reexecute","text":"add","locals":[{"index":2,"type":"i128","bits":"0x112233445566778899"},{"index":3,"object":7}],"stack":[{"index":0,"dead":true}],
		 "monitors":[{"owner":{"object":7},"eliminated":true}],"extra":{"depth":{"type":"i64","bits":"0x1"}}},
		{"method":"A.b","resume":"in-call","locals":[],"stack":[]}],
		"objects":[{"id":7,"class":"C","fields":[{"at":8,"object":7}]},{"id":8,"fields":[]}],"stop":{"after":1,"frames":2}}`, string(text))
}

// TestStopsWrongly requires that an interpreter that stops elsewhere than requested, or with invalid frames, counts as broken.
func TestStopsWrongly(t *testing.T) {
	t.Parallel()
	frame := `{"method":"A.a","position":4,"resume":"reexecute","locals":[],"stack":[]}`
	for _, c := range []struct {
		stop         *protocol.Stop
		answer, says string
	}{
		{nil, `{"stopped":{"frames":[` + frame + `]},"steps":1}`, "it stopped, which was not requested"},
		{&protocol.Stop{After: 2}, `{"stopped":{"frames":[` + frame + `]},"steps":1}`, "it stopped after 1 instructions, not after 2"},
		{&protocol.Stop{After: 2}, `{"stopped":{"frames":[` + frame + `]},"steps":3}`, "it stopped after 3 instructions, not after 2"},
		{&protocol.Stop{After: 2}, `{"stopped":{"frames":[` + frame + `]}}`, "it stopped after 0 instructions, not after 2"},
		{&protocol.Stop{After: 1, Frames: 1}, `{"stopped":{"frames":[` + frame + "," + frame + `]},"steps":5}`, "it stopped in 2 frames, not in up to 1"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[]},"steps":1}`, "stopped has no frames"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[` + frame + `]},"steps":1,"returned":null}`, "it has both stopped and another outcome"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[` + frame + `]},"steps":1,"unsupported":"x"}`, "it has both unsupported and an outcome"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[{"resume":"again"}]},"steps":1}`, `stopped: frame 0: resume is "again"`},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[{"resume":"after","locals":[{"bits":"0x1"}]}]},"steps":1}`, "stopped: frame 0: a local without an index"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[{"resume":"after","stack":[{"index":2}]}]},"steps":1}`, "stopped: frame 0: place on the stack 2: it has neither bits nor an object, nor is it dead"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[{"resume":"after","stack":[{"index":2,"bits":"12"}]}]},"steps":1}`, `stopped: frame 0: place on the stack 2: "12" is not a number of the form "0x2a"`},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[{"resume":"after","monitors":[{"owner":{"object":3}}]}]},"steps":1}`, "stopped: frame 0: a monitor: it is object 3, which is not described"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[{"resume":"after","extra":{"this":{}}}]},"steps":1}`, "stopped: frame 0: this: it has neither bits nor an object, nor is it dead"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[` + frame + `],"objects":[{"id":1},{"id":1}]},"steps":1}`, "stopped has object 1 twice"},
		{&protocol.Stop{After: 1}, `{"stopped":{"frames":[` + frame + `],"objects":[{"id":1,"fields":[{"at":8,"object":2}]}]},"steps":1}`, "stopped: object 1: the field at 8: it is object 2, which is not described"},
	} {
		_, err := stopsBy(t, c.stop, c.answer)
		require.ErrorContains(t, err, "its answer to resume (id 2): "+c.says, c.answer)
	}
}
