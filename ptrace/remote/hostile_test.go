package remote

import (
	"bufio"
	"context"
	"debug/elf"
	"errors"
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
	"example.com/reframe/test/livetest"
)

// On a busy machine a stub may reply late.
func init() { defaultTime = 6 * livetest.Patience }

// pack returns a packet.
func pack(data string) string {
	sum := byte(0)
	for _, b := range []byte(data) {
		sum += b
	}
	return fmt.Sprintf("$%s#%02x", data, sum)
}

// small is a target description of x86-64 with two registers.
const small = `<target><architecture>i386:x86-64</architecture><feature name="org.gnu.gdb.i386.core">` +
	`<reg name="rsp" bitsize="64"/><reg name="rip" bitsize="64"/></feature></target>`

// healthy holds the replies of a correct stub, by the beginning of the request.
var healthy = map[string]string{
	"qSupported": pack("PacketSize=1000;qXfer:features:read+"), "?": pack("S05"), "qXfer:features": pack("l" + small), "qfThreadInfo": pack("m1"),
	"qsThreadInfo": pack("l"), "Hg": pack("OK"), "g": pack("0010000000000000" + "0020000000000000"), "m": pack("0102030405060708"),
}

// peer answers one connection at a socket. The beginning of a request selects the reply in replies or else in healthy; otherwise the reply is empty.
// A reply that begins with an exclamation mark is repeated until the connection ends; the reply "" ends the connection.
func peer(t *testing.T, replies map[string]string) string {
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
		in := bufio.NewReader(conn)
		for {
			if _, err := in.ReadString('$'); err != nil {
				return
			}
			request, err := in.ReadString('#')
			if err != nil {
				return
			}
			if _, err := in.Discard(2); err != nil {
				return
			}
			reply := pack("")
			for _, table := range []map[string]string{healthy, replies} {
				for beginning, r := range table {
					if strings.HasPrefix(request, beginning) {
						reply = r
					}
				}
			}
			endless, repeats := strings.CutPrefix(reply, "!")
			_, err = fmt.Fprint(conn, "+"+endless)
			for err == nil && repeats {
				_, err = fmt.Fprint(conn, endless)
			}
			if err != nil || reply == "" {
				return
			}
		}
	}()
	return "unix:" + path
}

// TestStopsAtConnection requires that a stub may report a stop before its first reply.
func TestStopsAtConnection(t *testing.T) {
	s, err := Open(context.Background(), peer(t, map[string]string{"qSupported": pack("T02thread:01;") + healthy["qSupported"]}), Options{})
	require.NoError(t, err)
	s.Close()
}

func TestHealthyPeer(t *testing.T) {
	s, err := Open(context.Background(), peer(t, nil), Options{})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, machine.AMD64, s.Arch)
	require.Len(t, s.Threads, 1)
	sp, err := s.Threads[0].Registers.Addr(machine.AMD64.SP)
	require.NoError(t, err)
	require.Equal(t, machine.Addr(0x1000), sp)
	_, err = s.Threads[0].Registers.Bytes(0)
	require.ErrorContains(t, err, missing)
	b := make([]byte, 8)
	n, err := s.Memory.Read(b, 0x1000)
	require.NoError(t, err)
	require.Equal(t, 8, n)
	require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8}, b)
}

// TestHostilePeers requires an error, within bounded time and memory, for each kind of wrong reply of a stub.
func TestHostilePeers(t *testing.T) {
	huge := strings.Repeat("x", maxPacket+1)
	for name, c := range map[string]struct {
		replies map[string]string
		want    string
	}{
		"ends at once":            {map[string]string{"qSupported": ""}, "the stub closed the connection"},
		"ends later":              {map[string]string{"g": ""}, "the stub closed the connection"},
		"truncated":               {map[string]string{"?": "$S0"}, "no reply within"},
		"wrong checksum":          {map[string]string{"?": "$S05#00"}, "no reply within"},
		"endless packet":          {map[string]string{"?": "!$" + strings.Repeat("x", 100)}, "a reply has more than"},
		"endless noise":           {map[string]string{"?": "!abc"}, "it does not speak"},
		"endless notifications":   {map[string]string{"?": "!%x#78"}, "it does not speak"},
		"large reply":             {map[string]string{"?": pack(huge)}, "a reply has more than"},
		"run length of nothing":   {map[string]string{"?": "$*~#a8"}, "malformed run length"},
		"no process":              {map[string]string{"?": pack("W00")}, "holds no process"},
		"error":                   {map[string]string{"?": pack("E01")}, "holds no process"},
		"no description":          {map[string]string{"qSupported": pack("")}, "does not describe its registers"},
		"description cut short":   {map[string]string{"qXfer:features": pack("l<target><architecture>")}, "target description"},
		"description without end": {map[string]string{"qXfer:features": pack("m" + strings.Repeat(" ", 3000))}, "more than 16777216 bytes"},
		"includes itself":         {map[string]string{"qXfer:features": pack(`l<target><include href="target.xml"/></target>`)}, "more than 32 files"},
		"entities":                {map[string]string{"qXfer:features": pack(`l<!DOCTYPE a [<!ENTITY b "c">]><target>&b;</target>`)}, "target description"},
		"unknown architecture":    {map[string]string{"qXfer:features": pack(`l<target><architecture>z80</architecture></target>`)}, `not supported: "z80"`},
		"size of no register":     {map[string]string{"qXfer:features": pack(`l<target><architecture>i386:x86-64</architecture><reg name="rsp" bitsize="99999999"/></target>`)}, "no valid size"},
		"offset too large":        {map[string]string{"qXfer:features": pack(`l<target><architecture>i386:x86-64</architecture><reg name="rsp" bitsize="64" offset="4000000000"/></target>`)}, "no valid offset"},
		"no threads":              {map[string]string{"qfThreadInfo": pack("l")}, "holds no process"},
		"thread of no number":     {map[string]string{"qfThreadInfo": pack("mxyz")}, "list of threads is malformed"},
		"all threads":             {map[string]string{"qfThreadInfo": pack("m-1")}, "list of threads is malformed"},
		"threads without end":     {map[string]string{"qsThreadInfo": pack("m" + strings.Repeat("1,", 2000) + "1")}, "more than 65536 threads"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := livetest.Patience
			if c.want == "no reply within" {
				limit = 500 * time.Millisecond // the limit also applies to earlier replies: on a slow machine an earlier one may be late
			}
			s, err := open(context.Background(), peer(t, c.replies), limit, Options{Timeout: livetest.Patience})
			if err == nil {
				s.Close()
			}
			require.Error(t, err)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// TestHostileThreads requires that a thread whose registers are invalid has none in the result, and that a reason is given.
func TestHostileThreads(t *testing.T) {
	for name, c := range map[string]struct {
		replies map[string]string
		want    string
	}{
		"not selected":     {map[string]string{"Hg": pack("E01")}, "the stub cannot select the thread"},
		"odd":              {map[string]string{"g": pack("001")}, "odd length"},
		"no digits":        {map[string]string{"g": pack("00100000000000zz0020000000000000")}, "malformed at rsp"},
		"unavailable":      {map[string]string{"g": pack("xxxxxxxxxxxxxxxx0020000000000000")}, "does not provide the stack pointer"},
		"short":            {map[string]string{"g": pack("0010000000000000")}, "does not provide the program counter"},
		"large":            {map[string]string{"qXfer:features": pack(strings.Replace("l"+small, `"rsp" bitsize="64"`, `"rsp" bitsize="32"`, 1))}, "rsp has 4 bytes: expected 8"},
		"escape sequences": {map[string]string{"Hg": pack("\x1b[2J")}, "the stub cannot select the thread"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(context.Background(), peer(t, c.replies), Options{})
			require.NoError(t, err)
			defer s.Close()
			require.Nil(t, s.Threads[0].Registers)
			require.Contains(t, s.Threads[0].Missing, c.want)
			require.NotContains(t, s.Threads[0].Missing, "\x1b")
		})
	}
}

// TestHostileMemory requires an error if a reply has the wrong size, and [holder.ErrLost] from the moment at which the stub stops answering.
func TestHostileMemory(t *testing.T) {
	for name, c := range map[string]struct {
		reply, want string
		lost        bool
	}{
		"error":      {pack("E14"), "cannot read it", false},
		"empty":      {pack(""), "cannot read it", false},
		"too long":   {pack(strings.Repeat("00", 100)), "answers a request for 8 bytes of memory with 200 characters", false},
		"odd":        {pack("00112"), "with 5 characters", false},
		"no digits":  {pack("zz"), "no digits", false},
		"ends":       {"", "the stub closed the connection", true},
		"not at all": {"+", "no reply within", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := open(context.Background(), peer(t, map[string]string{"m": c.reply}), livetest.Patience, Options{})
			require.NoError(t, err)
			defer s.Close()
			if c.want == "no reply within" {
				s.Memory.(*stub).timeout = 10 * time.Millisecond
			}
			_, err = s.Memory.Read(make([]byte, 8), 0x1000)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.lost, errors.Is(err, holder.ErrLost))
			if c.lost {
				_, err = s.Memory.Read(make([]byte, 8), 0x2000)
				require.ErrorIs(t, err, holder.ErrLost)
			}
		})
	}
}

// TestByteOrder requires the byte order that the auxiliary vector or the addresses in registers prove, and an error if nothing proves it.
func TestByteOrder(t *testing.T) {
	little, big := []byte{0x10, 0x20, 0x40, 0, 0, 0, 0, 0}, []byte{0, 0, 0, 0, 0, 0x40, 0x20, 0x10}
	auxv := func(b []byte) []byte { return append([]byte(nil), b...) }
	for name, c := range map[string]struct {
		auxv []byte
		v    values
		want *machine.Arch
	}{
		"little by registers": {nil, values{"pc": little, "sp": little}, machine.ARM64},
		"big by registers":    {nil, values{"pc": big, "sp": big}, machine.ARM64BE},
		"little by vector":    {auxv([]byte{33, 0, 0, 0, 0, 0, 0, 0}), values{"pc": big}, machine.ARM64},
		"big by vector":       {auxv([]byte{0, 0, 0, 0, 0, 0, 0, 33}), values{"pc": little}, machine.ARM64BE},
		"both":                {nil, values{"pc": make([]byte, 8)}, nil},
		"none":                {nil, values{"pc": {1, 2, 3, 4, 5, 6, 7, 9}}, nil},
	} {
		got, err := orderOf(machine.ARM64, c.auxv, c.v, "")
		if c.want == nil {
			require.ErrorIs(t, err, errOrder, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	// The registers of a machine after a reset fit both orders.
	after := values{"pc": {0, 0, 8, 0x40, 0, 0, 0, 0}, "sp": make([]byte, 8)}
	_, err := orderOf(machine.ARM64, nil, after, "")
	require.ErrorIs(t, err, errOrder)
	for data, want := range map[elf.Data]*machine.Arch{elf.ELFDATA2LSB: machine.ARM64, elf.ELFDATA2MSB: machine.ARM64BE} {
		program := filepath.Join(t.TempDir(), "program")
		require.NoError(t, os.WriteFile(program, append([]byte(elf.ELFMAG+"\x02"), byte(data), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0o600))
		got, err := orderOf(machine.ARM64, nil, after, program)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
