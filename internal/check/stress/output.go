package stress

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"time"
)

// Output describes the text that a run wrote to one of its streams.
type Output struct {
	Bytes  uint64 `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Cut reports whether another process, which the program left running, still had the stream open. Its later output is missing.
	Cut bool `json:"cut,omitempty"`

	kept []byte // its beginning
}

// maxKept is the number of kept bytes of a stream; the rest is only hashed.
const maxKept = 1 << 20

// grace is the time for which processes that the program left running may keep its streams open.
const grace = 2 * time.Second

// stream collects the output of a run.
type stream struct {
	read, write *os.File
	done        chan struct{}
	hash        hash.Hash
	out         Output
}

func newStream() (s *stream, err error) {
	s = &stream{done: make(chan struct{}), hash: sha256.New()}
	if s.read, s.write, err = os.Pipe(); err != nil {
		return nil, err
	}
	go s.take()
	return s, nil
}

// path returns the file name of the pipe, which is opened as an output stream of the program in runs with and without ptrace.
func (s *stream) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.write.Fd()) }

func (s *stream) take() {
	defer close(s.done)
	buffer := make([]byte, 64<<10)
	for {
		n, err := s.read.Read(buffer)
		part := buffer[:n]
		s.hash.Write(part)
		s.out.Bytes += uint64(n)
		s.out.kept = append(s.out.kept, part[:min(n, maxKept-len(s.out.kept))]...)
		if err != nil {
			s.out.Cut = os.IsTimeout(err)
			return
		}
	}
}

// finish returns the description of the output after the program has ended.
func (s *stream) finish() Output {
	s.write.Close()
	_ = s.read.SetReadDeadline(time.Now().Add(grace)) // pipes support deadlines
	<-s.done
	s.read.Close()
	s.out.SHA256 = hex.EncodeToString(s.hash.Sum(nil))
	return s.out
}
