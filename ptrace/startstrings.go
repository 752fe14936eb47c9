package ptrace

import (
	"bytes"
	"encoding/binary"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
)

// Entries of the auxiliary vector (getauxval(3)) that point to data that execve(2) puts on the stack.
const (
	atRandom = 25 // 16 random bytes, from which the C library derives the stack protector's canary
	atExecfn = 31 // the path of the program
)

// Limits on the data that execve(2) puts on the stack.
const (
	maxStrings = 8 << 20 // arguments and environment; the kernel allows three quarters of 8 MiB (_STK_LIM of linux/resource.h)
	maxPath    = 4 << 10 // PATH_MAX, with the zero byte
	// maxPointers bounds the number of bytes of pointers to arguments and environment that are searched.
	maxPointers = 1 << 20
)

// startStrings describes the strings that execve(2) puts at the end of the stack, in this order: random bytes, the name of the platform, the
// arguments, the environment and the path of the program (create_elf_tables and bprm_execve of Linux).
type startStrings struct {
	random, path, end machine.Addr // the environment ends at path
	vector            []byte       // the auxiliary vector, including its last entry
}

// stringsAtStart finds the strings through the auxiliary vector. It returns nil if the vector does not contain their addresses.
func stringsAtStart(auxv []byte, order binary.ByteOrder, mem machine.Memory) *startStrings {
	s := &startStrings{}
	size := 0
	for kind, value := range auxEntries(auxv, order) {
		size += 16
		switch kind {
		case atRandom:
			s.random = value
		case atExecfn:
			s.path = value
		case 0:
			s.vector = auxv[:size]
		}
		if s.vector != nil {
			break
		}
	}
	if s.random == 0 || s.path <= s.random || s.path-s.random > maxStrings || s.path > ^machine.Addr(0)-maxPath {
		return nil
	}
	s.end = s.path + maxPath
	if b, err := machine.ReadSome(mem, s.path, make([]byte, maxPath)); err == nil {
		if n := bytes.IndexByte(b, 0); n >= 0 {
			s.end = s.path + machine.Addr(n) + 1
		}
	}
	return s
}

// without returns the block of strings without the arguments. If arguments is empty, because their address is unknown, it returns the whole block.
func (s *startStrings) without(arguments addrRange) []addrRange {
	if arguments.start < s.random || arguments.end > s.path || arguments.start >= arguments.end {
		return []addrRange{{s.random, s.end}}
	}
	return []addrRange{{s.random, arguments.start}, {arguments.end, s.end}}
}

// arguments finds the arguments of a program in memory, if their address is not known otherwise. Below the auxiliary vector are the number of
// arguments, pointers to them, 0, pointers to the environment, and 0 (System V ABI, "Process Initialization"). It returns an empty range if the
// program has changed these words, if the environment is empty, or if the end of the last argument is unknown.
func (s *startStrings) arguments(order binary.ByteOrder, mem machine.Memory) addrRange {
	b := readEnd(mem, s.random-min(s.random, maxAUXV), s.random)
	at := bytes.LastIndex(b, s.vector)
	if at < 0 {
		return addrRange{}
	}
	vector := s.random - machine.Addr(len(b)-at)
	b = readEnd(mem, vector-min(vector, maxPointers), vector)
	words := make([]machine.Addr, len(b)/8)
	for i := range words { // search downward from the vector
		words[i] = machine.Addr(order.Uint64(b[len(b)-8*(i+1):]))
	}
	environment, from := s.path, 0
	for from < len(words) && words[from] == 0 {
		from++
	}
	for ; from < len(words) && words[from] != 0; from++ {
		if w := words[from]; w > s.random && w < environment {
			environment = w
		}
	}
	// words[from] is the 0 after the arguments.
	first, last := s.path, machine.Addr(0)
	for n := 1; from+n < len(words); n++ {
		w := words[from+n]
		if w == machine.Addr(n-1) {
			return s.ending(first, last, environment, mem)
		}
		if w <= s.random || w >= s.path {
			return addrRange{}
		}
		first, last = min(first, w), max(last, w)
	}
	return addrRange{}
}

// ending returns the range from the first argument to the end of the last one, which is before the environment.
func (s *startStrings) ending(first, last, environment machine.Addr, mem machine.Memory) addrRange {
	if first > last || last >= environment {
		return addrRange{}
	}
	b, err := machine.ReadSome(mem, last, make([]byte, environment-last)) // at most maxStrings
	n := bytes.IndexByte(b, 0)
	if err != nil || n < 0 {
		return addrRange{} // strings that the program has removed from its environment may follow the arguments
	}
	return addrRange{first, last + machine.Addr(n) + 1}
}

// readEnd reads the readable memory just before an address, down to low at most.
func readEnd(mem machine.Memory, low, end machine.Addr) []byte {
	b, at := make([]byte, end-low), end
	for at > low {
		from := max(low, (at-1)&^(elfcore.Page-1))
		if mem.ReadMemory(b[from-low:at-low], from) != nil {
			break
		}
		at = from
	}
	return b[at-low:]
}

// environment returns the memory of the environment block and of the strings of the auxiliary vector, sorted by address.
func (t recorder) environment(about *coreAbout) ([]addrRange, CoreEnvironment) {
	var block []addrRange
	if about.environment.start < about.environment.end {
		block = append(block, about.environment)
	}
	s := stringsAtStart(about.auxv, t.arch.Order, t.source)
	if s == nil {
		if len(block) == 0 {
			return nil, EnvironmentUnknown
		}
		return block, EnvironmentLeftOut
	}
	arguments := about.arguments
	if t.core != nil {
		arguments = s.arguments(t.arch.Order, t.source)
		if t.core.delve { // the path is the only record of the program's file
			s.end = s.path
		}
	}
	return joinedRanges(append(block, s.without(arguments)...)), EnvironmentLeftOut
}
