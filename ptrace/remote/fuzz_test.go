package remote

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"example.com/reframe/ptrace/holder"
)

// recorded is a stream of replies that does not depend on the requests.
type recorded struct{ *bytes.Reader }

func (recorded) Write(b []byte) (int, error)   { return len(b), nil }
func (recorded) Close() error                  { return nil }
func (recorded) SetDeadline(t time.Time) error { return nil }

// FuzzReplies requires that no stream of replies causes a panic or an endless loop.
func FuzzReplies(f *testing.F) {
	whole := strings.Join([]string{"", healthy["qSupported"], healthy["?"], healthy["qXfer:features"], healthy["qfThreadInfo"], healthy["qsThreadInfo"], healthy["Hg"],
		healthy["g"], pack("pid:1f;"), pack("F0"), pack("F3"), pack("F5;1-2 r"), pack("F0"), pack("start:1000;size:1000;permissions:rx;"), pack(""), healthy["m"]}, "+")
	f.Add([]byte(whole))
	f.Add([]byte(strings.ReplaceAll(whole, "#", "*~#")))
	f.Add([]byte("+$}*#00"))
	f.Fuzz(func(t *testing.T, replies []byte) {
		s := &stub{conn: newConn(context.Background(), recorded{bytes.NewReader(replies)}, time.Second, time.Time{})}
		if s.begin() != nil {
			return
		}
		state := &holder.State{Arch: s.description.arch}
		if s.threads(state) != nil {
			return
		}
		s.process(state)
		n, err := s.Read(make([]byte, 100), 0x1000)
		if n > 100 || n < 100 && err == nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
	})
}
