package goroutine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// layout holds the offsets of fields in the structures g and m of Go's run time.
type layout struct {
	size                                        int
	status, id, start, labels, thread, lockedTo field // fields of g
	pc, sp, fp                                  field // fields of g.sched
	low, high                                   field // fields of g.stack
	tid                                         field // the field of m that holds the kernel's number of its thread
}

// field is a member of a structure: its offset and its size.
type field struct{ offset, size int }

// find returns the offset and size of a member; path holds the names of the members that lead to it.
func find(t godwarf.Type, path ...string) (f field, err error) {
	for _, name := range path {
		s, ok := godwarf.ResolveTypedef(t).(*godwarf.StructType)
		if !ok {
			return field{}, fmt.Errorf("its debug information has no structure with a field %s", name)
		}
		i := slices.IndexFunc(s.Field, func(m *godwarf.StructField) bool { return m.Name == name })
		if i < 0 {
			return field{}, fmt.Errorf("its debug information has no field %s.%s", s.StructName, name)
		}
		f = field{f.offset + int(s.Field[i].ByteOffset), int(s.Field[i].Type.Size())}
		t = s.Field[i].Type
	}
	return f, nil
}

// maxStructure bounds the size of a g and of an m.
const maxStructure = 1 << 12

// fields returns the offsets of the fields that this package reads, from the program's debug information.
func (r *Reader) fields() (l *layout, err error) {
	if r.layout != nil {
		return r.layout, nil
	}
	g, err := r.process.info.FindType("runtime.g")
	if err != nil {
		return nil, err
	}
	m, err := r.process.info.FindType("runtime.m")
	if err != nil {
		return nil, err
	}
	l = &layout{size: int(g.Size())}
	for _, want := range []struct {
		to   *field
		of   godwarf.Type
		path []string
	}{
		{&l.status, g, []string{"atomicstatus", "value"}}, {&l.id, g, []string{"goid"}}, {&l.start, g, []string{"startpc"}}, {&l.labels, g, []string{"labels"}},
		{&l.thread, g, []string{"m"}}, {&l.lockedTo, g, []string{"lockedm"}}, {&l.pc, g, []string{"sched", "pc"}}, {&l.sp, g, []string{"sched", "sp"}},
		{&l.fp, g, []string{"sched", "bp"}}, {&l.low, g, []string{"stack", "lo"}}, {&l.high, g, []string{"stack", "hi"}}, {&l.tid, m, []string{"procid"}},
	} {
		if *want.to, err = find(want.of, want.path...); err != nil {
			return nil, err
		}
		if f := *want.to; f.offset < 0 || f.size != 4 && f.size != 8 || f.offset+f.size > maxStructure || want.of == g && f.offset+f.size > l.size {
			return nil, fmt.Errorf("its debug information has a wrong place of %v", want.path)
		}
	}
	if l.size > maxStructure {
		return nil, fmt.Errorf("a goroutine has %d bytes; up to %d are read", l.size, maxStructure)
	}
	if t, err := r.process.info.FindType("runtime/pprof.labelMap"); err != nil || !isList(t) {
		l.labels = field{} // up to Go 1.23 labels are a map, which is not read
	}
	r.layout = l
	return l, nil
}

// isList reports whether a structure begins with a slice.
func isList(t godwarf.Type) bool {
	for {
		switch s := godwarf.ResolveTypedef(t).(type) {
		case *godwarf.SliceType:
			return true
		case *godwarf.StructType:
			if len(s.Field) == 0 {
				return false
			}
			t = s.Field[0].Type
		default:
			return false
		}
	}
}

// allgs returns the address of the slice of all goroutines.
func (r *Reader) allgs() (machine.Addr, error) {
	symbol, ok := r.target.GoProgram().Image.Lookup("runtime.allgs")
	if !ok {
		return 0, fmt.Errorf("the Go program has no symbol runtime.allgs")
	}
	return symbol.Addr, nil
}

// Layout describes to [ptrace.Options.Goroutines] where goroutines are in memory. If all is set, it includes those that no thread runs.
func (r *Reader) Layout(all bool) (_ *ptrace.GoLayout, err error) {
	defer recovered(&err)
	l, err := r.fields()
	if err != nil {
		return nil, err
	}
	out := &ptrace.GoLayout{Size: l.size, Labels: l.labels.offset, Locked: l.lockedTo.offset, ThreadID: l.tid.offset}
	if all {
		out.All, err = r.allgs()
	}
	return out, err
}

// Parked is a goroutine that no thread runs.
type Parked struct {
	frame.Goroutine
	Registers *machine.Registers // the registers as the goroutine saved them
	Missing   string             // why there are no registers, or ""
	// Memory is the memory of the process. If the goroutine is locked to a thread, Memory shows this goroutine as the one that the thread runs.
	Memory machine.Memory
}

// Parked reads the goroutines that no thread runs, in the order of their numbers. [Reader.OfThread] must have been called for each thread. unread is the
// number of goroutines that were not read.
func (r *Reader) Parked() (list []Parked, unread int, err error) {
	defer recovered(&err)
	l, err := r.fields()
	if err != nil {
		return nil, 0, err
	}
	at, err := r.allgs()
	if err != nil {
		return nil, 0, err
	}
	order := r.target.Arch().Order
	var slice [16]byte
	if err := r.target.ReadMemory(slice[:], at); err != nil {
		return nil, 0, err
	}
	total := order.Uint64(slice[8:])
	pointers := make([]byte, 8*min(total, ptrace.MaxGoroutines))
	if err := r.target.ReadMemory(pointers, machine.Addr(order.Uint64(slice[:]))); err != nil {
		return nil, 0, err
	}
	b := make([]byte, l.size)
	unread = int(min(total-uint64(len(pointers)/8), 1<<40))
	for ; len(pointers) > 0; pointers = pointers[8:] {
		addr := machine.Addr(order.Uint64(pointers))
		if r.target.ReadMemory(b, addr) != nil {
			unread++
			continue
		}
		if p, ok := r.parked(l, addr, b); ok {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Parked) int { return cmp.Compare(a.ID, b.ID) })
	return list, unread, nil
}

// parked describes the goroutine at an address, whose bytes are b. ok is false if a thread runs it, or if it has ended.
func (r *Reader) parked(l *layout, addr machine.Addr, b []byte) (p Parked, ok bool) {
	arch := r.target.Arch()
	value := func(f field) uint64 {
		if f.size == 4 {
			return uint64(arch.Order.Uint32(b[f.offset:]))
		}
		return arch.Order.Uint64(b[f.offset:])
	}
	p.ID, p.State, p.Memory = int64(value(l.id)), stateOf(value(l.status)), r.target
	if r.run[p.ID] || p.State == "dead" || p.State == "idle" {
		return p, false
	}
	p.Start = r.start(addr, machine.Addr(value(l.start)))
	if l.labels.size != 0 {
		p.Labels = r.labels(machine.Addr(value(l.labels)))
	}
	stack := machine.Range{Start: machine.Addr(value(l.low)), End: machine.Addr(value(l.high))}
	switch {
	case p.State == "running" || p.State == "syscall" || p.State == "copystack":
		p.Missing = "its thread could not be read"
		return p, true
	case value(l.thread) != 0: // The garbage collector sets the status of a running goroutine to waiting (casGToWaitingForSuspendG in runtime/proc.go).
		p.Missing = "a thread runs it, or switches to or from it"
		return p, true
	case !stack.Contains(machine.Addr(value(l.sp))):
		p.Missing = "its saved stack pointer is outside its stack"
		return p, true
	}
	p.Registers = machine.NewRegisters(arch, "a goroutine that no thread runs has saved only pc, sp and the frame pointer")
	p.Registers.SetUint(arch.PC, value(l.pc))
	p.Registers.SetUint(arch.SP, value(l.sp))
	p.Registers.SetUint(arch.FP, value(l.fp))
	if m := machine.Addr(value(l.lockedTo)); m != 0 {
		r.onThread(&p, l, addr, m)
	}
	return p, true
}

// start returns the name of a goroutine's first function.
func (r *Reader) start(g, pc machine.Addr) string {
	name, known := r.starts[pc]
	if !known {
		if read, err := r.byDelve(0, registers{0, g}); err == nil && read != nil && machine.Addr(read.StartPC) == pc {
			if at := read.StartLoc(r.group); at.Fn != nil {
				name = at.Fn.Name
			}
		}
		r.starts[pc] = name
	}
	return name
}

// Bounds of labels, as in Delve.
const (
	maxLabels = 64
	maxLabel  = 64
)

// labels reads the labels of a goroutine: a slice of pairs of strings.
func (r *Reader) labels(at machine.Addr) map[string]string {
	order := r.target.Arch().Order
	var head [16]byte
	if at == 0 || r.target.ReadMemory(head[:], at) != nil || order.Uint64(head[8:]) > maxLabels {
		return nil
	}
	pairs := make([]byte, 32*order.Uint64(head[8:]))
	if r.target.ReadMemory(pairs, machine.Addr(order.Uint64(head[:]))) != nil {
		return nil
	}
	text := func(b []byte) string {
		n := order.Uint64(b[8:])
		if n >= maxLabel {
			return ""
		}
		s := make([]byte, n)
		if r.target.ReadMemory(s, machine.Addr(order.Uint64(b))) != nil {
			return ""
		}
		return string(s)
	}
	var out map[string]string
	for ; len(pairs) > 0; pairs = pairs[32:] {
		if key, value := text(pairs), text(pairs[16:]); whole(key) && whole(value) {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// onThread sets the thread pointer and the memory of a goroutine that is locked to the thread of m, because C functions on that thread's stack called
// it. Meanwhile Go's scheduler runs on that thread.
func (r *Reader) onThread(p *Parked, l *layout, g, m machine.Addr) {
	arch := r.target.Arch()
	tid, err := machine.ReadAddr(r.target, arch, m+machine.Addr(l.tid.offset))
	if err != nil {
		return
	}
	for _, th := range r.target.Threads() {
		if uint64(th.ID) != uint64(tid) || th.Registers == nil {
			continue
		}
		pointer := th.Registers.ThreadPointer()
		if found, ok := ptrace.FindGoThread(arch, r.target, pointer); ok {
			p.Registers.SetThreadPointer(pointer)
			p.Memory = &asRunning{Memory: r.target, arch: arch, g: g, thread: g + machine.Addr(l.thread.offset), m: m, current: found.Current, local: pointer}
		}
	}
}

// asRunning is memory in which a goroutine runs on a thread.
type asRunning struct {
	machine.Memory
	arch      *machine.Arch
	g         machine.Addr
	thread, m machine.Addr // address of the field g.m, and the value to show there
	current   machine.Addr // the goroutine that the thread runs
	local     machine.Addr // the thread pointer, with the thread-local variables below it
}

// ReadMemory implements [machine.Memory].
func (a *asRunning) ReadMemory(p []byte, addr machine.Addr) error {
	if err := a.Memory.ReadMemory(p, addr); err != nil {
		return err
	}
	end := addr + machine.Addr(len(p))
	if addr <= a.thread && a.thread+8 <= end {
		a.arch.Order.PutUint64(p[a.thread-addr:], uint64(a.m))
	}
	for at := max(addr+7, a.local-localBytes) &^ 7; at >= addr && at < a.local && at+8 <= end; at += 8 {
		if word := p[at-addr:][:8]; machine.Addr(a.arch.Order.Uint64(word)) == a.current {
			a.arch.Order.PutUint64(word, uint64(a.g))
		}
	}
	return nil
}

// localBytes is the size of the memory below the thread pointer in which [ptrace.FindGoThread] looks for the running goroutine.
const localBytes = 512
