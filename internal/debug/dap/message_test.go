package dap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

func TestReadsMessages(t *testing.T) {
	read := func(text string) (string, error) {
		content, err := readContent(bufio.NewReader(strings.NewReader(text)))
		return string(content), err
	}
	for text, want := range map[string]string{
		"Content-Length: 2\r\n\r\n{}":                                                  "{}",
		"Content-Length: 0\r\n\r\n":                                                    "",
		"content-length:3\r\n\r\nabcdef":                                               "abc",
		"Content-Type: x\r\nContent-Length: 1\r\n\r\nz":                                "z",
		"Content-Length: 1\n\nz":                                                       "z",
		"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab":                             "ab",
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 1<<20, strings.Repeat("x", 1<<20)): strings.Repeat("x", 1<<20),
	} {
		got, err := read(text)
		require.NoError(t, err, "%.60q", text)
		require.Equal(t, want, got)
	}
	for text, why := range map[string]string{
		"":                                "EOF",
		"Content-Length: 5\r\n\r\nab":     "unexpected EOF",
		"Content-Length: 5\r\n":           "unexpected EOF",
		"Content":                         "unexpected EOF",
		"\r\n\r\n":                        "not a message of the Debug Adapter Protocol: a header without Content-Length",
		"Content-Length: -1\r\n\r\n":      `Content-Length "-1": expected a number of bytes`,
		"Content-Length: 4194305\r\n\r\n": "a message of 4194305 bytes: the limit is 4194304",
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}": `"POST / HTTP/1.1" is not a header field of the Debug Adapter Protocol: expected Content-Length`,
		"Content-Length: 2\r\nHost: localhost\r\n\r\n{}":                    `"Host: localhost" is not a header field of the Debug Adapter Protocol: expected Content-Length`,
		strings.Repeat("Content-Type: y\r\n", 1000) + "\r\n":                "not a message of the Debug Adapter Protocol: a header of more than 4096 bytes",
		strings.Repeat("x", 5000):                                           "not a message of the Debug Adapter Protocol: a header of more than 4096 bytes",
	} {
		_, err := read(text)
		require.EqualError(t, err, why, "%.60q", text)
	}
}

func TestHitCounts(t *testing.T) {
	for text, want := range map[string][]uint64{"": {1, 2, 3, 4, 5, 6}, "3": {3}, " == 3 ": {3}, ">= 5": {5, 6}, ">4": {5, 6}, "% 2": {2, 4, 6}} {
		stops, err := parseHits(text)
		require.NoError(t, err)
		var got []uint64
		for n := uint64(1); n <= 6; n++ {
			if stops == nil || stops(n) {
				got = append(got, n)
			}
		}
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"x", "0", "% 0", "-1", "1.5", "< 3", "99999999999999999999"} {
		_, err := parseHits(text)
		require.Error(t, err, text)
	}
}

func TestLogMessages(t *testing.T) {
	slots := []frame.Slot{{Name: "%i", Status: frame.OK, Value: "5", Hex: "0x5", Type: frame.Type{Kind: frame.Int, Bits: 64, Source: "i64"}, Bytes: []byte{5, 0, 0, 0, 0, 0, 0, 0}},
		{Index: 1, Name: "%gone", Status: frame.Missing, Reason: "it is gone"}}
	for text, want := range map[string]string{"": "", "here": "here", "i is {%i}, not {i + 1}!": "i is 5, not 6!", "{gone}": "unavailable: it is gone", "{%gone + 1}": "{%gone + 1: it is gone}"} {
		m, err := parseMessage(text)
		require.NoError(t, err)
		require.Equal(t, want, m.of(slots), text)
	}
	for _, text := range []string{"{", "{%i", "{}", "{1 +}"} {
		_, err := parseMessage(text)
		require.Error(t, err, text)
	}
}

func TestCutCharacters(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "aä": 0, "a\xc3": 1, "\xe2\x82": 2, "\xf0\x9f\x98": 3, "\xf0\x9f\x98\x80": 0, "\xff\xff": 0, "\x80\x80\x80\x80": 0} {
		require.Equal(t, want, cut([]byte(text)), "%q", text)
	}
}

// nothing is an [Opener] that always fails.
func nothing(context.Context, *Opening) (*Target, error) { return nil, errors.New("there is none") }

// FuzzServe requires that every request is answered once, in the form of the protocol, and that nothing panics. The input has one message per line.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"seq":1,"type":"request","command":"initialize","arguments":{"adapterID":"x"}}` + "\n" + `{"seq":2,"type":"request","command":"launch","arguments":{"program":"true"}}`))
	f.Add([]byte(`{"seq":1,"type":"request","command":"initialize"}` + "\n" + `{"seq":2,"type":"request","command":"attach","arguments":{"pid":[],"ir":5,"processId":"7"}}` + "\n" + `{"seq":3,"type":"request","command":"disconnect"}`))
	f.Add([]byte(`{"seq":1,"type":"request","command":"threads"}` + "\n" + `{"type":"event"}` + "\n" + `{"seq":-5,"type":"request","command":"variables","arguments":{"variablesReference":"x"}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var in, out bytes.Buffer
		requests := 0
		for line := range bytes.Lines(input) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", len(line), line)
			requests++
		}
		_ = (&Server{Open: nothing}).Serve(t.Context(), &in, &out)
		r := bufio.NewReader(&out)
		for n := 0; ; n++ {
			m, err := dap.ReadProtocolMessage(r)
			if err == io.EOF {
				break
			}
			var unknown *dap.DecodeProtocolMessageFieldError
			if !errors.As(err, &unknown) { // the DAP library cannot decode the response to an unknown command
				require.NoError(t, err)
				require.Equal(t, n+1, m.GetSeq())
			}
			require.Less(t, n, requests)
		}
	})
}

// FuzzReadContent requires that arbitrary bytes do not panic.
func FuzzReadContent(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}"))
	f.Add([]byte("Content-Length: 99999\r\n\r\n{}"))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bufio.NewReader(bytes.NewReader(input))
		for {
			content, err := readContent(r)
			if err != nil {
				return
			}
			require.LessOrEqual(t, len(content), len(input))
			_, _ = decode(content)
		}
	})
}
