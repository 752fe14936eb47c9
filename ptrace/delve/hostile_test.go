package delve

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// peer starts a server for one connection at a socket. It sends the reply listed for a method. Other methods, and the first sound requests for listed
// methods, get the reply of a correct server whose process is on another machine.
func peer(t *testing.T, replies map[string]func(net.Conn, uint64), sound int) string {
	t.Helper()
	return listen(t, func(conn net.Conn, method string, params json.RawMessage, id uint64) {
		if reply := replies[method]; reply != nil {
			if sound--; sound < 0 {
				reply(conn, id)
				return
			}
		}
		answer(healthy(method, params))(conn, id)
	})
}

// listen accepts one connection at a socket and returns its address. It calls reply for each request, and at the end the functions of after.
func listen(t *testing.T, reply func(conn net.Conn, method string, params json.RawMessage, id uint64), after ...func() error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peer")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for _, f := range after {
			defer f()
		}
		requests := json.NewDecoder(conn)
		for {
			var r struct {
				Method string
				Params []json.RawMessage
				ID     uint64
			}
			if requests.Decode(&r) != nil {
				return
			}
			reply(conn, strings.TrimPrefix(r.Method, "RPCServer."), r.Params[0], r.ID)
		}
	}()
	return "unix:" + path
}

// relay forwards the requests of one connection to dlv. change returns the result that the client gets instead of dlv's.
func relay(t *testing.T, addr string, change func(method, params string, result json.RawMessage) json.RawMessage) string {
	t.Helper()
	c, err := dial(t.Context(), addr, livetest.Patience)
	require.NoError(t, err)
	return listen(t, func(conn net.Conn, method string, params json.RawMessage, id uint64) {
		var result json.RawMessage
		if err := c.call(method, params, &result); err != nil {
			text, _ := json.Marshal(err.Error())
			send(fmt.Sprintf(`{"id":%d,"result":null,"error":%s}`, id, text))(conn, id)
			return
		}
		answer(change(method, string(params), result))(conn, id)
	}, c.conn.Close)
}

// answer replies with a result.
func answer(result any) func(net.Conn, uint64) {
	return func(conn net.Conn, id uint64) {
		text, err := json.Marshal(map[string]any{"id": id, "result": result, "error": nil})
		if err == nil {
			_, _ = conn.Write(text)
		}
	}
}

// send replies with a text, in which %d stands for the number of the request. If another text is given, send repeats that text until a write fails.
func send(text string, again ...string) func(net.Conn, uint64) {
	return func(conn net.Conn, id uint64) {
		_, err := fmt.Fprint(conn, strings.ReplaceAll(text, "%d", fmt.Sprint(id)))
		for err == nil && len(again) > 0 {
			_, err = fmt.Fprint(conn, again[0])
		}
	}
}

func hangUp(conn net.Conn, _ uint64) { conn.Close() }

func healthy(method string, params json.RawMessage) any {
	switch method {
	case "GetVersion":
		return version{"Version: 1.27.2", 2, "native"}
	case "State":
		return map[string]any{"State": state{PID: 1 << 30, Command: "/bin/x", Threads: []thread{{ID: 1 << 30, PC: 2}}}}
	case "ListRegisters":
		return map[string]any{"Regs": formatted(machine.AMD64, 16)}
	case "ListTargets":
		return map[string]any{"Targets": []map[string]int{{"Pid": 1 << 30}}}
	case "ExamineMemory":
		var args struct{ Length int }
		if json.Unmarshal(params, &args) != nil || args.Length > maxRead {
			return nil
		}
		return map[string]any{"Mem": make([]byte, args.Length)}
	}
	return map[string]any{}
}

// TestHostileServers opens targets of servers that violate the protocol. Each error must be one line, and say what dlv does to the process at the end
// of the connection.
func TestHostileServers(t *testing.T) {
	regs := formatted(machine.AMD64, 16)
	big := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		method string
		reply  func(net.Conn, uint64)
		want   string
	}{
		"healthy":          {"", nil, ""},
		"silent":           {"GetVersion", func(net.Conn, uint64) {}, "no reply to GetVersion within 300ms"},
		"hangs up at once": {"GetVersion", hangUp, "it closed the connection without a reply"},
		"hangs up later":   {"ListRegisters", hangUp, "it closed the connection during ListRegisters"},
		"truncated":        {"State", func(conn net.Conn, id uint64) { send(`{"id":%d,"result":{"Sta`)(conn, id); conn.Close() }, "it closed the connection during State"},
		"endless space":    {"State", send(" ", strings.Repeat(" ", 1<<16)), "its reply to State is longer than 16 MiB"},
		"endless string":   {"State", send(`{"id":%d,"result":"`, big), "its reply to State is longer than 16 MiB"},
		"endless list":     {"ListBreakpoints", send(`{"id":%d,"result":{"Breakpoints":[{}`, strings.Repeat(",{}", 1<<16)), "its reply to ListBreakpoints is longer than 16 MiB"},
		"deep":             {"State", send(`{"id":%d,"result":` + strings.Repeat("[", 1<<20)), "its reply to State is malformed"},
		"drips": {"State", func(conn net.Conn, _ uint64) {
			for _, err := conn.Write([]byte(" ")); err == nil; _, err = conn.Write([]byte(" ")) {
				time.Sleep(10 * time.Millisecond)
			}
		}, "no reply to State within 300ms"},
		"not JSON":              {"GetVersion", send("HTTP/1.1 400 Bad Request\r\n"), "its reply to GetVersion is malformed: invalid character 'H'"},
		"wrong number":          {"State", send(`{"id":77,"result":{},"error":null}`), "its reply to State has the number of another request"},
		"no number":             {"State", send(`{"result":{},"error":null}`), "its reply to State has the number of another request"},
		"wrong type":            {"State", send(`{"id":%d,"result":{"State":{"Pid":"x"}},"error":null}`), "its reply to State is malformed: json: cannot unmarshal string"},
		"error of many lines":   {"State", send(`{"id":%d,"result":null,"error":"Internal\u001b[31m debugger error\nframe\nframe"}`), "Internal\ufffd[31m debugger error ..."},
		"error of wrong type":   {"State", send(`{"id":%d,"result":null,"error":{"a":1}}`), "its error for State is malformed"},
		"long error":            {"State", send(`{"id":%d,"result":null,"error":"` + big + `"}`), strings.Repeat("x", maxText) + " ..."},
		"no state":              {"State", answer(nil), "its reply to State contains no state"},
		"no thread":             {"State", answer(map[string]any{"State": state{PID: 1}}), "it lists no thread"},
		"the same thread":       {"State", answer(map[string]any{"State": state{PID: 1, Threads: []thread{{ID: 1}, {ID: 1}}}}), "it lists thread 1 twice"},
		"runs":                  {"State", answer(map[string]any{"State": state{Running: true}}), "the process runs, and is not stopped by this command"},
		"exited":                {"State", answer(map[string]any{"State": state{Exited: true, Status: 3}}), "the process has exited with status 3"},
		"a core":                {"GetVersion", answer(version{"", 2, "core"}), "takes memory that a core omits from the wrong files"},
		"an old API":            {"GetVersion", answer(version{"", 1, "native"}), "its API has version 1"},
		"no registers":          {"ListRegisters", answer(map[string]any{}), "has the registers of an architecture that is not supported"},
		"a register is missing": {"ListRegisters", answer(map[string]any{"Regs": regs[1:]}), "register rax is missing"},
		"a short read":          {"ExamineMemory", answer(map[string]any{"Mem": []byte{1}}), "it returned 1 bytes of memory instead of"},
		"a long read":           {"ExamineMemory", answer(map[string]any{"Mem": make([]byte, 1<<20)}), "it returned 1048576 bytes of memory instead of"},
		"dies at memory":        {"ExamineMemory", hangUp, "it closed the connection during ExamineMemory"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := peer(t, map[string]func(net.Conn, uint64){c.method: c.reply}, 0)
			limit := livetest.Patience
			if strings.HasSuffix(c.want, "within 300ms") {
				limit = 300 * time.Millisecond
			}
			s, err := Open(t.Context(), addr, Options{Timeout: limit})
			if c.want == "" {
				require.NoError(t, err)
				require.NoError(t, s.Close())
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, c.method != "GetVersion" && name != "exited", strings.HasSuffix(err.Error(), "after this command it ends, and kills the process, which it started)"))
			require.Less(t, len(err.Error()), 500)
		})
	}
}

// TestLostServer requires an error for memory that is read after the server has closed the connection. The memory must not count as unmapped.
func TestLostServer(t *testing.T) {
	addr := peer(t, map[string]func(net.Conn, uint64){"ExamineMemory": hangUp}, 130) // the first 130 requests search for the auxiliary vector
	s, err := Open(t.Context(), addr, Options{})
	require.NoError(t, err)
	defer s.Close()
	for err == nil {
		_, err = s.Memory.Read(make([]byte, maxRead), 1<<20)
	}
	require.ErrorIs(t, err, holder.ErrLost)
	_, again := s.Memory.Read(make([]byte, 1), 1<<20)
	require.Equal(t, err, again)
}

// TestAddresses requires one-line errors for wrong addresses.
func TestAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"":                 "not an address: expected HOST:PORT or unix:PATH",
		"1234":             "not an address",
		"unix:/no/such":    "cannot connect: no such file or directory",
		"127.0.0.1:1":      "cannot connect: connection refused",
		"127.0.0.1:100000": "cannot connect",
	} {
		_, err := Open(t.Context(), addr, Options{})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestOtherProcess requires that no file of a process is used if the server holds another process. The replies describe a process of this machine,
// except for one difference.
func TestOtherProcess(t *testing.T) {
	p, _, addr := attached(t)
	replies := map[string]json.RawMessage{}
	s, err := Open(t.Context(), relay(t, addr, func(method, params string, result json.RawMessage) json.RawMessage {
		replies[method+params] = result
		return result
	}), Options{})
	require.NoError(t, err)
	require.NotNil(t, s.Mappings)
	sp, err := s.Threads[0].Registers.Addr(machine.AMD64.SP)
	require.NoError(t, err)

	other := func(change func(method string, result json.RawMessage) any) {
		t.Helper()
		s, err := Open(t.Context(), listen(t, func(conn net.Conn, method string, params json.RawMessage, id uint64) {
			result, known := replies[method+string(params)]
			if !known {
				answer(healthy(method, params))(conn, id)
				return
			}
			answer(change(method, result))(conn, id)
		}), Options{})
		require.NoError(t, err)
		defer s.Close()
		require.Nil(t, s.Mappings)
		require.Nil(t, s.Auxv)
		var b [16]byte
		_, err = s.Memory.Read(b[:], sp+1<<20)
		require.NoError(t, err)
		require.Zero(t, b) // the server's memory
	}
	other(func(method string, result json.RawMessage) any {
		if method != "ListRegisters" {
			return result
		}
		return json.RawMessage(strings.ReplaceAll(string(result), fmt.Sprintf("0x%016x", uint64(sp)), fmt.Sprintf("0x%016x", uint64(sp+8))))
	})
	other(func(method string, result json.RawMessage) any {
		if method != "ExamineMemory" {
			return result
		}
		return map[string]any{"Mem": make([]byte, 64)}
	})

	// Memory that cannot be read verifies nothing.
	c, err := dial(t.Context(), listen(t, func(conn net.Conn, method string, params json.RawMessage, id uint64) {
		answer(replies[method+string(params)])(conn, id)
	}), livetest.Patience)
	require.NoError(t, err)
	defer c.conn.Close()
	first, err := c.getState()
	require.NoError(t, err)
	process := &process{client: c, backend: "native", pid: p.PID, first: first}
	process.watch()
	require.NoError(t, process.readThreads())
	empty, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer empty.Close()
	here, err := process.isHere(&here{mem: empty})
	require.NoError(t, err)
	require.False(t, here)

	// Without a tracer, the process also waits at these addresses.
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool { return system.StatusField(p.PID, "TracerPid") == "0" }, livetest.Patience, time.Millisecond)
	p.AwaitPause(t)
	other(func(_ string, result json.RawMessage) any { return result })
}
