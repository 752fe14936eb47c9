package xsave

import "sync"

// cpuid executes the instruction CPUID.
func cpuid(eax, ecx uint32) (a, b, c, d uint32)

// Host returns the layout of this machine's processor, from CPUID (leaf 0xd; Intel SDM vol. 1, 13.2).
var Host = sync.OnceValue(func() Layout {
	var l Layout
	const xsave = 1 << 26
	if leaves, _, _, _ := cpuid(0, 0); leaves < 0xd {
		return l
	}
	if _, _, c, _ := cpuid(1, 0); c&xsave == 0 {
		return l
	}
	low, _, _, high := cpuid(0xd, 0)
	features := uint64(high)<<32 | uint64(low)
	for part := uint32(avx); part < partCount; part++ {
		if features>>part&1 != 0 {
			size, offset, _, _ := cpuid(0xd, part)
			l[part] = Place{offset, size}
		}
	}
	return l
})
