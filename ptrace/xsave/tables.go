package xsave

// Parts that have an offset in the tables, but whose registers are not read (Intel SDM vol. 1, 13.5).
const (
	bndregs    = 3
	bndcsr     = 4
	pkru       = 9
	tileConfig = 17
	tileData   = 18
	apx        = 19
)

// partSizes holds the sizes of the parts, which are the same on all processors (Intel SDM vol. 1, 13.5; AMD64 APM vol. 2, 11.5.8).
var partSizes = [partCount]uint32{avx: 256, bndregs: 64, bndcsr: 64, k: 64, zmm: 512, z16: 1024, pkru: 8, tileConfig: 64, tileData: 8192, apx: 128}

// Processor is a family of processors with the same layout.
type Processor struct {
	Name   string
	Layout Layout
}

// standard is the name of the processors with the layout that debuggers write.
const standard = "Intel"

// Processors lists the known layouts, from CPUID on such processors (leaf 0xd, EBX of each part). The first one is the standard layout.
var Processors = []Processor{
	{standard, layoutOf(map[int]uint32{avx: 576, bndregs: 960, bndcsr: 1024, k: 1088, zmm: 1152, z16: 1664, pkru: 2688, tileConfig: 2752, tileData: 2816, apx: 960})},
	{"AMD", layoutOf(map[int]uint32{avx: 576, k: 832, zmm: 896, z16: 1408, pkru: 2432})}, // pkru has this offset also without AVX-512
}

func layoutOf(offsets map[int]uint32) (l Layout) {
	for part, offset := range offsets {
		l[part] = Place{offset, partSizes[part]}
	}
	return l
}
