package amd64

// These letters of the maps below describe the bytes that follow an opcode.
const (
	xBad    = iota // not an instruction in 64-bit mode, or unknown here
	xNone          // nothing
	xM             // a ModRM byte and its addressing
	xMb            // ModRM and addressing, and a byte
	xMz            // ModRM and addressing, and 4 bytes, or 2 with the prefix 66
	xB             // a byte
	xW             // two bytes
	xZ             // 4 bytes, or 2 with the prefix 66
	xV             // 4 bytes, or 2 with the prefix 66, or 8 with REX.W
	xO             // an address: 8 bytes, or 4 with the prefix 67
	xRel           // 4 bytes; unknown with the prefix 66 and no REX.W, where Intel and AMD processors differ
	xJcc           // 4 bytes; unknown with the prefix 66, with or without REX.W
	xEnter         // three bytes
	xM4            // ModRM and 4 bytes
	xTb            // ModRM, and a byte if its reg field is 0 or 1 (TEST)
	xTz            // ModRM, and 4 bytes (2 with the prefix 66) if its reg field is 0 or 1
	xMR            // ModRM that names a register for any value of its mod field
	xMW            // ModRM, and two bytes with the prefix 66 or F2 (EXTRQ, INSERTQ)
	xPrefix        // a prefix, or a byte that selects another opcode map: decoded before the opcode is looked up
)

// Each map is written as 16 rows of 16 letters, the rows by the opcode's high half.
var letters = map[byte]byte{
	'.': xBad, '-': xNone, 'm': xM, 'c': xMb, 'd': xMz, 'b': xB, 'w': xW, 'z': xZ, 'v': xV, 'o': xO,
	'r': xRel, 'j': xJcc, 'e': xEnter, 't': xTb, 'u': xTz, 'k': xMR, 'x': xMW, '=': xPrefix,
}

var oneByte = opcodes(
	"mmmmbz..mmmmbz.=", // 00: 0F starts another map
	"mmmmbz..mmmmbz..",
	"mmmmbz=.mmmmbz=.",
	"mmmmbz=.mmmmbz=.",
	"================", // 40: REX
	"----------------",
	"...m====zdbc----", // 60: 62 is EVEX
	"bbbbbbbbbbbbbbbb",
	"cd.cmmmmmmmmmmmm", // 80: 8F is XOP too
	"----------.-----",
	"oooo----bz------",
	"bbbbbbbbvvvvvvvv",
	"ccw-==cde-w--b.-", // C0: C4 and C5 are VEX
	"mmmm...-mmmmmmmm", // D0: D5 is REX2
	"bbbbbbbbrr.b----",
	"=-==--tu------mm",
)

var twoByte = opcodes(
	"mmmm.-----.-.m-c", // 3DNow!, 0F 0F, has its opcode at the end
	"mmmmmmmmmmmmmmmm",
	"kkkk....mmmmmmmm",
	"------.-=.=.....", // 0F 38 and 0F 3A start other maps
	"mmmmmmmmmmmmmmmm",
	"mmmmmmmmmmmmmmmm",
	"mmmmmmmmmmmmmmmm",
	"ccccmmm-xm..mmmm",
	"jjjjjjjjjjjjjjjj",
	"mmmmmmmmmmmmmmmm",
	"---mcm..---mcmmm",
	"mmmmmmmmmmcmmmmm",
	"mmcmcccm--------",
	"mmmmmmmmmmmmmmmm",
	"mmmmmmmmmmmmmmmm",
	"mmmmmmmmmmmmmmmm",
)

func opcodes(rows ...string) (m [256]byte) {
	for i, row := range rows {
		for j := range row {
			m[16*i+j] = letters[row[j]]
		}
	}
	return m
}

// Longest is the greatest length of an instruction that processors accept.
const Longest = 15

// Length returns the length of the first instruction in b in bytes, or 0 if it is unknown or b is too short. The opcode maps are those of Intel's
// "Software Developer's Manual", volume 2, appendix A, and of AMD's "Programmer's Manual", volume 3, for XOP and 3DNow!. Length does not check the rest of
// the encoding, so it may return a length for an invalid instruction. This does no harm, because compilers write only valid ones.
func Length(b []byte) int {
	b = b[:min(len(b), Longest)]
	x := decoder{b: b}
	for ; x.at < len(b); x.at++ {
		rex := false
		switch c := b[x.at]; c {
		case 0x66:
			x.size16 = true
		case 0x67:
			x.address32 = true
		case 0xf2:
			x.repne = true
		case 0xf0, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65:
		default:
			if c&0xf0 != 0x40 {
				return x.opcode()
			}
			rex = c&8 != 0
		}
		x.wide = rex // a REX counts only directly before the opcode
	}
	return 0
}

type decoder struct {
	b         []byte
	at        int
	size16    bool // the prefix 66
	address32 bool // 67
	repne     bool // F2
	wide      bool // REX.W
}

// next returns the byte at x.at, or 0 at the end, and advances past it.
func (x *decoder) next() byte {
	if x.at++; x.at > len(x.b) {
		return 0
	}
	return x.b[x.at-1]
}

// end skips n more bytes and returns the length.
func (x *decoder) end(n int) int {
	if x.at += n; x.at > len(x.b) {
		return 0
	}
	return x.at
}

func (x *decoder) opcode() int {
	switch c := x.next(); c {
	case 0x0f:
		switch c := x.next(); c {
		case 0x38:
			x.at++
			return x.operands(xM)
		case 0x3a:
			x.at++
			return x.operands(xMb)
		default:
			return x.operands(twoByte[c])
		}
	case 0xc5:
		x.at++
		return x.vector(1)
	case 0xc4:
		field := x.next() & 31
		x.at++
		return x.vector(field)
	case 0x62:
		field := x.next() & 7
		x.at += 2
		return x.vector(field)
	case 0x8f:
		if x.at >= len(x.b) {
			return 0
		}
		field := x.b[x.at] & 31
		if field < 8 {
			return x.operands(xM)
		}
		x.at += 3
		switch field { // XOP
		case 8:
			return x.operands(xMb)
		case 9:
			return x.operands(xM)
		case 10:
			return x.operands(xM4)
		}
		return 0
	default:
		return x.operands(oneByte[c])
	}
}

// vector returns the length of a VEX or EVEX instruction from its opcode on. field selects the opcode map.
func (x *decoder) vector(field byte) int {
	c := x.next()
	switch field {
	case 1:
		switch c {
		case 0x77: // VZEROUPPER, VZEROALL
			return x.end(0)
		case 0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc5, 0xc6:
			return x.operands(xMb)
		}
		return x.operands(xM)
	case 2, 5, 6:
		return x.operands(xM)
	case 3:
		return x.operands(xMb)
	}
	return 0 // map 4 is APX; the immediates of map 7 are not decoded
}

// operands advances past the bytes that follow an opcode.
func (x *decoder) operands(kind byte) int {
	z := 4
	if x.size16 && !x.wide {
		z = 2
	}
	switch kind {
	case xNone:
		return x.end(0)
	case xB:
		return x.end(1)
	case xW:
		return x.end(2)
	case xEnter:
		return x.end(3)
	case xZ:
		return x.end(z)
	case xV:
		if x.wide {
			z = 8
		}
		return x.end(z)
	case xO:
		if x.address32 {
			return x.end(4)
		}
		return x.end(8)
	case xRel, xJcc:
		if z == 2 || x.size16 && kind == xJcc {
			return 0
		}
		return x.end(4)
	case xBad, xPrefix:
		return 0
	}
	if x.at >= len(x.b) {
		return 0
	}
	m := x.next()
	if kind != xMR {
		x.at += x.addressing(m)
	}
	test := m>>3&7 < 2
	switch {
	case kind == xMb, kind == xTb && test:
		return x.end(1)
	case kind == xMz, kind == xTz && test:
		return x.end(z)
	case kind == xM4:
		return x.end(4)
	case kind == xMW && (x.size16 || x.repne):
		return x.end(2)
	}
	return x.end(0)
}

// addressing returns the number of addressing bytes after a ModRM byte m.
func (x *decoder) addressing(m byte) int {
	mod, rm := m>>6, m&7
	if mod == 3 {
		return 0
	}
	n := 0
	base := rm
	if rm == 4 {
		if x.at >= len(x.b) {
			return 1
		}
		n, base = 1, x.b[x.at]&7
	}
	switch {
	case mod == 1:
		return n + 1
	case mod == 2, base == 5:
		return n + 4
	}
	return n
}
