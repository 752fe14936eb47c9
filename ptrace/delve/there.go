package delve

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
)

// maxLibraries bounds the number of loaded files.
const maxLibraries = 1 << 16

// readThere fills the state through the server alone. Delve's API lists neither the mappings nor the program.
func (p *process) readThere(s *holder.State) error {
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
	cache := holder.NewCache(m)
	s.Auxv = p.findAuxv(cache)
	program, bias, err := p.program(cache, s)
	switch {
	case cache.Lost() != nil:
		return cache.Lost()
	case err != nil:
		s.Notes = append(s.Notes, fmt.Sprintf("the program was not found: %v", err))
	default:
		s.Files = append([]holder.File{{Path: program, Bias: bias}}, s.Files...)
	}
	s.Notes = append(s.Notes, "Delve lists neither the mappings nor the names of threads, and this machine does not run the process or denies access to it")
	return nil
}

// Types of entries of the auxiliary vector (getauxval(3)).
const (
	atPhdr     = 3
	atPhent    = 4
	atPhnum    = 5
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

// auxvIn returns the last auxiliary vector in a stack that begins at a multiple of 16, or nil. The vector is as far from a multiple of 16 as the number of
// words before it demands.
func auxvIn(stack []byte) (found []byte) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(stack[at:]) }
	for at := 0; at+16 <= len(stack); at += 8 {
		if word(at) != atPhdr || at+32 > len(stack) || word(at+16) != atPhent || word(at+24) != programHeader {
			continue
		}
		begin := at
		for begin >= 16 && word(begin-16) > 0 && word(begin-16) < maxType {
			begin -= 16
		}
		paged := false
		for end := begin; end+16 <= len(stack); end += 16 {
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
	maxPath       = 4096
)

// program returns the path and the place of the program.
func (p *process) program(mem holder.Memory, s *holder.State) (string, machine.Addr, error) {
	entries := map[uint64]uint64{}
	for b := s.Auxv; len(b) >= 16; b = b[16:] {
		entries[binary.LittleEndian.Uint64(b)] = binary.LittleEndian.Uint64(b[8:])
	}
	count := entries[atPhnum]
	if entries[atPhdr] == 0 || count == 0 || count > 1<<10 {
		return "", 0, errors.New("the stack of the first thread does not contain the auxiliary vector")
	}
	headers := make([]byte, count*programHeader)
	if _, err := mem.Read(headers, machine.Addr(entries[atPhdr])); err != nil {
		return "", 0, fmt.Errorf("its headers cannot be read: %w", err)
	}
	for b := headers; len(b) >= programHeader; b = b[programHeader:] {
		if elf.ProgType(binary.LittleEndian.Uint32(b)) != elf.PT_PHDR {
			continue
		}
		path := text(mem, machine.Addr(entries[atExecFn]))
		if first, _, _ := strings.Cut(s.Command, " "); !strings.HasPrefix(path, "/") {
			path = first
		}
		if !strings.HasPrefix(path, "/") {
			return "", 0, errors.New("it was started by a relative path: give the program with --exe")
		}
		return path, machine.Addr(entries[atPhdr] - binary.LittleEndian.Uint64(b[16:])), nil
	}
	return "", 0, errors.New("it has no header PT_PHDR")
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
