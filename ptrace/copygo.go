package ptrace

import (
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// placeModules finds the addresses of the modules, and determines whether stacks of goroutines are copied.
func (t reading) placeModules() {
	t.places = newPlaces(t.Modules)
	t.goProgram = t.arch == machine.AMD64 && t.GoProgram() != nil // on other architectures, stacks are not followed across C
}

// GoProgram returns the module of the Go program that the target runs, or nil.
func (t *Target) GoProgram() *Module {
	for _, m := range t.Modules {
		if m.Image != nil && m.Image.CompiledByGo() {
			return m
		}
	}
	return nil
}

// copyGoStacks copies the stacks of the goroutines to which the thread refers, and the structures that [FindGoThread] reads. A thread that runs C
// uses two stacks: its own, and that of the goroutine that called C.
func (t *stoppedThread) copyGoStacks(mem memory, of *Target) {
	keep, maps := &keeping{mem: mem}, of.maps
	// Package goroutine reads all fields of a g, so the whole g is copied. If the copy fails, reading a field later returns the error.
	r := &goReader{t.arch, keep, maps, goroutineBytes}
	found, ok := r.find(t.block)
	t.runtime = append(t.runtime, keep.spans...) // also if there are several candidates, because a later search must find all of them
	if !ok {
		return
	}
	known := append(slices.Clone(found.Running), found.System)
	for _, g := range known {
		t.running = append(t.running, g.Addr)
	}
	for _, g := range known {
		copied := slices.ContainsFunc(t.stacks, func(s span) bool { return s.addr <= g.SP && g.SP < s.end() })
		if copied || !g.Stack.Contains(g.SP) || len(t.stacks) > maxInterrupted {
			continue
		}
		room := min(uint64(g.Stack.End-g.SP), uint64(cap(t.stacks[0].data)))
		stack := span{g.SP, make([]byte, min(room, uint64(writableEnd(maps, g.SP)-g.SP)))}
		n, err := mem.readUpTo(stack.data, g.SP)
		if stack.data = stack.data[:n]; err == nil {
			t.stacks = append(t.stacks, stack)
		}
	}
}

// keeping is memory that copies everything that is read from it.
type keeping struct {
	mem   memory
	spans []span
}

// ReadMemory implements [machine.Memory].
func (k *keeping) ReadMemory(p []byte, addr machine.Addr) error {
	err := k.mem.ReadMemory(p, addr)
	if err == nil {
		k.spans = append(k.spans, span{addr, slices.Clone(p)})
	}
	return err
}

func (k *keeping) readMany(wants []system.Want) error {
	err := k.mem.readMany(wants)
	for _, w := range wants {
		if err == nil && w.OK {
			k.spans = append(k.spans, span{w.Addr, w.Buf})
		}
	}
	return err
}
