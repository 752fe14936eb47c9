package main

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
)

const (
	corruptedRounds = 20
	corruptedBytes  = 2 << 20
	corruptedLimit  = time.Millisecond
)

// corruption is a way to overwrite a stack: a function that returns the word at an address.
type corruption struct {
	what string
	word func(*rand.Rand, machine.Addr) machine.Addr
}

// corruptions returns ways to overwrite a stack: with random words, return addresses, addresses of code, or addresses of the stack itself.
func corruptions(returns []machine.Addr, code func(*rand.Rand) machine.Addr) []corruption {
	some := func(r *rand.Rand) machine.Addr { return returns[r.IntN(len(returns))] }
	near := func(r *rand.Rand, at machine.Addr) machine.Addr { return at + 8*machine.Addr(r.IntN(64)) }
	return []corruption{
		{"random words", func(r *rand.Rand, _ machine.Addr) machine.Addr { return machine.Addr(r.Uint64()) }},
		{"addresses of code", func(r *rand.Rand, _ machine.Addr) machine.Addr { return code(r) }},
		{"return addresses", func(r *rand.Rand, _ machine.Addr) machine.Addr { return some(r) }},
		{"one return address", func(*rand.Rand, machine.Addr) machine.Addr { return returns[1] }},
		{"words that point to themselves", func(_ *rand.Rand, at machine.Addr) machine.Addr { return at }},
		{"links and return addresses", func(r *rand.Rand, at machine.Addr) machine.Addr {
			if r.IntN(2) == 0 {
				return near(r, at)
			}
			return some(r)
		}},
		{"all of these mixed", func(r *rand.Rand, at machine.Addr) machine.Addr {
			return []machine.Addr{machine.Addr(r.Uint64()), code(r), some(r), at, near(r, at)}[r.IntN(5)]
		}},
	}
}

// corrupted measures the time per frame of an overwritten stack. The code has not been examined before.
func (b *bench) corrupted(stacks ...*deepStack) {
	b.section("Unwinding stacks of which %d MiB were overwritten, per frame, %d walks of each", corruptedBytes>>20, corruptedRounds*len(stacks))
	var spent []times
	var whats []string
	for _, s := range stacks {
		var returns []machine.Addr
		for _, f := range s.walk(nil).Frames[1:] {
			returns = append(returns, f.PC)
		}
		for i, c := range corruptions(returns, s.code()) {
			if i == len(spent) {
				spent, whats = append(spent, nil), append(whats, c.what)
			}
			for seed := range corruptedRounds {
				spent[i].add(b.walkCorrupted(s, c, rand.New(rand.NewPCG(4, uint64(seed))), returns))
			}
		}
	}
	var rows []row
	for i, what := range whats {
		worst := spent[i][0]
		for _, d := range spent[i] {
			worst = max(worst, d)
		}
		rows = append(rows, row{what: what, ours: perFrame(spent[i]), target: "the worst at most 1 ms: " + verdict(worst <= corruptedLimit)})
	}
	b.print(rows...)
}

// code returns a function that picks addresses in the code of the modules.
func (s *deepStack) code() func(*rand.Rand) machine.Addr {
	type section struct {
		start machine.Addr
		size  uint64
	}
	var all []section
	for _, m := range s.target.Modules {
		if m.Image == nil {
			continue
		}
		for _, c := range m.Image.Code() {
			all = append(all, section{c.Loaded(), c.Size})
		}
	}
	return func(r *rand.Rand) machine.Addr {
		c := all[r.IntN(len(all))]
		return c.start + machine.Addr(r.Uint64N(c.size))
	}
}

// walkCorrupted unwinds an overwritten stack once, and returns the time per frame. It starts at the thread's pc or at one of the return addresses.
func (b *bench) walkCorrupted(s *deepStack, c corruption, random *rand.Rand, returns []machine.Addr) time.Duration {
	arch := s.target.Arch()
	sp, err := s.registers.Addr(arch.SP)
	require.NoError(b, err)
	over := &overwritten{Memory: s.target, start: sp, data: make([]byte, corruptedBytes)}
	for at := 0; at < len(over.data); at += 8 {
		binary.LittleEndian.PutUint64(over.data[at:], uint64(c.word(random, sp+machine.Addr(at))))
	}
	registers := s.registers.Clone()
	registers.SetUint(arch.FP, uint64(sp+16))
	if random.IntN(2) == 0 {
		registers.SetUint(arch.PC, uint64(returns[random.IntN(len(returns))]))
	}
	fresh, err := deopt.Frames(s.target, deopt.Options{Thread: s.process.PID})
	require.NoError(b, err)
	u := *fresh.Unwinder()
	u.Memory = over
	began := time.Now()
	stack := u.Walk(registers, nil)
	spent := time.Since(began)
	require.NotEmpty(b, stack.Frames)
	require.True(b, stack.End.Complete == (stack.End.Code == ""), stack.End.Reason)
	return spent / time.Duration(len(stack.Frames))
}

// overwritten is memory of which a part is replaced.
type overwritten struct {
	machine.Memory
	start machine.Addr
	data  []byte
}

// ReadMemory implements [machine.Memory].
func (o *overwritten) ReadMemory(p []byte, addr machine.Addr) error {
	if skip := uint64(addr - o.start); addr >= o.start && skip+uint64(len(p)) <= uint64(len(o.data)) {
		copy(p, o.data[skip:])
		return nil
	}
	return o.Memory.ReadMemory(p, addr)
}
