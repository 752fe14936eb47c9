//go:build linux && amd64

package debug_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// listening is a debug adapter that waits for a client.
type listening struct {
	c     *exec.Cmd
	at    string
	lines *bufio.Scanner // lines of its standard error
}

func listen(t *testing.T, flags ...string) *listening {
	t.Helper()
	livetest.NeedsTools(t)
	c := clitest.Command(t, append([]string{"dap", "--listen", "127.0.0.1:0"}, flags...)...)
	stderr, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	l := &listening{c: c, lines: bufio.NewScanner(stderr)}
	l.at = l.after(t, "listening on ")
	return l
}

// after reads the next line, which must begin with prefix, and returns the rest of the line.
func (l *listening) after(t *testing.T, prefix string) string {
	t.Helper()
	require.True(t, l.lines.Scan(), "reframe ended")
	rest, found := strings.CutPrefix(l.lines.Text(), prefix)
	require.True(t, found, "%q does not begin with %q", l.lines.Text(), prefix)
	return rest
}

func (l *listening) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.at)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// client connects a client.
func (l *listening) client(t *testing.T) *editor {
	conn := l.dial(t)
	e := connected(t, conn, conn)
	e.c = l.c
	return e
}

// spelled returns a message of the protocol with its header.
func spelled(content string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(content), content)
}

// TestDAPListenRefusesAttacks requires that peers which are not clients of the same user are refused. They must not start a program, and must not end
// the adapter.
func TestDAPListenRefusesAttacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	made := filepath.Join(dir, "made")
	initialize := spelled(`{"seq":1,"type":"request","command":"initialize","arguments":{"adapterID":"x"}}`)
	launch := spelled(fmt.Sprintf(`{"seq":2,"type":"request","command":"launch","arguments":{"program":"/bin/sh","args":["-c","echo made > %s"]}}`, made))
	l := listen(t)

	t.Log("another user")
	_, port, err := net.SplitHostPort(l.at)
	require.NoError(t, err)
	stranger := clitest.AsNobody(t, exec.Command(livetest.Tool(t, "bash"), "-c", fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%s; cat >&3; cat <&3`, port)))
	stranger.Stdin = strings.NewReader(initialize + launch)
	answer, _ := stranger.Output() // the connection may end while it writes
	require.Empty(t, answer)
	require.Contains(t, l.after(t, "refused "), "the connection belongs to user 65534, not to the user who runs reframe")

	for _, attack := range []struct{ name, sent, why string }{
		{"a page's HTTP POST", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" + initialize + launch, `"POST / HTTP/1.1" is not a header field`},
		{"an HTTP request without its first line", "Host: localhost\r\n" + initialize + launch, `"Host: localhost" is not a header field`},
		{"another field after the length", "Content-Length: 2\r\nOrigin: x\r\n\r\n{}" + initialize + launch, `"Origin: x" is not a header field`},
		{"no length", "\r\n\r\n" + initialize + launch, "a header without Content-Length"},
		{"a length below zero", "Content-Length: -1\r\n\r\n" + initialize + launch, `Content-Length "-1"`},
		{"a message that is too long", "Content-Length: 99999999\r\n\r\n", "the limit is 4194304"},
		{"a header that is too long", strings.Repeat("Content-Length: 1\r\n", 1000) + initialize + launch, "a header of more than 4096 bytes"},
		{"no JSON", spelled("launch") + initialize + launch, "not a message of the Debug Adapter Protocol"},
	} {
		t.Log(attack.name)
		conn := l.dial(t)
		_, _ = io.WriteString(conn, attack.sent) // the adapter may close the connection before it has read everything
		require.Contains(t, l.after(t, "refused "), attack.why)
		conn.Close()
	}
	for name, sent := range map[string]string{"initialize alone": initialize, "launch before initialize": launch} {
		t.Log(name)
		conn := l.dial(t)
		_, err := io.WriteString(conn, sent)
		require.NoError(t, err)
		_, err = dap.ReadProtocolMessage(bufio.NewReader(conn))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Contains(t, l.after(t, "refused "), "the client disconnected without a launch or attach request")
	}
	require.NoError(t, l.dial(t).Close()) // the connection closes before or after reframe looks up its user
	require.Regexp(t, "without a launch or attach|cannot determine the user", l.after(t, "refused "))

	e := l.client(t)
	require.NoFileExists(t, made)
	e.begin("launch", map[string]any{"program": "/bin/true"})
	e.disconnect()
}

// TestDAPListenAsksForTheToken requires that with --from-anywhere the token, and not the user, identifies the client.
func TestDAPListenAsksForTheToken(t *testing.T) {
	t.Parallel()
	l := listen(t, "--from-anywhere")
	token := strings.Trim(l.after(t, `the launch configuration must have "token": `), `"`)
	require.GreaterOrEqual(t, len(token), 26, "128 bits in base 32")
	for _, wrong := range []map[string]any{{}, {"token": ""}, {"token": token[1:]}, {"token": strings.ToLower(token)}} {
		e := l.client(t)
		ask[*dap.InitializeResponse](e, "initialize", map[string]any{"adapterID": "x"})
		wrong["program"] = "/bin/true"
		e.refused("launch", wrong, `"token" of the launch configuration is missing or wrong`)
		require.Contains(t, l.after(t, "refused "), "disconnected without")
	}
	e := l.client(t)
	e.begin("launch", map[string]any{"program": "/bin/true", "token": token})
	e.disconnect()
}
