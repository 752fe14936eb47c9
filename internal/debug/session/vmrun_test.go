package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// stepsOnce is an interpreter as a sh script. It writes into the object on the stack of Foo.bar, prints 7 and stops. When it is resumed again, it
// writes another value and runs the shell command END. It reads only the address of the object from the request.
const stepsOnce = `
read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/1","name":"sh","step":true}}'
read l; at=$(echo "$l" | sed 's/.*"stack":\[{"index":0,"type":"ref",[^}]*"bits":"\(0x[0-9a-f]*\)".*/\1/')
echo '{"jsonrpc":"2.0","id":1,"method":"memory.write","params":{"ranges":[{"at":"'$at'","data":"0102030405060708"}]}}'
read l; echo '{"jsonrpc":"2.0","method":"output","params":{"text":"7"}}'
echo '{"jsonrpc":"2.0","id":2,"result":{"steps":1,"stopped":{"frames":[{"method":"Foo.bar","position":18,"resume":"reexecute","text":"pop","locals":[{"index":0,"type":"i32","bits":"0xfffffffe"}],"stack":[{"index":0,"type":"ref","bits":"'$at'"}]},{"method":"Foo.main","position":9,"resume":"in-call"}]}}}'
read l; echo '{"jsonrpc":"2.0","id":1,"method":"memory.write","params":{"ranges":[{"at":"'$at'","data":"ffffffffffffffff"}]}}'
read l; END
`

// TestVMRunStandsWhereItStood requires that an interpreter that is cancelled, dies or fails does not change the place or the memory of the run.
// Another interpreter must continue from that place.
func TestVMRunStandsWhereItStood(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, c := range []struct{ end, says, failed string }{
		{end: "echo waits >&2; sleep 100", says: "enough"},
		{end: "exit 9", says: "its answer to resume (id 3): it has ended (exit status 9)"},
		{end: `echo '{"jsonrpc":"2.0","id":3,"result":{"unsupported":"no bytecode 0xba"}}'; read l`, failed: "no bytecode 0xba"},
	} {
		p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
		target, err := ptrace.Capture(p.PID, ptrace.Options{Hold: true, Record: true})
		require.NoError(t, err)
		t.Cleanup(target.Close)
		o := frametest.Known(t, p)
		l, err := vmlayout.Read("simple")
		require.NoError(t, err)
		o.VMs = []*vmlayout.Layout{l}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		waits := writer(func() { cancel(errors.New("enough")) })
		started := 0
		s := session.OfCore(target, session.Config{Options: o, Warn: func(text string) { t.Log(text) }, With: func(ctx context.Context, target *ptrace.Target) (*protocol.Child, error) {
			started++
			return handover.Start(ctx, fmt.Sprintf("END() { %s; }\n%s", c.end, stepsOnce), target, waits)
		}})
		t.Cleanup(s.Close)
		r, err := s.ResumeVM()
		require.NoError(t, err)
		atExit := r.Frames()
		stands := func(steps uint64, word uint64, output string) {
			t.Helper()
			require.Equal(t, []any{steps, output}, []any{r.Steps(), r.Output()})
			at, err := s.Expression("stack[0]")
			require.NoError(t, err)
			var b [8]byte
			require.NoError(t, s.ReadMemory(b[:], machine.Addr(binary.LittleEndian.Uint64(at.Bytes))))
			require.Equal(t, word, binary.LittleEndian.Uint64(b[:]))
		}
		var was [8]byte
		at, err := s.Expression("stack[0]")
		require.NoError(t, err)
		require.NoError(t, s.ReadMemory(was[:], machine.Addr(binary.LittleEndian.Uint64(at.Bytes))))
		require.NoError(t, r.Step(t.Context(), 1))
		stands(1, 0x0807060504030201, "7")
		is, err := s.Expression("local[0] + 1")
		require.NoError(t, err)
		require.Equal(t, "-1", is.Value)
		list, err := s.Levels()
		require.NoError(t, err)
		require.Equal(t, "pop", list[0].VM.Text)
		require.Equal(t, []string{"Foo.bar", "Foo.main"}, []string{list[0].VM.VM.Frames[0].Method, list[1].VM.VM.Frames[0].Method})
		require.NotNil(t, list[2].Physical)

		err = r.Step(ctx, 1)
		if c.failed == "" {
			require.ErrorContains(t, err, c.says)
		} else {
			require.NoError(t, err)
			_, failed := r.Ended()
			require.EqualError(t, failed, c.failed)
			require.Error(t, r.Step(t.Context(), 1), "it has ended")
		}
		stands(1, 0x0807060504030201, "7")
		r.Restart()
		stands(0, binary.LittleEndian.Uint64(was[:]), "")
		require.Equal(t, atExit, r.Frames())
		require.Equal(t, 1, started)
		if c.failed == "" {
			require.NoError(t, r.Step(t.Context(), 1))
			stands(1, 0x0807060504030201, "7")
			require.Equal(t, 2, started)
		}
	}
}

// writer calls a function on each write.
type writer func()

func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}
