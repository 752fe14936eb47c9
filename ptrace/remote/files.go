package remote

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"

	"io/fs"
)

// Limits on files that are copied from the stub's machine.
const (
	maxFile  = 1 << 30
	maxFiles = 2 << 30 // all files together
)

// selectFiles makes the stub open files as process pid sees them, or for 0 as the stub itself does. It reports whether the stub can open files ("Host
// I/O Packets").
func (s *stub) selectFiles(pid int) bool {
	reply, err := s.ask(fmt.Sprintf("vFile:setfs:%x", pid))
	if err != nil {
		return false
	}
	if len(reply) > 0 {
		return true
	}
	reply, err = s.ask("vFile:open:" + hex.EncodeToString([]byte("/proc/version")) + ",0,0") // a stub that does not support setfs
	if err != nil || len(reply) == 0 {
		return false
	}
	if fd, _, err := result(reply); err == nil {
		_, _ = s.ask(fmt.Sprintf("vFile:close:%x", fd))
	}
	return true
}

// result parses F RESULT[,ERRNO][;ATTACHMENT].
func result(reply []byte) (value int64, attachment []byte, err error) {
	if len(reply) == 0 || reply[0] != 'F' {
		return 0, nil, errors.New("the stub opens no files")
	}
	head, attachment, _ := bytes.Cut(reply[1:], []byte{';'})
	number, code, failed := bytes.Cut(head, []byte{','})
	value, err = strconv.ParseInt(string(number), 16, 64)
	switch {
	case err != nil:
		return 0, nil, errors.New("a reply to vFile is malformed")
	case value < 0:
		err = fs.ErrNotExist
		if failed && string(code) != "2" { // 2 is FILEIO_ENOENT: the file does not exist
			err = fmt.Errorf("error %s of the remote file system", clean(code))
		}
		return 0, nil, err
	}
	return value, attachment, nil
}

// each calls do with consecutive pieces of a file's content. It fails if the file has more than limit bytes.
func (s *stub) each(path string, limit int64, do func([]byte) error) error {
	reply, err := s.ask("vFile:open:" + hex.EncodeToString([]byte(path)) + ",0,0") // O_RDONLY
	if err != nil {
		return err
	}
	fd, _, err := result(reply)
	if err != nil {
		return err
	}
	defer func() { _, _ = s.ask(fmt.Sprintf("vFile:close:%x", fd)) }() // an error is stored in s.lost
	for at := int64(0); ; {
		reply, err := s.ask(fmt.Sprintf("vFile:pread:%x,%x,%x", fd, s.packet-32, at))
		if err != nil {
			return err
		}
		size, b, err := result(reply)
		switch {
		case err != nil:
			return err
		case size == 0:
			return nil
		case size != int64(len(b)):
			return errors.New("a reply to vFile:pread has another size than it claims")
		}
		if at += size; at > limit {
			return fmt.Errorf("the file has more than %d bytes", limit)
		}
		if err := do(b); err != nil {
			return err
		}
	}
}

// readFile reads a small file.
func (s *stub) readFile(path string, limit int64) (all []byte, err error) {
	err = s.each(path, limit, func(b []byte) error {
		all = append(all, b...)
		return nil
	})
	return all, err
}

// open copies a file to a temporary file, whose name is already removed.
func (s *stub) open(path string) (_ *os.File, err error) {
	f, err := os.CreateTemp("", "reframe-remote-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	err = s.each(path, min(maxFile, maxFiles-s.fetched), func(b []byte) error {
		s.fetched += int64(len(b))
		_, err := f.Write(b)
		return err
	})
	return f, err
}
