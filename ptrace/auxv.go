package ptrace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"example.com/reframe/internal/machine"
)

// auxiliaryVector reads the auxiliary vector of a process (getauxval(3)). The user of the process owns /proc/PID/auxv. If this user may not open it,
// CAP_SYS_PTRACE permits reading the copy on the stack of the first thread. The copy is between from, the start of that stack, and to, the start of
// the arguments (execve(2); startstack and arg_start of proc_pid_stat(5)).
func auxiliaryVector(pid int, from, to machine.Addr) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/auxv", pid))
	if err == nil {
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxAUXV))
	}
	if !errors.Is(err, os.ErrPermission) || from == 0 || to <= from || to-from > maxStart {
		return nil, err
	}
	mem := live(pid)
	defer mem.mem.Close()
	block, unread := readAll(mem, from, uint64(to-from))
	if unread != nil {
		return nil, err
	}
	if vector := vectorIn(block); vector != nil {
		return vector, nil
	}
	return nil, err
}

// auxEntries yields the type and value of each entry of an auxiliary vector.
func auxEntries(auxv []byte, order binary.ByteOrder) iter.Seq2[uint64, machine.Addr] {
	return func(yield func(uint64, machine.Addr) bool) {
		for b := auxv; len(b) >= 16; b = b[16:] {
			if !yield(order.Uint64(b), machine.Addr(order.Uint64(b[8:]))) {
				return
			}
		}
	}
}

// maxStart bounds the size of the pointers and the auxiliary vector that execve(2) puts on the stack, without the strings.
const maxStart = 16 << 20

// vectorIn returns the auxiliary vector in the block that execve(2) puts on the stack: the number of arguments, pointers to them, 0, pointers to the
// environment, 0, and the vector. It returns nil if the result has no page size, because the program has then overwritten the block.
func vectorIn(block []byte) []byte {
	const pageSize = 6 // AT_PAGESZ
	word := func(at int) uint64 {
		if at < 0 || at+8 > len(block) {
			return 0
		}
		return binary.LittleEndian.Uint64(block[at:])
	}
	at := 8
	for range 2 {
		for at+8 <= len(block) && word(at) != 0 {
			at += 8
		}
		at += 8
	}
	sound := false
	for end := at; end+16 <= len(block) && end-at < maxAUXV; end += 16 {
		switch word(end) {
		case pageSize:
			sound = word(end+8) == uint64(os.Getpagesize())
		case 0:
			if !sound {
				return nil
			}
			return block[at : end+16]
		}
	}
	return nil
}
