package unwind

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/deopt/unwind/internal/unwindtest"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// Limits of the reads and bytes that a walk may use for a frame, on average. They include reads of code that is not cached. That many reads from a
// copy of a process's memory take some hundred microseconds.
const (
	readsPerFrame = 1000
	bytesPerFrame = 128 << 10
)

// held is a core in memory, with one stack that a test can overwrite.
type held struct {
	core     *core
	segments segments
	stack    segment // the overwritten part
	deep     machine.Addr
}

type segment struct {
	start machine.Addr
	data  []byte
}

func hold(t *testing.T, c *core, sp machine.Addr) *held {
	t.Helper()
	h := &held{core: c}
	for _, load := range c.loads {
		data, err := io.ReadAll(load.Open())
		require.NoError(t, err)
		h.segments = append(h.segments, segment{machine.Addr(load.Vaddr), data})
		if sp-machine.Addr(load.Vaddr) < machine.Addr(load.Filesz) {
			h.stack = segment{machine.Addr(load.Vaddr), slices.Clone(data)}
		}
	}
	require.NotEmpty(t, h.stack.data)
	return h
}

func (s segment) read(p []byte, addr machine.Addr) bool {
	at := uint64(addr - s.start)
	if at > uint64(len(s.data)) || uint64(len(p)) > uint64(len(s.data))-at {
		return false
	}
	copy(p, s.data[at:])
	return true
}

func (h *held) ReadMemory(p []byte, addr machine.Addr) error {
	if h.stack.read(p, addr) {
		return nil
	}
	if h.segments.ReadMemory(p, addr) == nil {
		return nil
	}
	return h.core.ReadMemory(p, addr)
}

// restore undoes all writes to the stack.
func (h *held) restore() {
	for _, s := range h.segments {
		if s.start == h.stack.start {
			copy(h.stack.data, s.data)
		}
	}
}

// words replaces each word of the stack from sp by the result of f.
func (h *held) words(sp machine.Addr, f func(at machine.Addr, v uint64) uint64) {
	for at := (sp+7)&^7 - h.stack.start; at+8 <= machine.Addr(len(h.stack.data)); at += 8 {
		b := h.stack.data[at:]
		binary.LittleEndian.PutUint64(b, f(h.stack.start+at, binary.LittleEndian.Uint64(b)))
	}
}

// corruptions returns the ways to corrupt a stack, by name.
func corruptions(h *held, sp machine.Addr, random *rand.Rand) map[string]func() {
	code := func(v uint64) bool { return h.core.executable(machine.Addr(v)) }
	return map[string]func(){
		"random bytes": func() {
			h.words(sp, func(_ machine.Addr, v uint64) uint64 {
				if random.IntN(4) == 0 {
					return random.Uint64()
				}
				return v
			})
		},
		"one byte": func() {
			n := int(sp-h.stack.start) + random.IntN(1024)
			h.stack.data[min(n, len(h.stack.data)-1)] = byte(random.Uint32())
		},
		"the same letter": func() {
			h.words(sp+machine.Addr(random.IntN(512)), func(machine.Addr, uint64) uint64 { return 0x4141414141414141 })
		},
		"pointers to themselves": func() {
			h.words(sp+machine.Addr(random.IntN(512)), func(at machine.Addr, _ uint64) uint64 { return uint64(at) })
		},
		"pointers back": func() {
			h.words(sp+machine.Addr(random.IntN(256)), func(at machine.Addr, v uint64) uint64 {
				if code(v) {
					return v
				}
				return uint64(at) - 8*uint64(random.IntN(32))
			})
		},
		"pointers up": func() {
			h.words(sp+machine.Addr(random.IntN(256)), func(at machine.Addr, v uint64) uint64 {
				if code(v) {
					return v
				}
				return uint64(at) + 8*uint64(random.IntN(32))
			})
		},
		"return addresses a byte off": func() {
			h.words(sp, func(_ machine.Addr, v uint64) uint64 {
				if code(v) && random.IntN(3) == 0 {
					return v + uint64(random.IntN(3)) - 1
				}
				return v
			})
		},
		"return addresses only": func() {
			var list []uint64
			h.words(sp, func(_ machine.Addr, v uint64) uint64 {
				if code(v) {
					list = append(list, v)
				}
				return v
			})
			h.words(sp, func(machine.Addr, uint64) uint64 { return list[random.IntN(len(list))] })
		},
		"code that no call precedes": func() {
			pc := uint64(h.deep)
			h.words(sp, func(machine.Addr, uint64) uint64 { return pc + 1 })
		},
		"a stack that was moved": func() {
			at := int(sp - h.stack.start)
			copy(h.stack.data[at:], slices.Clone(h.stack.data[min(at+8*(1+random.IntN(16)), len(h.stack.data)):]))
		},
		"nothing": func() {},
	}
}

// TestCorruptStacks walks corrupted stacks with CFI, with code only, and with invalid registers: each walk must end with a reason, within the limits
// of cost.
func TestCorruptStacks(t *testing.T) {
	livetest.Slow(t)
	rounds := livetest.Times(15, 60)
	program := stacks(t, "-O2", "-fno-omit-frame-pointer")
	for _, way := range []string{"deep", "nested", "bare", "callback"} {
		s := stops(t, []string{"run"}, program, way)[0]
		pristine := s.registers()
		sp, err := pristine.Addr(rsp)
		require.NoError(t, err)
		memory := hold(t, s.core, sp)
		memory.deep = s.core.symbol(program, "deep")
		var worst cost
		walks := map[bool]int{}
		for kind, finder := range map[string]func() Finder{
			"CFI":     func() Finder { return s.core },
			"symbols": func() Finder { return sameCode{&Code{Functions: s.core.symbols(program)}} },
			"code":    func() Finder { return sameCode{&Code{}} },
		} {
			random := rand.New(rand.NewPCG(1, 2))
			all := corruptions(memory, sp, random)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				for round := range rounds {
					memory.restore()
					all[name]()
					regs := pristine.Clone()
					if round%3 == 1 {
						spoil(regs, random, memory.deep)
					}
					used := &counted{Memory: memory}
					u := Unwinder{Arch: machine.AMD64, Memory: used, Finder: finder(), Executable: s.core.executable}
					stack := u.Walk(regs, nil)
					requireSound(t, stack)
					walks[stack.End.Complete]++
					worst.add(used, len(stack.Frames), fmt.Sprintf("%s, %s, %s, round %d", way, name, kind, round))
				}
			}
		}
		t.Logf("%s: %d walks reached an end and %d did not; at most %d reads a frame (%s) and %d bytes (%s)",
			way, walks[true], walks[false], worst.reads, worst.readsOf, worst.bytes, worst.bytesOf)
		require.LessOrEqual(t, worst.reads, readsPerFrame, worst.readsOf)
		require.LessOrEqual(t, worst.bytes, bytesPerFrame, worst.bytesOf)
	}
}

// sameCode finds one Code for every address.
type sameCode struct{ code *Code }

func (s sameCode) Code(machine.Addr) *Code { return s.code }

// spoil sets registers to invalid values: unaligned, unmapped, at the ends of memory, or in code.
func spoil(regs *machine.Registers, random *rand.Rand, code machine.Addr) {
	old, _ := regs.Uint(rsp)
	values := []uint64{0, 1, 8, old + 1, old - 4096, old + 1<<20, 1<<64 - 8, 1<<64 - 1, 1 << 63, random.Uint64(), uint64(code) + uint64(random.IntN(64))}
	for range 1 + random.IntN(3) {
		regs.SetUint([]machine.DWARFReg{rsp, rbp, rip, rbx, 12}[random.IntN(5)], values[random.IntN(len(values))])
	}
}

// cost records the largest numbers of reads and bytes for each frame of a walk, and the names of the walks.
type cost struct {
	reads, bytes     int
	readsOf, bytesOf string
}

func (c *cost) add(used *counted, frames int, name string) {
	if n := used.reads / frames; n > c.reads {
		c.reads, c.readsOf = n, name
	}
	if n := used.bytes / frames; n > c.bytes {
		c.bytes, c.bytesOf = n, name
	}
}

// requireSound checks the properties that every stack has.
func requireSound(t *testing.T, s *Stack) {
	t.Helper()
	require.NotEmpty(t, s.Frames)
	require.LessOrEqual(t, len(s.Frames), defaultMax)
	require.NotEmpty(t, s.End.Reason)
	require.Equal(t, !s.End.Complete, strings.HasPrefix(s.End.Reason, "cut short: "))
	require.Equal(t, !s.End.Complete, s.End.Code != "", s.End.Reason)
	low, known := machine.Addr(0), false
	for i := range s.Frames {
		f := &s.Frames[i]
		require.Equal(t, i, f.Index)
		require.Equal(t, i == 0, f.Rule == FromRegisters)
		require.Equal(t, i > 0 && !s.Frames[i-1].Signal, f.Return)
		require.True(t, f.NoCFA != "" || f.Signal || !known || f.CFA > low || f.CFA == low && i == len(s.Frames)-1, "frame #%d", i)
		if f.NoCFA == "" {
			low, known = f.CFA, !f.Signal // a signal handler may run on another stack
		}
	}
}

// TestLyingCFI walks a valid stack with CFI in which bytes were changed. A walk may be wrong or long, but must end with a reason.
func TestLyingCFI(t *testing.T) {
	rounds := livetest.Times(1000, 3000)
	program := stacks(t, "-O2")
	s := stops(t, []string{"run"}, program, "nested")[0]
	sp, err := s.registers().Addr(rsp)
	require.NoError(t, err)
	memory := hold(t, s.core, sp)
	want := s.walk()
	sections := sectionsOf(t, program, s.core.base(program))
	frame := make([]byte, sections.EHFrame.Size)
	_, err = sections.EHFrame.Data.ReadAt(frame, 0)
	require.NoError(t, err)
	truth := s.core.Code(machine.Addr(s.core.function(program, "deep").Value))
	random := rand.New(rand.NewPCG(3, 4))
	var worst cost
	wrong := 0
	for round := range rounds {
		lie := slices.Clone(frame)
		for range 1 + random.IntN(8) {
			n := random.IntN(len(lie))
			switch random.IntN(3) {
			case 0:
				lie[n] = byte(random.Uint32())
			case 1:
				lie[n] += 8
			default:
				lie[n] ^= 1 << random.IntN(8)
			}
		}
		changed := sections
		changed.EHFrame.Data, changed.EHFrameHdr = bytes.NewReader(lie), cfi.Section{}
		table, err := cfi.NewTable(changed)
		now := &Code{Source: program, Table: table, Err: err, Functions: truth.Functions}
		used := &counted{Memory: memory}
		u := Unwinder{Arch: machine.AMD64, Memory: used, Finder: anew{s.core, truth, now}, Executable: s.core.executable}
		stack := u.Walk(s.registers(), nil)
		requireSound(t, stack)
		worst.add(used, len(stack.Frames), fmt.Sprintf("round %d", round))
		if len(stack.Frames) != len(want.Frames) {
			wrong++
		}
	}
	require.Greater(t, wrong, rounds/20)
	t.Logf("%d of %d lies led elsewhere; at most %d reads a frame (%s) and %d bytes (%s)", wrong, rounds, worst.reads, worst.readsOf, worst.bytes, worst.bytesOf)
	require.LessOrEqual(t, worst.reads, readsPerFrame, worst.readsOf)
	require.LessOrEqual(t, worst.bytes, bytesPerFrame, worst.bytesOf)
}

// TestWalksByEveryByte sets each byte of an .eh_frame to each other value, and requires that every walk ends with a reason.
func TestWalksByEveryByte(t *testing.T) {
	livetest.Slow(t)
	frame, _ := unwindtest.Seed()
	memory := code(endlessStack()) // return addresses in the code of the FDE wherever a stack may be
	walk := func() error {
		table, err := cfi.NewTable(byHand(frame))
		if err != nil {
			return err
		}
		u := Unwinder{Arch: machine.AMD64, Max: 8, Memory: memory, Executable: executable, Finder: tables{table: table}}
		for _, pc := range []uint64{0x1000, 0x1018, 0x10ff} {
			frames, end := u.framesOf(registers(map[machine.DWARFReg]uint64{rip: pc, rsp: 0x7000, rbp: 0x7010}))
			if len(frames) == 0 || end.Reason == "" {
				return fmt.Errorf("a walk from %#x of %d frames that ends for %q", pc, len(frames), end.Reason)
			}
		}
		return nil
	}
	require.NoError(t, walk())
	for i := livetest.First(11); i < len(frame); i += livetest.Step(11) {
		old := frame[i]
		for v := range 256 {
			frame[i] = byte(v)
			if err := walk(); err != nil {
				require.NoError(t, err, "byte %#x is %#x", i, v)
			}
		}
		frame[i] = old
	}
}

// FuzzWalk walks a stack of arbitrary bytes, through arbitrary code and CFI.
func FuzzWalk(f *testing.F) {
	frame, _ := unwindtest.Seed()
	words := func(list ...uint64) []byte { return le(list) }
	loop := []byte{0x55, 0x48, 0x89, 0xe5, 0xe8, 0xf7, 0xff, 0xff, 0xff, 0x5d, 0xc3} // push, mov, call itself, pop, ret
	sigreturn := append([]byte{0x90}, machine.AMD64.Trampolines[0].Code...)
	f.Add(words(0x7010, 0x2009, 0x7020, 0x2009), loop, frame, uint64(0x2004), uint64(0x7000), uint64(0x7000))
	f.Add(words(0x7000, 0x2009), loop, frame, uint64(0x2009), uint64(0x7000), uint64(0x7000))
	f.Add(bytes.Repeat([]byte{0x09, 0x20, 0, 0, 0, 0, 0, 0}, 64), loop, []byte(nil), uint64(0x2001), uint64(0x7001), uint64(1<<64-8))
	f.Add(bytes.Repeat(words(0x7000), 40), sigreturn, frame, uint64(0x2001), uint64(0x7000), uint64(0))
	f.Add(words(0x1010, 0x1010, 0x1018, 0), loop, frame, uint64(0x1000), uint64(0x7000), uint64(0x7008))
	f.Fuzz(func(t *testing.T, stack, code, frame []byte, pc, sp, fp uint64) {
		if len(stack) > 64<<10 || len(code) > 4<<10 || len(frame) > 4<<10 {
			return
		}
		table, err := cfi.NewTable(byHand(frame))
		finder := tables{table: table}
		if err != nil {
			finder = tables{err: err}
		}
		memory := &counted{Memory: segments{{0x2000, code}, {0x7000, stack}}}
		u := Unwinder{Arch: machine.AMD64, Memory: memory, Finder: finder, Executable: executable}
		regs := registers(map[machine.DWARFReg]uint64{rip: pc, rsp: sp, rbp: fp})
		first := u.Walk(regs, nil)
		requireSound(t, first)
		// Allow two scans. At the very start of code, each check for a call takes nine reads.
		require.LessOrEqual(t, memory.reads, (2*9*maxTried+readsPerFrame)*len(first.Frames))
		again := u.Walk(regs, first)
		sameStack(t, first, again)
	})
}

// segments is memory that consists of these ranges.
type segments []segment

func (s segments) ReadMemory(p []byte, addr machine.Addr) error {
	for _, one := range s {
		if one.read(p, addr) {
			return nil
		}
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
}
