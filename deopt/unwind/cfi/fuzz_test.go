package cfi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// answer returns nil for the documented errors of a table, and any other err.
func answer(err error) error {
	var format *FormatError
	if err == nil || errors.Is(err, ErrNoFDE) || errors.As(err, &format) {
		return nil
	}
	return fmt.Errorf("neither a FormatError nor ErrNoFDE: %w", err)
}

// survey looks up the rows of some addresses in a table. Each lookup must return a row that covers its address, or an error with the position of the
// fault.
func survey(s Sections, pcs []machine.Addr) error {
	table, err := NewTable(s)
	if err != nil {
		return err
	}
	regs := machine.NewRegisters(s.Arch, "not read")
	for _, pc := range pcs {
		f, err := table.Find(pc)
		if err != nil {
			if err = answer(err); err != nil {
				return err
			}
			continue
		}
		if pc < f.Start || pc >= f.End {
			return fmt.Errorf("the FDE of %v to %v for %v", f.Start, f.End, pc)
		}
		row, err := f.Rules(pc)
		if err != nil {
			if err = answer(err); err != nil {
				return err
			}
			continue
		}
		if pc < row.Start || pc >= row.End {
			return fmt.Errorf("the row of %v to %v for %v", row.Start, row.End, pc)
		}
		row.CFA.Expression.Evaluate(regs, words{})
		for _, rule := range row.Rules() {
			rule.Expression.Evaluate(regs, words{}, 0x7000)
		}
	}
	return nil
}

// at is a section that is loaded at an address.
func at(addr machine.Addr, b []byte) Section {
	return Section{Addr: addr, Data: bytes.NewReader(b), Size: int64(len(b))}
}

// specimen is an image whose bytes are changed.
type specimen struct {
	name     string
	sections Sections
	changed  []byte         // the section that is changed
	pcs      []machine.Addr // first and last byte of each function
}

// specimens returns small sections of several compilers, architectures and forms.
func specimens(t testing.TB) []specimen {
	source := filepath.Join(t.TempDir(), "small.c")
	require.NoError(t, os.WriteFile(source, []byte(`long sink(void *, long);
long keeps(long a, long b) { return a ? sink(&a, b) + sink(0, a) * b : b; }
long grows(long n) { return sink(__builtin_alloca(n), n) + n; }
`), 0o644))
	frame, hdr := seed()
	hand := Sections{Arch: machine.AMD64, EHFrame: at(simpleAddr, frame)}
	pcs := []machine.Addr{0x1000, 0x1018, 0x10ff}
	list := []specimen{{"by hand", hand, frame, pcs}}
	hand.EHFrameHdr = at(0x9000, hdr)
	list = append(list, specimen{"by hand, with a header", hand, frame, pcs}, specimen{"a header by hand", hand, hdr, pcs})
	add := func(name, section string, s Sections) {
		read := func(s *Section) []byte {
			b, err := s.read(name, 0, s.Size)
			require.NoError(t, err)
			s.Data = bytes.NewReader(b)
			return b
		}
		x := specimen{name: name}
		switch section {
		case ehFrame: // without .eh_frame_hdr, so that lookups read the changed bytes
			s.EHFrameHdr = Section{}
			x.changed = read(&s.EHFrame)
		case ehFrameHdr:
			x.changed = read(&s.EHFrameHdr)
		case debugFrame:
			s.EHFrame = Section{}
			x.changed = read(&s.DebugFrame)
		}
		x.sections = s
		table, err := NewTable(s)
		require.NoError(t, err)
		of := table.sections[0]
		_, _ = of.indexed(0)
		require.NoError(t, of.index.err)
		require.NotEmpty(t, of.index.fdes)
		for _, f := range of.index.fdes {
			x.pcs = append(x.pcs, f.Start, f.End-1)
		}
		list = append(list, x)
	}
	debug := []string{"-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-dwarf2-cfi-asm"}
	add("gcc, x86-64", ehFrame, sectionsOf(t, linkedBy(t, "x86-64", "-O2", source), 0))
	add("gcc, x86-64, header", ehFrameHdr, sectionsOf(t, linkedBy(t, "x86-64", "-O2", source), 0))
	add("gcc, aarch64", ehFrame, sectionsOf(t, linkedBy(t, "aarch64", "-O2", "-mbranch-protection=standard", source), 0))
	add("gcc, s390x", ehFrame, sectionsOf(t, linkedBy(t, "s390x", "-O2", source), 0))
	add("gcc, s390x, header", ehFrameHdr, sectionsOf(t, linkedBy(t, "s390x", "-O2", source), 0))
	add("gcc, riscv64", debugFrame, sectionsOf(t, linkedBy(t, "riscv64", append(debug, source)...), 0))
	add("gcc, ppc64, 64-bit DWARF", debugFrame, sectionsOf(t, linkedBy(t, "ppc64", append(debug, "-gdwarf64", source)...), 0))
	object := filepath.Join(t.TempDir(), "rare.o")
	livetest.Make(t, "llvm-mc-19", "-triple=aarch64_be-linux-gnu", "-filetype=obj", "-o", object, "testdata/anyarch.s")
	add("LLVM, aarch64 big-endian", ehFrame, sectionsOf(t, object, 0))
	add("LLVM, aarch64 big-endian, .debug_frame", debugFrame, sectionsOf(t, object, 0))
	return list
}

// TestEveryByte sets each byte of each section to each other value. It requires that each lookup still returns a row or a documented error. The steps
// of a lookup are bounded by the bytes read, and by maxInstructions.
func TestEveryByte(t *testing.T) {
	livetest.Slow(t)
	total := 0
	for _, x := range specimens(t) {
		t.Run(x.name, func(t *testing.T) {
			require.NoError(t, survey(x.sections, x.pcs))
			for i, old := range x.changed {
				for v := i % livetest.Step(3); v < 256; v += livetest.Step(3) {
					x.changed[i] = byte(v)
					if err := survey(x.sections, x.pcs); err != nil {
						require.NoError(t, err, "byte %#x is %#x", i, v)
					}
				}
				x.changed[i] = old
			}
			total += 256 * len(x.changed)
			t.Logf("%d bytes, %d addresses", len(x.changed), len(x.pcs))
		})
	}
	t.Logf("%d changes", total)
}

// BenchmarkEveryByte reports the time of the slowest lookup of [TestEveryByte], with an empty cache. A slow lookup is repeated, because other
// programs run too.
func BenchmarkEveryByte(b *testing.B) {
	list := specimens(b)
	for _, x := range list {
		b.Run(x.name, func(b *testing.B) {
			slowest := time.Duration(0)
			lookups := 0
			for b.Loop() {
				for i, old := range x.changed {
					for v := range 256 {
						x.changed[i] = byte(v)
						for n := range x.pcs {
							took := time.Hour
							for tries := 0; took > slowest && tries < 8; tries++ {
								start := time.Now()
								_ = survey(x.sections, x.pcs[n:n+1])
								took = min(took, time.Since(start))
								lookups++
							}
							slowest = max(slowest, took)
						}
					}
					x.changed[i] = old
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(lookups), "ns/lookup")
			b.ReportMetric(float64(slowest.Nanoseconds()), "ns-slowest")
		})
	}
}

func FuzzTable(f *testing.F) {
	frame, hdr := seed()
	debug := le(entry(^uint32(0), 4, "", 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1), entry(uint32(0), uint64(0x1000), uint64(0x100), 0x44, 0x0e, 16))
	wide := le(^uint32(0), uint64(18), ^uint64(0), 3, "", 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, ^uint32(0), uint64(24), uint64(0), uint64(0x1000), uint64(0x20))
	f.Add(frame, hdr, debug, uint8(0))
	f.Add(simpleFDE(0x83, 2, 0x0a, 0x41, 0xc3, 0x0c, 6, 16, 0x41, 0x0b), []byte(nil), wide, uint8(0))
	f.Add(simpleFDE(0x0f, 4, 0x30, 0x2f, 0xfc, 0xff), []byte(nil), []byte(nil), uint8(1))
	big, _ := layout{0x9000, 0x8000, 0x1000}.frameOf(binary.BigEndian)
	f.Add(big, []byte(nil), []byte(nil), uint8(2))
	archs := []*machine.Arch{machine.AMD64, machine.ARM64, machine.S390X}
	f.Fuzz(func(t *testing.T, frame, hdr, debug []byte, arch uint8) {
		s := Sections{Arch: archs[int(arch)%len(archs)], EHFrame: at(simpleAddr, frame)}
		if len(hdr) > 0 {
			s.EHFrameHdr = at(0x9000, hdr)
		}
		if len(debug) > 0 {
			s.DebugFrame = at(0, debug)
		}
		require.NoError(t, survey(s, []machine.Addr{0, 0x1000, 0x1018, 0x10ff, 0x2000, 1<<64 - 1}))
	})
}
