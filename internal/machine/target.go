package machine

import (
	"cmp"
	"fmt"

	"example.com/reframe/deopt/frame"
)

// Memory reads a target's memory.
type Memory interface {
	// ReadMemory fills all of p from addr on, or returns an error and leaves p undefined. If part of the memory cannot be read, the error is a
	// [*MemoryError].
	ReadMemory(p []byte, addr Addr) error
}

// MemoryError is the error of a failed read of memory.
type MemoryError struct {
	Addr Addr
	Len  int
	Why  string // such as "not mapped", "outside what was copied"
	// Code is [frame.MemoryRedacted] for memory that was left out of the core at the user's request (record --redact), [frame.MemoryNotCopied],
	// [frame.MemoryPending], [frame.MemoryGone], or "" for other failures.
	Code frame.Code
}

// ReasonCode returns the code, or [frame.MemoryUnreadable] for other failures.
func (e *MemoryError) ReasonCode() frame.Code { return cmp.Or(e.Code, frame.MemoryUnreadable) }

// RedactedMemory returns the error for memory that was left out of a core at the user's request.
func RedactedMemory(addr Addr, size int) *MemoryError {
	return &MemoryError{addr, size, "redacted: left out of the core on request (record --redact)", frame.MemoryRedacted}
}

func (e *MemoryError) Error() string { return e.text(e.Addr.String()) }

// TextWith implements [frame.Addressed].
func (e *MemoryError) TextWith(spell func(uint64) string) string {
	return e.text(e.Addr.TextWith(spell))
}

func (e *MemoryError) text(at string) string {
	return fmt.Sprintf("%d bytes at %s: %s", e.Len, at, e.Why)
}

// ReadSome reads into buf from an address on, and returns fewer bytes if memory ends before. It returns an error only if not even one byte can be read.
func ReadSome(m Memory, addr Addr, buf []byte) (b []byte, err error) {
	if err = m.ReadMemory(buf, addr); err == nil {
		return buf, nil
	}
	const page = 4096
	n := 0 // bytes read so far
	for n < len(buf) {
		part := min(len(buf)-n, page-int((addr+Addr(n))%page))
		for part > 0 {
			if err = m.ReadMemory(buf[n:n+part], addr+Addr(n)); err == nil {
				break
			}
			part /= 2
		}
		if part == 0 {
			break
		}
		n += part
	}
	if n > 0 {
		err = nil
	}
	return buf[:n], err
}

// ReadUint reads an unsigned integer of size bytes (1 to 8).
func ReadUint(m Memory, arch *Arch, addr Addr, size int) (uint64, error) {
	var b [8]byte
	if size < 1 || size > 8 {
		return 0, fmt.Errorf("machine: integer of %d bytes", size)
	}
	if err := m.ReadMemory(b[:size], addr); err != nil {
		return 0, err
	}
	return arch.Uint(b[:size]), nil
}

// ReadAddr reads an address.
func ReadAddr(m Memory, arch *Arch, addr Addr) (Addr, error) {
	v, err := ReadUint(m, arch, addr, arch.Pointer)
	return Addr(v), err
}

// Mapping is one row of the target's address space.
type Mapping struct {
	Start, End               Addr // End is exclusive
	Read, Write, Exec, Share bool
	Offset                   uint64 // offset in the file
	Path                     string // "", "[stack]", "[vdso]" or a file
	Inode                    uint64 // 0 if there is no file
}

// Contains reports whether addr lies in the mapping.
func (m Mapping) Contains(addr Addr) bool { return Range{m.Start, m.End}.Contains(addr) }

// Anonymous reports whether the mapping has no file. JIT compilers put their code in such mappings.
func (m Mapping) Anonymous() bool {
	return m.Inode == 0 && (m.Path == "" || m.Path[0] == '[' || m.Path[0] == '/' && len(m.Path) > 6 && m.Path[:6] == "/anon_")
}

// Thread is one thread of a stopped target.
type Thread struct {
	ID        int
	Name      string
	Registers *Registers // nil if they could not be read
	Missing   string     // the reason, if Registers is nil
}
