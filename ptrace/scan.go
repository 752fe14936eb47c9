package ptrace

import (
	"encoding/binary"
	"strings"

	"example.com/reframe/internal/machine"
)

// Found is memory that begins like a stack map section of version 3. Only parsing shows whether it is a stack map.
type Found struct {
	Addr machine.Addr
	Data []byte // bytes up to the end of the mapping, or of its readable part
}

// Limits on a scan. Most of the scanned memory is LLVM's own heap, of which lli has about 30 MB.
const (
	maxScan      = 1 << 30 // bytes of memory that are searched
	scanChunk    = 1 << 20
	maxFound     = 1024
	maxFoundSize = 64 << 20 // bytes of one candidate
	maxFoundSum  = 256 << 20
)

// Sizes in the section, "Stack Map Format".
const (
	mapHeader   = 16
	mapFunction = 24
)

// scan searches memory that is not in a file of a program ([searched]) for stack map sections: the header 3, 0, 0 and a first function whose address
// is in executable memory. Unrelocated copies in the heap have 0 as the function's address, so they do not match. whole is false if the scan did not
// reach the end.
func scan(mem memory, order binary.ByteOrder, maps []machine.Mapping) (found []Found, whole bool) {
	var code []machine.Mapping
	for _, r := range maps {
		if r.Exec {
			code = append(code, r)
		}
	}
	executable := func(addr machine.Addr) bool {
		_, ok := findMapping(code, addr)
		return ok
	}
	// Candidates in one mapping overlap, because each extends to the end of the mapping.
	const overlap = 16
	room := maxFoundSum / overlap
	if n := mem.size(); n < uint64(room) {
		room = int(n)
	}
	room *= overlap
	budget := maxScan
	chunk := make([]byte, scanChunk+mapHeader+mapFunction)
	seen := map[filePlace]bool{}
	for _, r := range maps {
		if !searched(r) {
			continue
		}
		for at := r.Start; at < r.End; at += scanChunk {
			// Chunks overlap by one header, because a header may cross the end of a chunk.
			n := min(uint64(len(chunk)), uint64(r.End-at))
			if budget -= int(n); budget < 0 {
				return found, false
			}
			got, err := mem.readUpTo(chunk[:n], at)
			if err != nil {
				break
			}
			for _, off := range candidates(chunk[:got], order, executable) {
				addr := at + machine.Addr(off)
				if r.Share { // JITs map one memfd twice: writable and executable
					place := filePlace{r.Path, r.Inode, r.Offset + uint64(addr-r.Start)}
					if seen[place] {
						continue
					}
					seen[place] = true
				}
				size := min(uint64(r.End-addr), maxFoundSize)
				if room -= int(size); len(found) == maxFound || room < 0 {
					return found, false
				}
				data := make([]byte, size)
				if n, err := mem.readUpTo(data, addr); err == nil {
					found = append(found, Found{addr, data[:n]})
				}
			}
		}
	}
	return found, true
}

// filePlace is a position in a file, which may be mapped more than once.
type filePlace struct {
	path          string
	inode, offset uint64
}

// searched reports whether a mapping may contain memory of a JIT: it has no file, or a file that the kernel or the JIT created only to share memory
// (memfd_create(2), MAP_SHARED|MAP_ANONYMOUS, shm_open(3), shmget(2), or a file that was deleted when it was mapped). Devices are not read.
func searched(r machine.Mapping) bool {
	switch {
	case !r.Read || r.Path == "[vvar]" || r.Path == "[vvar_vclock]" || r.Path == "[vsyscall]":
		return false
	case r.Anonymous():
		return true
	}
	for _, memory := range []string{"/memfd:", "/dev/zero (deleted)", "/dev/shm/", "/SYSV"} {
		if strings.HasPrefix(r.Path, memory) {
			return true
		}
	}
	return r.Share && strings.HasSuffix(r.Path, deletedSuffix) && !strings.HasPrefix(r.Path, "/dev/")
}

// candidates returns the offsets, aligned to 8, at which a section may begin in the first scanChunk bytes of b.
func candidates(b []byte, order binary.ByteOrder, executable func(machine.Addr) bool) []int {
	var offsets []int
	for off := 0; off < scanChunk && off+mapHeader+mapFunction <= len(b); off += 8 {
		if b[off] != 3 || b[off+1] != 0 || b[off+2] != 0 || b[off+3] != 0 {
			continue
		}
		functions := order.Uint32(b[off+4:])
		if functions > 0 && executable(machine.Addr(order.Uint64(b[off+mapHeader:]))) {
			offsets = append(offsets, off)
		}
	}
	return offsets
}

// Sizes in a record, "Stack Map Format": its head, which ends with the number of locations; a location; a live-out.
const (
	recordHead     = 16
	recordLocation = 12
	recordLiveOut  = 4
)

// mapLength returns the size of the stack map at the beginning of b, at most all of b.
func mapLength(order binary.ByteOrder, b []byte) int {
	if len(b) < mapHeader {
		return len(b)
	}
	at := uint64(mapHeader) + mapFunction*uint64(order.Uint32(b[4:])) + 8*uint64(order.Uint32(b[8:]))
	for range order.Uint32(b[12:]) {
		if at+recordHead > uint64(len(b)) {
			return len(b)
		}
		at += recordHead + recordLocation*uint64(order.Uint16(b[at+14:]))
		at = (at+7)&^7 + 4 // padding, and the number of live-outs
		if at > uint64(len(b)) {
			return len(b)
		}
		at = (at + recordLiveOut*uint64(order.Uint16(b[at-2:])) + 7) &^ 7
	}
	return int(min(at, uint64(len(b))))
}
