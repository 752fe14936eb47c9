package delve

import (
	"encoding/binary"
	"fmt"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
)

// maxLibraries bounds the number of loaded files.
const maxLibraries = 1 << 16

// readThere fills the state through the server alone. Delve's API lists neither the mappings nor the program. given means that the user gives the
// program.
func (p *process) readThere(s *holder.State, given bool) error {
	m := &memory{arch: p.arch, patches: p.patches, read: p.readRPC, moved: p.movedThere}
	s.Memory, s.Close = m, p.conn.Close
	var result struct {
		List []struct {
			Path    string
			Address uint64
		}
	}
	if err := p.call("ListDynamicLibraries", struct{}{}, &result); err != nil {
		return err
	}
	if n := len(result.List); n > maxLibraries {
		return fmt.Errorf("it lists %d libraries; the limit is %d", n, maxLibraries)
	}
	for _, l := range result.List {
		if strings.HasPrefix(l.Path, "/") {
			s.Files = append(s.Files, holder.File{Path: l.Path, Bias: machine.Addr(l.Address)})
		}
	}
	cache := holder.NewCache(m, true)
	s.Auxv = p.findAuxv(cache)
	s.Program = pathOfProgram(cache, s)
	if cache.Lost() != nil {
		return cache.Lost()
	}
	if s.Program == "" && !given {
		s.Notes = append(s.Notes, "Delve does not list the path of the program: give it with --exe")
	}
	s.Notes = append(s.Notes, "Delve lists neither the mappings nor the names of threads, and this machine does not run the process or denies access to it")
	if p.shared {
		s.Notes = append(s.Notes, unnoticed)
	}
	return nil
}

// unnoticed is the note about a change that State of Delve's API does not show.
const unnoticed = "if another client of dlv resumes the process meanwhile and it stops at the same addresses again, that may go unnoticed"

// Types of entries of the auxiliary vector (getauxval(3)).
const (
	atPhdr     = 3
	atPhent    = 4
	atPageSize = 6
	atExecFn   = 31
)

// maxStack bounds the distance between the stack pointer of the first thread and the auxiliary vector: the default limit of a stack (RLIMIT_STACK).
const maxStack = 8 << 20

// findAuxv searches the stack of the first thread for the auxiliary vector, which execve(2) puts above the frames. It returns nil if it finds none.
func (p *process) findAuxv(mem holder.Memory) []byte {
	sp, err := p.regs[0].Registers.Addr(p.arch.SP)
	if err != nil || p.regs[0].ID != p.pid {
		return nil
	}
	start := sp &^ 15
	var stack []byte
	for len(stack) < maxStack {
		b := make([]byte, maxRead)
		n, err := mem.Read(b, start+machine.Addr(len(stack)))
		stack = append(stack, b[:n]...)
		if err != nil {
			break
		}
	}
	return auxvIn(stack)
}

// auxvIn returns the last auxiliary vector in the words of a stack, or nil if there is none.
func auxvIn(stack []byte) (found []byte) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(stack[at:]) }
	for at := 0; at+16 <= len(stack); at += 8 {
		if word(at) != atPhdr || at+32 > len(stack) || word(at+16) != atPhent || word(at+24) != programHeader {
			continue
		}
		begin := at
		for begin >= 16 && at-begin < maxVector && word(begin-16) > 0 && word(begin-16) < maxType {
			begin -= 16
		}
		paged := false
		for end := begin; end+16 <= len(stack) && end-begin < maxVector; end += 16 {
			paged = paged || word(end) == atPageSize && word(end+8)%pageSize == 0
			if word(end) >= maxType {
				break
			}
			if word(end) == 0 {
				if paged {
					found = stack[begin : end+16]
				}
				break
			}
		}
	}
	return found
}

const (
	programHeader = 56 // size of Elf64_Phdr
	maxType       = 128
	// maxVector bounds the size of an auxiliary vector, and thus the time to search a hostile stack. The kernel's vectors are smaller: AT_VECTOR_SIZE
	// of include/linux/mm_types.h is about 50 words on x86-64 and arm64.
	maxVector = 64 * 16
	maxPath   = 4096
)

// pathOfProgram returns the path of the program, or "" if it is unknown. The kernel stores the path that was passed to execve(2), which may be
// relative.
func pathOfProgram(mem holder.Memory, s *holder.State) string {
	command, _, _ := strings.Cut(s.Command, " ")
	for b := s.Auxv; len(b) >= 16; b = b[16:] {
		if binary.LittleEndian.Uint64(b) != atExecFn {
			continue
		}
		if path := text(mem, machine.Addr(binary.LittleEndian.Uint64(b[8:]))); strings.HasPrefix(path, "/") {
			return path
		}
	}
	if strings.HasPrefix(command, "/") {
		return command
	}
	return ""
}

// text returns the string at an address, or "" if it cannot be read.
func text(mem holder.Memory, at machine.Addr) string {
	b := make([]byte, maxPath)
	n, _ := mem.Read(b, at)
	s, _, found := strings.Cut(string(b[:n]), "\x00")
	if !found {
		return ""
	}
	return s
}
