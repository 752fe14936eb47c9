//go:build linux

package tracer

import "encoding/binary"

// inSequence reports whether a stopped thread is within a restartable sequence (rseq(2)). If the tracer moved the thread's pc out of the sequence,
// the kernel would forget the sequence (rseq_ip_fixup of Linux's kernel/rseq.c), and the thread would commit a sequence that it must abort.
// inSequence returns false if the kernel does not report the area (before 5.13).
func inSequence(tid int, m memory) bool {
	const (
		sequence = 8 // offset of rseq_cs in struct rseq
		start    = 8 // offset of start_ip in struct rseq_cs; post_commit_offset follows
	)
	area := rseq(tid)
	if area.Start == area.End {
		return false
	}
	var pointer [8]byte
	if whole(m.read, pointer[:], area.Start+sequence) != nil {
		return true
	}
	at := binary.LittleEndian.Uint64(pointer[:])
	if at == 0 {
		return false
	}
	var bounds [16]byte
	var regs General
	if whole(m.read, bounds[:], at+start) != nil || getRegs(tid, &regs) != nil {
		return true
	}
	return regs.pc()-binary.LittleEndian.Uint64(bounds[:]) < binary.LittleEndian.Uint64(bounds[8:])
}
