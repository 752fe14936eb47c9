package stackmap

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// elfCode is the code of an ELF file. The sections of an unlinked file are placed one after another.
type elfCode struct {
	file  *elf.File
	base  []machine.Addr // load address of each section
	sizes map[machine.Addr]uint64
	// entries maps each function descriptor in .opd to its code, for a big-endian ppc64 object, in which symbols and maps refer to descriptors.
	entries map[machine.Addr]machine.Addr
}

func (c *elfCode) entry(addr machine.Addr) machine.Addr {
	if code, ok := c.entries[addr]; ok {
		return code
	}
	return addr
}

func openCode(t testing.TB, path string) *elfCode {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	c := &elfCode{file: f, sizes: map[machine.Addr]uint64{}}
	next := machine.Addr(0x10000)
	for _, s := range f.Sections {
		base := machine.Addr(s.Addr)
		if f.Type == elf.ET_REL {
			base, next = next, next+machine.Addr(s.Size+0xfff)&^0xfff
		}
		c.base = append(c.base, base)
	}
	symbols, err := f.Symbols()
	require.NoError(t, err)
	c.entries = map[machine.Addr]machine.Addr{}
	if s := f.Section(".rela.opd"); s != nil {
		rows, err := s.Data()
		require.NoError(t, err)
		for order := f.ByteOrder; len(rows) >= 24; rows = rows[24:] {
			descriptor := c.base[s.Info] + machine.Addr(order.Uint64(rows))
			if n := order.Uint64(rows[8:]) >> 32; n != 0 {
				c.entries[descriptor] = c.address(symbols[n-1]) + machine.Addr(order.Uint64(rows[16:]))
			}
		}
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section < elf.SHN_LORESERVE {
			c.sizes[c.entry(c.address(s))] = s.Size
		}
	}
	return c
}

func (c *elfCode) address(s elf.Symbol) machine.Addr {
	if c.file.Type == elf.ET_REL {
		return c.base[s.Section] + machine.Addr(s.Value)
	}
	return machine.Addr(s.Value)
}

func (c *elfCode) section(addr machine.Addr) (*elf.Section, machine.Addr) {
	for i, s := range c.file.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && addr >= c.base[i] && uint64(addr-c.base[i]) < s.Size {
			return s, c.base[i]
		}
	}
	return nil, 0
}

func (c *elfCode) Placed(int64) bool { return true } // place assigns all addresses

func (c *elfCode) Pointer() int { return 8 }

func (c *elfCode) Function(addr machine.Addr) (end machine.Addr, executable, endKnown bool) {
	s, base := c.section(addr)
	if s == nil {
		return 0, false, false
	}
	if size, ok := c.sizes[addr]; ok {
		return addr + machine.Addr(size), true, true
	}
	return base + machine.Addr(s.Size), true, false
}

func (c *elfCode) ReadMemory(p []byte, addr machine.Addr) error {
	s, base := c.section(addr)
	if s == nil {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "no code"}
	}
	_, err := s.ReadAt(p, int64(addr-base))
	return err
}

// place sets the function addresses in the maps of an unlinked object, from the object's relocations.
func (c *elfCode) place(t testing.TB, s *Section) {
	t.Helper()
	symbols, err := c.file.Symbols()
	require.NoError(t, err)
	rows, err := c.file.Section(".rela.llvm_stackmaps").Data()
	require.NoError(t, err)
	at := map[int64]machine.Addr{}
	for order := c.file.ByteOrder; len(rows) >= 24; rows = rows[24:] {
		sym := symbols[order.Uint64(rows[8:])>>32-1]
		at[int64(order.Uint64(rows))] = c.address(sym) + machine.Addr(order.Uint64(rows[16:]))
	}
	for _, m := range s.Maps {
		for i := range m.Functions {
			addr, ok := at[m.FunctionPos(&m.Functions[i])]
			require.True(t, ok)
			m.Functions[i].Addr = c.entry(addr)
		}
	}
}

type liveCase struct {
	arch     *machine.Arch
	triple   string
	flags    []string
	programs map[int]string // programs of testdata that llc accepts, by release
}

var (
	older  = "dup false_match host_mod jit_pp pc_ret sm_spill stop_at"
	before = older + " jit_sp"
	all    = before + " deoptimize live_memory sp_push"
	pic    = []string{"-relocation-model=pic"}
)

var liveCases = []liveCase{
	{machine.AMD64, "x86_64-linux-gnu", nil, map[int]string{14: before, 16: all + " odd_types shapes", 19: all + " odd_types shapes", 22: all + " odd_types shapes"}},
	{machine.AMD64, "x86_64-linux-gnu", []string{"-mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq", "-O0"}, map[int]string{19: "shapes jit_sp deoptimize", 22: "shapes jit_sp deoptimize"}},
	{machine.AMD64, "x86_64-linux-gnu", []string{"-use-registers-for-deopt-values", "-max-registers-for-gc-values=8", "-fixup-allow-gcptr-in-csr"}, map[int]string{16: "jit_sp deoptimize", 19: "jit_sp deoptimize sp_push", 22: "jit_sp deoptimize sp_push"}},
	{machine.ARM64, "aarch64-linux-gnu", pic, map[int]string{14: before, 16: all, 19: all, 22: all}},
	{machine.ARM64BE, "aarch64_be-linux-gnu", nil, map[int]string{14: before, 16: all, 19: all, 22: all}},
	{machine.PPC64LE, "powerpc64le-linux-gnu", nil, map[int]string{14: older, 16: older, 19: older, 22: older}},
	{machine.PPC64LE, "powerpc64le-linux-gnu", []string{"-mcpu=pwr10"}, map[int]string{16: older, 22: older}},
	{machine.PPC64, "powerpc64-linux-gnu", nil, map[int]string{14: older, 16: older, 19: older, 22: older}},
	{machine.S390X, "s390x-linux-gnu", nil, map[int]string{14: older, 16: older, 19: older, 22: older}},
	{machine.S390X, "s390x-linux-gnu", []string{"-mcpu=z15"}, map[int]string{19: older, 22: older}},
	{machine.RISCV64, "riscv64-linux-gnu", []string{"-mattr=+m,+d", "-target-abi=lp64d"}, map[int]string{19: "deoptimize dup jit_sp live_memory sm_spill sp_push stop_at", 22: "deoptimize dup jit_sp live_memory sm_spill sp_push stop_at"}},
	{machine.RISCV64, "riscv64-linux-gnu", []string{"-mattr=+m,+d,+c", "-target-abi=lp64d"}, map[int]string{19: "deoptimize jit_sp sm_spill", 22: "deoptimize jit_sp sm_spill"}},
	{machine.LOONG64, "loongarch64-linux-gnu", []string{"-mattr=+d"}, map[int]string{22: "deoptimize jit_sp live_memory sp_push"}},
}

func (l *liveCase) each(f func(version int, program string)) {
	for _, version := range []int{14, 16, 19, 22} {
		for _, program := range strings.Fields(l.programs[version]) {
			if program == "shapes" {
				program = "testdata/shapes"
			}
			f(version, program+".ll")
		}
	}
}

// share reports whether make test checks a program with a release. For each program it checks one of the releases that compile it.
func (l *liveCase) share(version int, program string) bool {
	var versions []int
	l.each(func(v int, p string) {
		if p == program {
			versions = append(versions, v)
		}
	})
	return slices.Contains(livetest.ShareOf(versions, program, l.triple, l.flags), version)
}

func (l *liveCase) open(t testing.TB, version int, program string) (*elfCode, *Section) {
	t.Helper()
	path := object(t, version, program, append([]string{"-mtriple=" + l.triple}, l.flags...)...)
	c := openCode(t, path)
	s, err := Parse(section(t, path), Options{Order: c.file.ByteOrder})
	require.NoError(t, err)
	c.place(t, s)
	return c, s
}

// TestCheckLive requires that llc's output violates no rule on any architecture, and that no check has an unknown result.
func TestCheckLive(t *testing.T) {
	livetest.Slow(t)
	objects := 0
	for _, l := range liveCases {
		t.Run(l.triple+strings.Join(l.flags, ""), func(t *testing.T) {
			checked := make([]int, len(rules))
			l.each(func(version int, program string) {
				if !l.share(version, program) {
					return
				}
				objects++
				c, s := l.open(t, version, program)
				for i, r := range Check(s, l.arch, c) {
					require.Empty(t, r.Violations, "llc %d, %s, %s", version, program, r.Rule.Name)
					require.Zero(t, r.Broken)
					checked[i] += r.Checked
					require.Zero(t, r.Unknown, "llc %d, %s, %s: %s", version, program, r.Rule.Name, r.Skipped)
					require.Empty(t, r.Skipped)
				}
			})
			for _, i := range []int{ruleCounts, ruleReserved, ruleAddress, ruleInside, ruleBoundary, ruleRegisters, ruleFields} {
				require.NotZero(t, checked[i], rules[i].Name)
			}
		})
	}
	require.GreaterOrEqual(t, objects, livetest.Times(50, 150))
}

// TestCheckLinked requires that a linked file with several maps violates no rule about code.
func TestCheckLinked(t *testing.T) {
	for _, flags := range [][]string{{"-no-pie"}, {"-shared"}} {
		out := filepath.Join(t.TempDir(), "linked")
		a, b := object(t, 19, "jit_sp.ll", "-relocation-model=pic"), object(t, 19, "sm_spill.ll", "-relocation-model=pic")
		renamed := filepath.Join(t.TempDir(), "renamed.o")
		run(t, livetest.Tool(t, "objcopy"), "--prefix-symbols=b_", b, renamed)
		run(t, livetest.Tool(t, "gcc"), append(flags, "-nostdlib", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,0", "-o", out, a, renamed)...)
		c := openCode(t, out)
		data := section(t, out)
		relocate(t, c.file, data)
		s, err := Parse(data, Options{Order: c.file.ByteOrder})
		require.NoError(t, err)
		require.Len(t, s.Maps, 2)
		for _, r := range Check(s, machine.AMD64, c) {
			require.Zero(t, r.Broken, "%+v", r)
			require.Zero(t, r.Unknown, "%+v", r)
		}
	}
}

// TestCheckMutated corrupts each field of llc's output in turn, and requires a violation of the rule about that field.
func TestCheckMutated(t *testing.T) {
	unknownRegister := map[*machine.Arch]machine.DWARFReg{
		machine.AMD64: 200, machine.ARM64: 40, machine.ARM64BE: 40, machine.PPC64: 110, machine.PPC64LE: 110,
		machine.S390X: 90, machine.RISCV64: 70, machine.LOONG64: 70,
	}
	for _, l := range liveCases {
		t.Run(l.triple+strings.Join(l.flags, ""), func(t *testing.T) {
			fired := map[string]bool{}
			l.each(func(version int, program string) {
				if version != 22 {
					return
				}
				c, s := l.open(t, version, program)
				require.Len(t, s.Maps, 1)
				// mutate decodes the map, changes a field of the copy, and writes and checks the copy.
				mutate := func(what string, rule int, change func(f *BlobFunction, r *Record) bool) {
					blob := s.Maps[0].Blob()
					for i := range blob.Functions {
						f := &blob.Functions[i]
						for j := range f.Records {
							if !change(f, &f.Records[j]) {
								continue
							}
							var order binary.AppendByteOrder = binary.LittleEndian
							if l.arch.BigEndian() {
								order = binary.BigEndian
							}
							data, err := AppendBlob(nil, order, blob)
							require.NoError(t, err)
							again, err := Parse(data, Options{Order: c.file.ByteOrder})
							require.NoError(t, err)
							results := Check(again, l.arch, c)
							require.NotZero(t, results[rule].Broken, "%s: %s", program, what)
							require.Equal(t, rules[rule].Name, results[rule].Violations[0].Rule)
							fired[what] = true
							return
						}
					}
				}
				location := func(kind Kind, change func(l *Location)) func(*BlobFunction, *Record) bool {
					return func(_ *BlobFunction, r *Record) bool {
						for i := range r.Locations {
							if r.Locations[i].Kind == kind {
								change(&r.Locations[i])
								return true
							}
						}
						return false
					}
				}
				every := func(change func(f *BlobFunction, r *Record)) func(*BlobFunction, *Record) bool {
					return func(f *BlobFunction, r *Record) bool { change(f, r); return true }
				}
				mutate("flags", ruleReserved, every(func(_ *BlobFunction, r *Record) { r.Flags = 1 }))
				mutate("address", ruleAddress, every(func(f *BlobFunction, _ *Record) { f.Addr = 0x1000 }))
				mutate("far offset", ruleInside, every(func(_ *BlobFunction, r *Record) { r.Offset = 1 << 31 }))
				mutate("offset by one", ruleBoundary, func(_ *BlobFunction, r *Record) bool {
					r.Offset--
					return r.Offset != ^uint32(0)
				})
				wrong := unknownRegister[l.arch]
				for _, kind := range []Kind{Register, Direct, Indirect} {
					mutate(fmt.Sprint("register of ", kind), ruleRegisters, location(kind, func(l *Location) { l.Reg = wrong }))
				}
				mutate("base", ruleRegisters, location(Indirect, func(at *Location) { at.Reg = vectorOf(l.arch) }))
				mutate("no size", ruleSizes, location(Register, func(l *Location) { l.Size = 0 }))
				mutate("size", ruleSizes, location(Register, func(l *Location) { l.Size = 0x4000 }))
				mutate("bit", ruleSizes, location(Register, func(l *Location) { l.Offset = 1 << 20 }))
				mutate("size of direct", ruleFields, location(Direct, func(l *Location) { l.Size++ }))
				mutate("size of indirect", ruleFields, location(Indirect, func(l *Location) { l.Size = 0 }))
				mutate("size of constant", ruleFields, location(Constant, func(l *Location) { l.Size-- }))
				mutate("register of constant", ruleFields, location(Constant, func(l *Location) { l.Reg++ }))
				mutate("index", ruleConstants, location(ConstantIndex, func(l *Location) { l.Offset = int32(s.Maps[0].NumConstants()) }))
				mutate("size of live-out", ruleSizes, func(_ *BlobFunction, r *Record) bool {
					if len(r.LiveOuts) == 0 {
						return false
					}
					r.LiveOuts[0].Size = 0
					return true
				})
				mutate("live-out", ruleLiveOuts, func(_ *BlobFunction, r *Record) bool {
					if len(r.LiveOuts) < 2 {
						return false
					}
					r.LiveOuts[1] = r.LiveOuts[0]
					return true
				})
			})
			if l.programs[22] == "" {
				return
			}
			for _, what := range []string{"flags", "address", "far offset", "offset by one", "register of Direct", "size of constant", "register of constant"} {
				require.True(t, fired[what], what)
			}
			if strings.Contains(l.programs[22], "jit_pp") {
				require.True(t, fired["register of Register"] && fired["size"] && fired["no size"] && fired["bit"], "%v", fired)
			}
			if strings.Contains(l.programs[22], "jit_sp") {
				require.True(t, fired["base"] && fired["size of indirect"] && fired["index"] && fired["size of direct"], "%v", fired)
			}
		})
	}
}

// vectorOf returns a vector register of an architecture.
func vectorOf(a *machine.Arch) machine.DWARFReg {
	i := slices.IndexFunc(a.Registers(), func(r machine.DWARFReg) bool {
		info, _ := a.Register(r)
		return info.Class == machine.Vector
	})
	return a.Registers()[i]
}

// TestCheckBoundaries requires the instruction boundaries that llvm-objdump shows for llc's code, on each architecture.
func TestCheckBoundaries(t *testing.T) {
	livetest.Slow(t)
	for _, l := range liveCases {
		t.Run(l.triple+strings.Join(l.flags, ""), func(t *testing.T) {
			l.each(func(version int, program string) {
				if version != 22 {
					return
				}
				path := object(t, version, program, append([]string{"-mtriple=" + l.triple}, l.flags...)...)
				c := openCode(t, path)
				kind := boundariesOf(l.arch)
				listed := disassembled(t, livetest.LLVM(t, 22, "llvm-objdump"), path, ".text")
				require.NotEmpty(t, listed)
				code, err := c.file.Section(".text").Data()
				require.NoError(t, err)
				for i, in := range listed {
					end := uint64(len(code))
					if i+1 < len(listed) {
						end = listed[i+1].addr
					}
					n := 4
					if !kind.fixed {
						n = kind.size(code[in.addr:])
					}
					require.Equal(t, end-in.addr, uint64(n), "%s: %#x %s", program, in.addr, in.text)
				}
			})
		})
	}
}

// instruction is a line of a disassembler.
type instruction struct {
	addr uint64
	text string
}

// disassembled returns the instructions of a section as an objdump lists them.
func disassembled(t testing.TB, tool, path, section string, more ...string) []instruction {
	t.Helper()
	args := append([]string{"-d", "-j", section, "-z", "--no-show-raw-insn"}, more...)
	list := listing(t, livetest.Printed(t, tool, append(args, path)...))
	slices.SortFunc(list, func(a, b instruction) int { return cmp.Compare(a.addr, b.addr) })
	return list
}

// listing reads what an objdump prints.
func listing(t testing.TB, text string) []instruction {
	t.Helper()
	var list []instruction
	for line := range strings.Lines(text) {
		head, rest, ok := strings.Cut(line, ":")
		var addr uint64
		if _, err := fmt.Sscanf(head, "%x", &addr); !ok || err != nil || !strings.HasPrefix(line, " ") {
			continue
		}
		list = append(list, instruction{addr, strings.TrimSpace(rest)})
	}
	return list
}
