package cfi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// layout holds the addresses of the sections of a handwritten image, as its file gives them.
type layout struct{ hdr, frame, code machine.Addr }

const (
	laidOut  = 300 // functions
	apart    = 16  // distance between functions in bytes
	codeSize = 8
)

// frameOf writes an .eh_frame of absolute addresses: a CIE, and an FDE of 24 bytes for each function.
func (l layout) frameOf(order binary.AppendByteOrder) (b []byte, first int) {
	b = order.AppendUint32(b, 20)
	b = append(b, 0, 0, 0, 0, 1, 0, 4, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0)
	first = len(b)
	for i := range laidOut {
		b = order.AppendUint32(b, 20)
		b = order.AppendUint32(b, uint32(len(b)))
		b = order.AppendUint64(b, uint64(l.code)+uint64(i)*apart)
		b = order.AppendUint64(b, codeSize)
	}
	return b, first
}

// hdrOf writes the .eh_frame_hdr for frameOf's section, with the addresses of the table encoded as enc.
func (l layout) hdrOf(order binary.AppendByteOrder, enc byte, first int) []byte {
	b := []byte{1, peAbsptr, peUdata4, enc}
	b = order.AppendUint64(b, uint64(l.frame))
	b = order.AppendUint32(b, laidOut)
	put := func(v machine.Addr) {
		switch enc & peBase {
		case peDataRel:
			v -= l.hdr
		case pePCRel:
			v -= l.hdr + machine.Addr(len(b))
		}
		switch enc & peForm {
		case peUdata2, peSdata2:
			b = order.AppendUint16(b, uint16(v))
		case peUdata4, peSdata4:
			b = order.AppendUint32(b, uint32(v))
		default:
			b = order.AppendUint64(b, uint64(v))
		}
	}
	for i := range laidOut {
		put(l.code + machine.Addr(i*apart))
		put(l.frame + machine.Addr(first+i*24))
	}
	return b
}

// TestHeaderEncodings searches tables of every encoding, and ignores those that cannot be searched.
func TestHeaderEncodings(t *testing.T) {
	const bias = 0x7f0000000000
	upwards, downwards := layout{0x100, 0x2c00, 0x5000}, layout{0x5000, 0x2c00, 0x1000}
	type test struct {
		enc      byte
		layout   layout
		searched bool
	}
	var tests []test
	for _, base := range []byte{0, pePCRel, peDataRel} {
		for _, form := range []byte{peAbsptr, peUdata2, peUdata4, peUdata8, peSigned, peSdata2, peSdata4, peSdata8} {
			tests = append(tests, test{base | form, upwards, true})
			if base == 0 || form != peUdata2 && form != peUdata4 {
				tests = append(tests, test{base | form, downwards, true})
			}
		}
	}
	for _, enc := range []byte{peULEB, peSLEB, 0x05, 0x0f, peTextRel | peSdata4, peFuncRel | peSdata4, peAligned,
		0x60 | peSdata4, peIndirect | peDataRel | peSdata4, peOmit} {
		tests = append(tests, test{enc, upwards, false})
	}
	for _, arch := range []*machine.Arch{machine.AMD64, machine.S390X} {
		for _, test := range tests {
			t.Run(fmt.Sprintf("%s %#02x %v", arch.Name, test.enc, test.layout.code), func(t *testing.T) {
				order := arch.Order.(binary.AppendByteOrder)
				frame, first := test.layout.frameOf(order)
				hdr := test.layout.hdrOf(order, test.enc, first)
				table, err := NewTable(Sections{Arch: arch,
					EHFrame:    Section{Addr: test.layout.frame + bias, Bias: bias, Data: bytes.NewReader(frame), Size: int64(len(frame))},
					EHFrameHdr: Section{Addr: test.layout.hdr + bias, Bias: bias, Data: bytes.NewReader(hdr), Size: int64(len(hdr))},
				})
				require.NoError(t, err)
				require.Equal(t, test.searched, table.sections[0].search != nil)
				for range 2 { // the second time, some rows are cached
					for i := range laidOut {
						start := test.layout.code + bias + machine.Addr(i*apart)
						for _, pc := range []machine.Addr{start, start + codeSize - 1} {
							f, err := table.Find(pc)
							require.NoError(t, err)
							require.Equal(t, start, f.Start)
							require.Equal(t, start+codeSize, f.End)
						}
						for _, pc := range []machine.Addr{start - 1, start + codeSize} {
							_, err := table.Find(pc)
							require.Equal(t, ErrNoFDE, err)
						}
					}
				}
				require.Equal(t, test.searched, table.sections[0].index.fdes == nil)
			})
		}
	}
}

// TestHeaderLies requires that a lookup searches the .eh_frame itself if a row of the .eh_frame_hdr does not match the FDE that it points to.
func TestHeaderLies(t *testing.T) {
	l := layout{0x100, 0x2c00, 0x5000}
	frame, first := l.frameOf(binary.LittleEndian)
	for name, lie := range map[string]func(rows []byte){
		"an FDE of another function": func(rows []byte) { copy(rows[4:], rows[12:16]) },
		"the CIE":                    func(rows []byte) { copy(rows[4:], []byte{0, 0x2b, 0, 0}) },
		"before .eh_frame":           func(rows []byte) { copy(rows[4:], []byte{0, 0x2a, 0, 0}) },
		"past it":                    func(rows []byte) { copy(rows[4:], []byte{0, 0, 1, 0}) },
		"inside an FDE":              func(rows []byte) { rows[4] += 4 },
		"a start inside a function":  func(rows []byte) { rows[0] += 2 },
	} {
		t.Run(name, func(t *testing.T) {
			hdr := l.hdrOf(binary.LittleEndian, peDataRel|peSdata4, first)
			lie(hdr[16:])
			table, err := NewTable(Sections{Arch: machine.AMD64,
				EHFrame:    Section{Addr: l.frame, Data: bytes.NewReader(frame), Size: int64(len(frame))},
				EHFrameHdr: Section{Addr: l.hdr, Data: bytes.NewReader(hdr), Size: int64(len(hdr))},
			})
			require.NoError(t, err)
			f, err := table.Find(l.code + 4)
			require.NoError(t, err)
			require.Equal(t, l.code, f.Start)
			f, err = table.Find(l.code + 2*apart)
			require.NoError(t, err)
			require.Equal(t, l.code+2*apart, f.Start)
		})
	}
}
