package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/test/livetest"
)

// memory is two pages from 0x1000 on; only the second is writable. The value of each byte is the low byte of its address.
type memory struct{}

func (memory) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < 0x1000 || addr+machine.Addr(len(p)) > 0x3000 {
		return fmt.Errorf("%v is not mapped", addr)
	}
	for i := range p {
		p[i] = byte(addr) + byte(i)
	}
	return nil
}

func host() *protocol.Host {
	maps := []machine.Mapping{{Start: 0x1000, End: 0x2000, Read: true}, {Start: 0x2000, End: 0x3000, Read: true, Write: true}}
	return &protocol.Host{Memory: protocol.NewOverlay(memory{}, maps, 8), Symbol: func(name string) (machine.Addr, uint64, bool) {
		return 0x2008, 8, name == "counter"
	}}
}

var hello = protocol.Hello{Arch: "x86-64", Order: "little", Pointer: 8, Target: "process"}

// greets starts a shell script that answers initialize and has read resume.
const greets = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/1","name":"sh"}}'; read l; `

// returns7 is the answer to resume.
const returns7 = `{"jsonrpc":"2.0","id":2,"result":{"returned":{"type":"i64","bits":"0x7"}}}`

// asked returns the answers to an interpreter that sends these requests, in order, line by line, and then ends the resume.
func asked(t *testing.T, h *protocol.Host, lines ...string) (answers []string, a *protocol.Answer) {
	t.Helper()
	livetest.NeedsTools(t)
	script := filepath.Join(t.TempDir(), "asks.sh")
	text := greets
	for _, line := range lines {
		text += "cat <<'END'\n" + line + "\nEND\n"
		if strings.Contains(line, `"id"`) {
			text += "read l\n"
		}
	}
	require.NoError(t, os.WriteFile(script, []byte(text+"cat <<'END'\n"+returns7+"\nEND\nread l\n"), 0o644))
	c, err := protocol.Start(t.Context(), protocol.Spec{Command: "sh " + script, Hello: hello, Errors: os.Stderr, Log: func(line []byte, sent bool) {
		if sent && !bytes.Contains(line, []byte(`"resume"`)) && !bytes.Contains(line, []byte(`"initialize"`)) {
			answers = append(answers, string(line))
		}
	}})
	require.NoError(t, err)
	defer c.Close()
	a, err = c.Resume(t.Context(), &protocol.Resume{}, h)
	require.NoError(t, err)
	return answers, a
}

// TestServes requires that requests are answered as doc/user/protocol.md describes.
func TestServes(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	for _, c := range []struct{ name, ask, want string }{
		{"reads several ranges", `{"jsonrpc":"2.0","id":1,"method":"memory.read","params":{"ranges":[{"at":"0x1ffe","size":4},{"at":"0x10","size":8},{"at":"0x2000","size":0}]}}`,
			`{"jsonrpc":"2.0","id":1,"result":[{"data":"feff0001"},{"error":"0x10 is not mapped"},{"data":""}]}`},
		{"reads no range that wraps", `{"jsonrpc":"2.0","id":1,"method":"memory.read","params":{"ranges":[{"at":"0xfffffffffffffffe","size":4}]}}`,
			`{"jsonrpc":"2.0","id":1,"result":[{"error":"0xfffffffffffffffe and 4 bytes end outside of the address space"}]}`},
		{"reads at most 4 MiB", `{"jsonrpc":"2.0","id":1,"method":"memory.read","params":{"ranges":[{"at":"0x1000","size":4194304},{"at":"0x1000","size":1}]}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"the ranges have over 4 MiB together"}}`},
		{"no negative size", `{"jsonrpc":"2.0","id":1,"method":"memory.read","params":{"ranges":[{"at":"0x1000","size":-1}]}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"range 0 has -1 bytes: must be from 0 to 4194304"}}`},
		{"not all memory", `{"jsonrpc":"2.0","id":1,"method":"memory.read","params":{"ranges":[{"at":"0x0","size":9223372036854775807}]}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"range 0 has 9223372036854775807 bytes: must be from 0 to 4194304"}}`},
		{"an address is hexadecimal", `{"jsonrpc":"2.0","id":1,"method":"memory.read","params":{"ranges":[{"at":"4096","size":1}]}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"range 0: \"4096\" is not a number of the form \"0x2a\""}}`},
		{"writes", `{"jsonrpc":"2.0","id":1,"method":"memory.write","params":{"ranges":[{"at":"0x2008","data":"ffee"}]}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"writes nothing outside", `{"jsonrpc":"2.0","id":1,"method":"memory.write","params":{"ranges":[{"at":"0x2008","data":"ffee"},{"at":"0x2fff","data":"ffee"}]}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"range 1: 0x3000 is not mapped; nothing is written"}}`},
		{"writes to nothing that is only read", `{"jsonrpc":"2.0","id":1,"method":"memory.write","params":{"ranges":[{"at":"0x1fff","data":"00"}]}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"range 0: 0x1fff is not writable; nothing is written"}}`},
		{"data are bytes", `{"jsonrpc":"2.0","id":1,"method":"memory.write","params":{"ranges":[{"at":"0x2008","data":"f"}]}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"range 0: encoding/hex: odd length hex string; nothing is written"}}`},
		{"symbols", `{"jsonrpc":"2.0","id":1,"method":"symbol","params":{"names":["counter","other"]}}`, `{"jsonrpc":"2.0","id":1,"result":[{"at":"0x2008","size":8},null]}`},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"memory.protect","params":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"reframe has no method \"memory.protect\""}}`},
		{"an allocation of all memory", `{"jsonrpc":"2.0","id":1,"method":"memory.allocate","params":{"size":18446744073709551615}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"18446744073709551615 bytes: allocations together have at most 256 MiB"}}`},
		{"an alignment that is none", `{"jsonrpc":"2.0","id":1,"method":"memory.allocate","params":{"size":8,"align":3}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"an alignment of 3: must be a power of two up to 4096"}}`},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"symbol","params":{"names":["counter"]}},{"jsonrpc":"2.0","method":"output","params":{"text":"x"}},{"jsonrpc":"2.0","id":2,"method":"nothing"}]`,
			`[{"jsonrpc":"2.0","id":1,"result":[{"at":"0x2008","size":8}]},{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"reframe has no method \"nothing\""}}]`},
		{"output that wants an answer", `{"jsonrpc":"2.0","id":1,"method":"output","params":{"text":"x"}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answers, a := asked(t, host(), c.ask)
			require.Equal(t, []string{c.want}, answers)
			require.Equal(t, protocol.Word("0x7"), a.Returned.Bits)
		})
	}
}

// TestOverlay requires that writes are read back and do not reach the target, and that allocations are at unmapped addresses.
func TestOverlay(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	h := host()
	answers, a := asked(t, h,
		`{"jsonrpc":"2.0","id":1,"method":"memory.write","params":{"ranges":[{"at":"0x2ffe","data":"aabb"}]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"memory.allocate","params":{"size":24,"align":16}}`,
		`{"jsonrpc":"2.0","id":3,"method":"memory.allocate","params":{"size":0}}`,
		`{"jsonrpc":"2.0","method":"output","params":{"text":"one "}}`,
		`{"jsonrpc":"2.0","method":"nothing to be answered"}`,
		`{"jsonrpc":"2.0","method":"output","params":{"text":"two\n"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"memory.read","params":{"ranges":[{"at":"0x2ffc","size":4},{"at":"0x200000100000","size":8},{"at":"0x200000100018","size":40}]}}`,
		`{"jsonrpc":"2.0","id":5,"method":"memory.write","params":{"ranges":[{"at":"0x200000000008","data":"cc"}]}}`,
		`{"jsonrpc":"2.0","id":6,"method":"memory.read","params":{"ranges":[{"at":"0x200000000007","size":3},{"at":"0x200000000008","size":64}]}}`)
	// The widest gap is from 0x100000 to 1 << 47; allocations begin after a quarter of it.
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"at":"0x200000000000"}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"at":"0x200000000020"}}`,
		`{"jsonrpc":"2.0","id":4,"result":[{"data":"fcfdaabb"},{"error":"0x200000100000 was not allocated"},{"error":"0x200000100018 was not allocated"}]}`,
		`{"jsonrpc":"2.0","id":5,"result":{}}`,
		`{"jsonrpc":"2.0","id":6,"result":[{"data":"00cc00"},{"error":"0x200000000021 was not allocated"}]}`}, answers) // unallocated bytes of a written page cannot be read either
	require.Equal(t, "one two\n", a.Output)
	require.Equal(t, 9, a.Requests)
	var stored []string
	for p := range h.Memory.Stored() {
		for i := range p.Data {
			if p.Bits[i/8]>>(i%8)&1 != 0 {
				stored = append(stored, fmt.Sprintf("%v: %02x", p.Addr+machine.Addr(i), p.Data[i]))
			}
		}
	}
	require.Equal(t, []string{"0x2ffe: aa", "0x2fff: bb"}, stored)
	block, ok := h.Memory.Block(0x200000000017)
	require.True(t, ok)
	require.Equal(t, machine.Range{Start: 0x200000000000, End: 0x200000000018}, block)
	_, ok = h.Memory.Block(0x200000000018) // between two allocations
	require.False(t, ok)
}

// TestBrokenInterpreters requires that each violation gives a one-line error that names the message, and ends the interpreter and all processes it
// started.
func TestBrokenInterpreters(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	request := `echo '{"jsonrpc":"2.0","id":1,"method":"symbol","params":{"names":[]}}'; `
	for _, c := range []struct{ name, script, want string }{
		{"there is none", `exec ./nothing`, `its answer to initialize (id 1): it has ended (exit status 127): sh has not found it`},
		{"dies before", `exit 3`, `its answer to initialize (id 1): it has ended (exit status 3)`},
		{"dies during", greets + `exit 3`, `its answer to resume (id 2): it has ended (exit status 3)`},
		{"dies by a signal", greets + `kill -KILL $$`, `its answer to resume (id 2): it has ended (signal: killed)`},
		{"closes its output", greets + `exec >&-; sleep 60`, `its answer to resume (id 2): it has closed its output`},
		{"is silent before", `sleep 60`, `its answer to initialize (id 1): it did not arrive in time: context deadline exceeded`},
		{"is silent", greets + `sleep 60`, `its answer to resume (id 2): it did not arrive in time: context deadline exceeded`},
		{"says what it likes", greets + `echo Segmentation fault; read l`, `"Segmentation fault": not a message: invalid character 'S' looking for beginning of value`},
		{"ends within a line", greets + `printf '{"jsonrpc":"2.0","id":2'`, `its answer to resume (id 2): it ends within a line: "{\"jsonrpc\":\"2.0\",\"id\":2"`},
		{"speaks another protocol", `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/9"}}'; read l`,
			`its answer to initialize (id 1): it speaks "reframe.vm/9"; expected "reframe.vm/1"`},
		{"speaks JSON-RPC 1", greets + `echo '{"id":2,"result":{}}'; read l`, `"{\"id\":2,\"result\":{}}": not a message of JSON-RPC 2.0: "jsonrpc" is not "2.0"`},
		{"answers what was not asked", greets + `echo '{"jsonrpc":"2.0","id":77,"result":{}}'; read l`, `an answer with the id 77: no request has this id`},
		{"answers twice", greets + `echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read l`, `an answer with the id 1: it is a second answer`},
		{"answers by another kind of id", greets + `echo '{"jsonrpc":"2.0","id":"2","result":{}}'; read l`, `an answer: its id is "\"2\""; ids of reframe are numbers`},
		{"answers nothing", greets + `echo '{"jsonrpc":"2.0","id":2}'; read l`, `its answer to resume (id 2): it has neither result nor error`},
		{"answers no outcome", greets + `echo '{"jsonrpc":"2.0","id":2,"result":{}}'; read l`, `its answer to resume (id 2): it has none of returned, threw, unsupported, malformed`},
		{"answers two outcomes", greets + `echo '{"jsonrpc":"2.0","id":2,"result":{"returned":null,"unsupported":"x"}}'; read l`, `its answer to resume (id 2): it has both unsupported and an outcome`},
		{"answers no bits", greets + `echo '{"jsonrpc":"2.0","id":2,"result":{"returned":{"type":"i64"}}}'; read l`, `its answer to resume (id 2): returned has no type, or no bits`},
		{"answers no number", greets + `echo '{"jsonrpc":"2.0","id":2,"result":{"returned":{"type":"i64","bits":"7"}}}'; read l`, `its answer to resume (id 2): returned: "7" is not a number of the form "0x2a"`},
		{"fails", greets + `echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"out of cheese"}}'; read l`, `its answer to resume (id 2): out of cheese (error -32000)`},
		{"asks by an id twice", greets + request + request + `read l`, `symbol (id 1): the id of the previous request was 1, and ids must increase`},
		{"asks by a name", greets + `echo '{"jsonrpc":"2.0","id":"a","method":"symbol"}'; read l`, `symbol (id "a"): its id is "\"a\""; expected a number`},
		{"asks before it is asked", `read l; ` + request + `read l`, `symbol (id 1): requests are not allowed during initialize`},
		{"asks and answers at once", greets + `echo '{"jsonrpc":"2.0","id":1,"method":"symbol","result":{}}'; read l`, `"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"symbol\",\"result\":{}}": both a request and an answer`},
		{"an empty batch", greets + `echo '[]'; read l`, `"[]": an empty batch`},
		{"a line without an end", greets + `head -c 20000000 /dev/zero | tr '\0' x; read l`, `its answer to resume (id 2): a line of over 16 MiB`},
		{"output without an end", greets + `x=$(head -c 1000000 /dev/zero | tr '\0' x); while :; do echo '{"jsonrpc":"2.0","method":"output","params":{"text":"'$x'"}}'; done`, `output: over 16 MiB of output`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			limit := livetest.Patience
			if strings.Contains(c.want, "in time") {
				limit = 2 * time.Second // the interpreter does not answer before that, on any machine
			}
			greeting, cancel := context.WithTimeout(t.Context(), livetest.Patience)
			defer cancel()
			if strings.Contains(c.want, "initialize") {
				greeting, cancel = context.WithTimeout(t.Context(), limit)
				defer cancel()
			}
			dir := t.TempDir()
			note := filepath.Join(dir, "pid")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "child.sh"), []byte(fmt.Sprintf("echo $$ > %s\nsleep 600 >/dev/null 2>&1 </dev/null &\n%s\n", note, c.script)), 0o644))
			command := "exec sh " + filepath.Join(dir, "child.sh")
			child, err := protocol.Start(greeting, protocol.Spec{Command: command, Hello: hello})
			if err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), limit) // the limit starts here, after initialize
				defer cancel()
				_, err = child.Resume(ctx, &protocol.Resume{}, host())
			}
			require.EqualError(t, err, command+": "+c.want)
			wrong := (*protocol.Error)(nil)
			require.ErrorAs(t, err, &wrong)
			if child != nil {
				_, again := child.Resume(t.Context(), &protocol.Resume{}, host())
				require.Equal(t, err, again)
				child.Close()
			}
			pid, err := os.ReadFile(note)
			if limit < livetest.Patience && len(pid) == 0 {
				t.Skip("the machine is so slow that the interpreter was ended before it began")
			}
			require.NoError(t, err)
			requireNoGroup(t, strings.TrimSpace(string(pid)))
		})
	}
}

// requireNoGroup waits until no process of a group runs any more: a killed process disappears a little later.
func requireNoGroup(t *testing.T, group string) {
	t.Helper()
	var pgid int
	_, err := fmt.Sscan(group, &pgid)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		if errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
			return true
		}
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		require.NoError(t, err)
		require.NotEmpty(t, stats)
		for _, path := range stats {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // the process has ended
			}
			fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // proc(5): state, parent, process group
			if fields[2] == group && fields[0] != "Z" {                               // a zombie without a waiting parent counts as ended
				return false
			}
		}
		return true
	}, livetest.Patience, 10*time.Millisecond)
}

// TestEndsWithItsInput requires that an interpreter that does not end at the end of its input is killed, with all processes it started.
func TestEndsWithItsInput(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	for name, script := range map[string]string{"at once": greets + `echo '` + returns7 + `'; read l`, "never": greets + `echo '` + returns7 + `'; trap '' TERM HUP INT; while :; do sleep 60; done`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			note := filepath.Join(t.TempDir(), "pid")
			c, err := protocol.Start(t.Context(), protocol.Spec{Command: "echo $$ > " + note + "; sleep 600 >/dev/null 2>&1 </dev/null & " + script, Hello: hello})
			require.NoError(t, err)
			_, err = c.Resume(t.Context(), &protocol.Resume{}, host())
			require.NoError(t, err)
			c.Close()
			pid, err := os.ReadFile(note)
			require.NoError(t, err)
			requireNoGroup(t, strings.TrimSpace(string(pid)))
		})
	}
}

// TestPipelining requires that an interpreter that sends many requests before it reads an answer is served: neither side waits for the other forever.
func TestPipelining(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	const n = 20_000
	script := filepath.Join(t.TempDir(), "asks.sh")
	require.NoError(t, os.WriteFile(script, []byte(greets+fmt.Sprintf(`
awk 'BEGIN { for (i = 1; i <= %d; i++) printf "{\"jsonrpc\":\"2.0\",\"id\":%%d,\"method\":\"memory.read\",\"params\":{\"ranges\":[{\"at\":\"0x1000\",\"size\":64}]}}\n", i }'
head -n %d | tail -n 1 >&2
echo '%s'
read l
`, n, n, returns7)), 0o644))
	var said bytes.Buffer
	c, err := protocol.Start(t.Context(), protocol.Spec{Command: "sh " + script, Hello: hello, Errors: &said})
	require.NoError(t, err)
	a, err := c.Resume(t.Context(), &protocol.Resume{}, host())
	require.NoError(t, err)
	require.Equal(t, n, a.Requests)
	c.Close()
	require.Contains(t, said.String(), fmt.Sprintf(`"id":%d,`, n))
}

// TestCancelled requires that a cancelled resume returns the cause, and ends the interpreter.
func TestCancelled(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	c, err := protocol.Start(ctx, protocol.Spec{Command: greets + `sleep 600`, Hello: hello})
	require.NoError(t, err)
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) }) // the script never answers: any delay is long enough
	_, err = c.Resume(ctx, &protocol.Resume{}, host())
	require.Equal(t, why, err)
	_, err = c.Resume(t.Context(), &protocol.Resume{}, host())
	require.Equal(t, why, err)
	c.Close()
}

// TestCancelledWhileAnswering requires that a resume that is cancelled during an answer, which the interpreter does not read, returns the cause and
// ends the interpreter.
func TestCancelledWhileAnswering(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	for _, ask := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"memory.read","params":{"ranges":[{"at":"0x1000","size":4096}` + strings.Repeat(`,{"at":"0x1000","size":4096}`, 100) + `]}}`, // more than a pipe holds
		`[{"jsonrpc":"2.0","id":1,"method":"memory.read","params":{"ranges":[{"at":"0x1000","size":4096}` + strings.Repeat(`,{"at":"0x1000","size":4096}`, 100) + `]}}]`,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why, h := errors.New("enough"), host()
		script := filepath.Join(t.TempDir(), "asks.sh")
		require.NoError(t, os.WriteFile(script, []byte(greets+"cat <<'END'\n"+ask+"\nEND\nsleep 600\n"), 0o644))
		c, err := protocol.Start(ctx, protocol.Spec{Command: "sh " + script, Hello: hello})
		require.NoError(t, err)
		h.Progress = func(int) { time.AfterFunc(50*time.Millisecond, func() { cancel(why) }) } // the script never reads: any delay is long enough
		_, err = c.Resume(ctx, &protocol.Resume{}, h)
		require.Equal(t, why, err)
		c.Close()
	}
}
