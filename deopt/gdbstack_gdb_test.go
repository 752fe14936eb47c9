package deopt_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// gdbPhysical is a physical frame printed by testdata/gdbstack/frames.py.
type gdbPhysical struct {
	PC, CFA   machine.Addr // CFA is 0 if gdb has none
	Signal    bool
	Function  string // gdb's name; "" if it prints ??
	Module    string
	RSP       machine.Addr
	Top       *machine.Addr     // the word at RSP, nil if gdb cannot read it
	Registers map[string]uint64 // callee-saved registers; those unknown to gdb are absent
}

// gdbWalk is gdb's walk of one thread.
type gdbWalk struct {
	frames []gdbPhysical
	end    string // why the last frame has no caller
}

// gdbWalks makes gdb unwind all threads of a frozen process, with debug information from another file if given.
func gdbWalks(t *testing.T, p *livetest.Process, symbols ...string) map[int]*gdbWalk {
	t.Helper()
	walks := map[int]*gdbWalk{}
	out := livetest.GDBScript(t, p, "testdata/gdbstack/frames.py", symbols...)
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte(`{"tid"`)) {
			continue // gdb's asynchronous message about new threads
		}
		var l struct {
			TID   int
			Frame *gdbPhysical
			End   string
		}
		require.NoError(t, json.Unmarshal(line, &l), "%s", line)
		if walks[l.TID] == nil {
			walks[l.TID] = &gdbWalk{}
		}
		if l.Frame != nil {
			walks[l.TID].frames = append(walks[l.TID].frames, *l.Frame)
		} else {
			walks[l.TID].end = l.End
		}
	}
	require.NotEmpty(t, walks, "%s", out)
	return walks
}
