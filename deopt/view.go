package deopt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/progspace/gostack"
	"example.com/reframe/internal/progspace/patched"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// Options give the known modules and layouts of a target, and select the frames to make.
type Options struct {
	Modules []*ir.Module
	Layouts []*layout.Layout
	VMs     []*vmlayout.Layout // layouts of the user's virtual machine; the first that reads a record applies
	Thread  int                // number of the only thread to read; 0 for all
	// Mistake is called for each mistake in a layout, each time that it occurs, and the frame is shown without the layout. If Mistake is nil, a
	// mistake in a layout is an error.
	Mistake func(error)
	// VMMemory is the memory that layouts of virtual machines read; nil: that of the target.
	VMMemory machine.Memory
	Depth    unwind.Depth // which frames of a deep stack are kept; the zero value means [DefaultDepth]
	// Direct makes frames without a record show the variables that other records of their function locate by address.
	Direct bool
	// MapsInQuestion is set by verbs that look for wrong stack maps. [sites.Modules] describes it.
	MapsInQuestion bool
	// TrustIR is set if the user declared that the code was compiled from the modules. [sites.Modules] describes it.
	TrustIR bool
	// Refuses returns the reason why code cannot have been compiled from f, or "". [sites.Modules] describes it. It concerns modules in files that a
	// process writes while it runs.
	Refuses func(ms *sites.Modules, img *object.Image, start machine.Addr, f *ir.Func) string
}

// DefaultDepth selects the frames of a deep stack that are made by default.
var DefaultDepth = unwind.Depth{Inner: 256, Outer: 256}

// View holds all frames of one moment. Its frames do not change.
type View struct {
	Threads []Thread

	target   *ptrace.Target
	vmMemory machine.Memory // as in [Options]; the target if that is nil
	memory   machine.Memory // memory from which values are read: the target's, or that of an event
	space    *progspace.Space
	modules  *sites.Modules
	layouts  []*layout.Layout
	vms      []*vmlayout.Layout
	mistake  func(error)      // as in [Options]
	source   *vmlayout.Source // source of the values of the VMs' frames

	unwinder *unwind.Unwinder
	depth    unwind.Depth

	patched *patched.Finder

	unregistered bool // a frame is in unregistered code

	showDirect bool                               // as in [Options]
	directs    map[*progspace.Objfile]directTable // variables located by address, cached for showDirect
}

// Thread is one thread, or one goroutine that no thread runs, and its frames, innermost first.
type Thread struct {
	ID     int // 0 for a goroutine that no thread runs
	Name   string
	Frames []*Frame // without some in the middle if the stack is deep
	End    unwind.End

	Total   int // number of frames on the stack
	Omitted []unwind.Omitted

	Goroutine *frame.Goroutine // nil if unknown, or if the thread runs none
}

// Frame is one activation: the physical frame and the abstract frame made from it.
type Frame struct {
	frame.Frame

	physical   unwind.Frame
	callee     *unwind.Frame // nil if unknown
	guess      *doubt        // nil if the frame is certain
	code       *progspace.Objfile
	match      *Match
	values     []bound        // the values of the module that slots hold
	others     []*Match       // the other records at the same address; see [Frame.Others]
	to         *ir.Func       // the function that resumes, if a module defines it
	mistake    error          // the mistake in the layout for this frame, or nil
	about      map[int]uint64 // the records that notes are about, by index in Notes
	unreadable string         // why a record of the frame may exist but cannot be read, or ""
	view       *View
}

// bound is a value of an IR function and the slot that holds it.
type bound struct {
	value ir.Value
	slot  int // in Frame.Slots
}

// Frames makes the abstract frames of a target. It returns a [*MismatchError], a [*layout.Error] or an error of the IR reader if the user's input
// does not fit. If something is missing in the target, the frames themselves report it.
func Frames(t *ptrace.Target, o Options) (*View, error) {
	v, err := New(t, o)
	if err != nil {
		return nil, err
	}
	seen := false
	for _, thread := range t.Threads() {
		if o.Thread != 0 && o.Thread != thread.ID {
			continue
		}
		seen = true
		out, err := v.ThreadOf(thread)
		if err != nil {
			return nil, err
		}
		v.Threads = append(v.Threads, out)
	}
	if !seen && o.Thread == 0 {
		return nil, fmt.Errorf("%v: it holds no thread%s", t, frame.Noted(t.Notes))
	}
	if !seen {
		return nil, NoThread(t, o.Thread)
	}
	return v, nil
}

// New makes a view without frames. It returns an error if a layout does not fit the modules.
func New(t *ptrace.Target, o Options) (*View, error) {
	v := &View{target: t, memory: t, space: progspace.New(t), modules: sites.NewModules(o.Modules), layouts: o.Layouts, vms: o.VMs, mistake: o.Mistake, depth: o.Depth, showDirect: o.Direct}
	if v.depth == (unwind.Depth{}) {
		v.depth = DefaultDepth
	}
	if v.vmMemory = o.VMMemory; v.vmMemory == nil {
		v.vmMemory = t
	}
	v.source = &vmlayout.Source{Memory: v.vmMemory, Static: v.vmMemory, Fixed: v.fixed, Order: t.Arch().Order}
	v.modules.Pointer, v.modules.Refuses = t.Arch().Pointer, o.Refuses
	v.modules.MapsInQuestion, v.modules.TrustIR = o.MapsInQuestion, o.TrustIR
	v.unwinder = &unwind.Unwinder{Arch: t.Arch(), Memory: t, Finder: v.space, Executable: v.space.Executable, Compiled: v.space.Compiled, Conventions: v.conventionOf}
	v.patched = &patched.Finder{Space: v.space, Modules: v.modules, Unwinder: v.unwinder}
	v.unwinder.Overwritten, v.unwinder.Patchable, v.unwinder.Branches = v.patched.Places, v.patched.Patchable, v.patched.Branches
	v.unwinder.Switches = (&gostack.Finder{Space: v.space}).Walk
	for _, l := range o.Layouts {
		if err := v.excuse(l.Check(v.modules)); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// excuse passes a mistake in a layout to [Options].Mistake, if that is set, and returns any other error.
func (v *View) excuse(err error) error {
	var wrong *layout.Error
	if v.mistake == nil || !errors.As(err, &wrong) {
		return err
	}
	v.mistake(wrong)
	return nil
}

// ThreadOf makes the frames of one thread. It does not add them to the view.
func (v *View) ThreadOf(t machine.Thread) (Thread, error) { return v.walk(v.unwinder, t) }

func (v *View) walk(u *unwind.Unwinder, t machine.Thread) (Thread, error) {
	out := Thread{ID: t.ID, Name: t.Name}
	if t.Registers == nil {
		out.End = unwind.End{Reason: "cut short: " + t.Missing, Code: frame.ThreadUnread}
		return out, nil
	}
	stack := u.WalkDeep(t.Registers, v.depth)
	out.End, out.Total, out.Omitted = stack.End, stack.Total, stack.Omitted
	var within *Frame
	for i := range stack.Frames {
		f, err := v.FrameOf(stack.Frames[i], stack.Callee(i), within)
		if err != nil {
			return out, err
		}
		out.Frames, within = append(out.Frames, f), f
	}
	return out, nil
}

// Parked reports whether t is a goroutine that no thread runs.
func (t *Thread) Parked() bool { return t.ID == 0 }

// AddParked makes the frames of a goroutine that no thread runs, and adds them to the view. regs are the registers that it saved, or nil; missing is
// the reason if regs is nil. mem is the memory as it would be if the goroutine ran.
func (v *View) AddParked(g *frame.Goroutine, regs *machine.Registers, missing string, mem machine.Memory) error {
	u := *v.unwinder
	u.Memory = mem
	out, err := v.walk(&u, machine.Thread{Registers: regs, Missing: missing})
	out.Goroutine = g
	v.Threads = append(v.Threads, out)
	return err
}

// Unwinder returns the unwinder that found the frames. It caches what it learns about code, so walking the target's stacks again is cheap.
func (v *View) Unwinder() *unwind.Unwinder { return v.unwinder }

// FrameOf makes the abstract frame of a physical one. callee is the physical frame that it called, and within callee's abstract frame; nil for none.
func (v *View) FrameOf(p unwind.Frame, callee *unwind.Frame, within *Frame) (*Frame, error) {
	f := &Frame{physical: p, callee: callee, guess: doubtOf(&p, within), view: v}
	f.Index, f.PC, f.Rule = p.Index, frame.HexOf(p.PC), string(p.Rule)
	f.Frame.Guess = f.Uncertain()
	f.Kind = frame.Native
	if p.NoCFA == "" {
		f.CFA = frame.HexOf(p.CFA)
	}
	if p.Guess != "" {
		f.AddNote(p.WhyGuess())
	}
	if p.Skipped != 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("a frame is missing before this one: it called %s, which jumped to the function of frame #%d (a tail call)",
			names.Demangled(v.space.NameOf(p.Skipped)), p.Index-1))
	}
	at := p.Lookup()
	if why := v.patched.Undecided(&p); why != "" {
		f.Notes = append(f.Notes, why)
	}
	f.code = v.space.At(at)
	if f.code == nil {
		v.namedByPerf(f, at)
		if _, why := v.target.JITObjectAt(at); why != "" {
			f.Kind, f.unreadable = frame.JIT, "the JIT object registered here cannot be used: "+why
			f.Notes = append(f.Notes, f.unreadable)
			return f, nil
		}
		f.unreadable = v.unreadAt(at)
		return f, nil
	}
	f.Module = f.code.Name
	name, start, named := f.SymbolAt(at)
	if f.code == v.space.Found {
		v.namedByPerf(f, at)
	}
	if named {
		offset := uint64(f.Place() - start)
		f.Function, f.Demangled, f.Offset = name, names.IfMangled(name), &offset
	}
	if f.code.JIT && f.code.Image != nil {
		f.Kind = frame.JIT
	}
	if f.code.MapsErr != nil {
		f.AddNote(frame.Errorf("its stack map cannot be read: %w", f.code.MapsErr))
	}
	if err := f.findRecord(name, f.code.SymbolAt(at).Owner); err != nil {
		return nil, err
	}
	if f.match == nil {
		if f.unreadable = v.unreadAt(at); f.code.MapsErr != nil {
			f.unreadable = "its stack map cannot be read: " + f.code.MapsErr.Error()
		}
		f.fillDirect(name, f.code.SymbolAt(at).Owner)
		f.fillInterpreter()
		return f, nil
	}
	if f.Offset == nil { // the record gives the offset in its function
		offset := uint64(f.Place() - f.match.Entry.Function.Addr)
		f.Offset = &offset
	}
	err := f.Fill()
	if why := f.folded(); why != nil {
		f.AddNote(why)
	}
	f.fillAlso()
	if d := f.guess; d != nil && d.index != f.Index {
		f.Notes = append(f.Notes, fmt.Sprintf("it lies beyond frame #%d, which was found by a guess", d.index))
	}
	return f, err
}

// namedByPerf names the function of a frame if its code is in no file and no registered object, and the process has written its name for perf. All
// such code counts as JIT code.
func (v *View) namedByPerf(f *Frame, within machine.Addr) {
	if !v.target.IsJITCode(within) {
		return
	}
	f.Kind, v.unregistered = frame.JIT, true
	if named, by, ok := v.target.PerfName(within); ok {
		offset := uint64(f.physical.PC - named.Start)
		f.Function, f.Demangled, f.Offset, f.NamedBy = named.Name, names.IfMangled(named.Name), &offset, string(by)
	}
}

// SymbolAt returns the name and start of the function that contains pc. A symbol without a size covers all code up to the next symbol, also that of
// functions without a symbol. If an FDE that starts after the symbol covers pc, pc is in such a function, and ok is false.
func (f *Frame) SymbolAt(pc machine.Addr) (name string, start machine.Addr, ok bool) {
	s := f.code.SymbolAt(pc)
	if s.Known && s.Size == 0 && s.Start < f.physical.FDE.Start {
		return "", 0, false
	}
	return s.Name, s.Start, s.Known
}

// unreadAt returns the reason why the stack map for addr cannot be read, or "". Its file may be missing, or the list of registered objects may be
// broken.
func (v *View) unreadAt(addr machine.Addr) string {
	switch m := v.target.ModuleAt(addr); {
	case m == nil:
		return strings.Join(progspace.RegistryTrouble(v.target), "; ")
	case m.Lost:
		return m.Path + ": " + m.Why
	case m.MapsWhy != "":
		return m.Path + ": " + m.MapsWhy
	}
	return ""
}

// noteRecord adds a note about a record.
func (f *Frame) noteRecord(note RecordNote) {
	if f.about == nil {
		f.about = map[int]uint64{}
	}
	f.about[len(f.Notes)] = note.Record
	f.Notes = append(f.Notes, note.Text)
}

// OtherNotes returns the notes of the frame except for its guess and for those about the records that shown selects by their ids.
func (f *Frame) OtherNotes(shown func(record uint64) bool) (notes []string) {
	for n, note := range f.Notes {
		if record, about := f.about[n]; about && shown(record) || n == 0 && f.Guess() != "" {
			continue
		}
		notes = append(notes, note)
	}
	return notes
}

// Guess returns the reason why the frame may not be the caller of the one before, or why a frame may be missing between the two; "" if both are
// certain. It is the first of the frame's notes.
func (f *Frame) Guess() string { return f.physical.Guess }

// GuessKind returns the guess without numbers and addresses: it is equal for guesses of one kind.
func (f *Frame) GuessKind() string { return f.physical.GuessKind }

// findRecord finds the record of the frame, if any. owner is the start of the function whose records may describe the frame.
func (f *Frame) findRecord(function string, owner machine.Addr) error {
	if o := f.physical.Overwritten; o != nil {
		f.match = f.choose(f.overwritten(o.By.([]*patched.Code)))
		f.Notes = append(f.Notes, f.match.Uncertain()...)
		return nil
	}
	_, shadows, doubt := f.view.patched.Covering(&f.physical, f.callee)
	if f.Notes = append(f.Notes, shadows...); doubt {
		return nil
	}
	found, notes, err := f.Matcher(function, owner).Find(f.physical.PC, f.physical.Return)
	if err != nil {
		return err
	}
	if f.code.Records != nil && (found != nil || f.Kind == frame.JIT) {
		for _, note := range notes {
			f.noteRecord(note)
		}
	}
	if found != nil {
		found = f.choose(append([]*Match{found}, found.also...))
	}
	f.match = found
	if found != nil {
		f.Notes = append(f.Notes, found.Uncertain()...)
	}
	return nil
}

// Matcher returns a matcher that finds the frame's record. function is the name of its function, and owner the function's start.
func (f *Frame) Matcher(function string, owner machine.Addr) *Matcher {
	return &Matcher{Arch: f.view.target.Arch(), Memory: f.view.target, Records: f.code.Records, Function: owner, calls: f.mayCall, Sites: func(e sites.RecordEntry) (sites.Candidates, error) {
		c, err := f.view.modules.OfRecord(f.code, e, function)
		if err == nil && e.Addr == f.physical.PC && f.physical.Return {
			c.Sites = f.narrow(c.Sites)
		}
		return c, err
	}}
}

// choose returns the most informative record at the frame's address. For a frame that waits for a call it is the first one, that of the call; the
// others belong to sites after the call. Any other frame may not have passed the sites at its address. If it may have passed several, a site that
// has not run yet is best: all its values are in place, while no record has the result of a finished call.
func (f *Frame) choose(all []*Match) *Match {
	var best *Match
	var possible []*Match
	for _, m := range all {
		why := ""
		if !f.physical.Return {
			why = f.Reached(m)
		}
		switch {
		case why != "":
			f.noteRecord(RecordNote{uint64(m.Entry.Record.ID), why})
			continue
		case best == nil || best.Moment == frame.After && m.Moment == frame.Before:
			best = m
		}
		possible = append(possible, m)
	}
	if best == nil && all[0].Kind == "" {
		best = all[0]
	}
	for _, m := range all {
		if best != nil && m != best {
			if slices.Contains(possible, m) {
				f.others = append(f.others, m)
			}
			id := uint64(m.Entry.Record.ID)
			f.noteRecord(RecordNote{id, fmt.Sprintf("record %d is at this address too", id)})
		}
	}
	return best
}

// maxAlso bounds the other records at a frame's address whose values are read.
const maxAlso = 8

// fillAlso reads the values of the other records at the frame's address.
func (f *Frame) fillAlso() {
	for _, m := range f.others[:min(len(f.others), maxAlso)] {
		other := f.Recorded(m)
		f.Also = append(f.Also, frame.Also{Record: *other.Record, Slots: other.Slots, Notes: m.Uncertain()})
	}
}

// About describes the target.
func (v *View) About() frame.Target {
	t := v.target
	out := frame.Target{Kind: "process", PID: t.PID, Arch: t.Arch().Name, Core: t.Core, Debugger: t.Debugger, Notes: v.Notes()}
	switch {
	case t.Provider == ptrace.FromProcess:
		out.PauseUS, out.Stopped = new(t.Pause.Microseconds()), t.Stopped
		return out
	case t.Provider == ptrace.FromCore:
		out.Kind = "core"
		return out
	case t.PID == 0:
		out.Kind = "machine"
	}
	out.Provider = string(t.Provider)
	return out
}

// maxLostFiles bounds the files with missing code that notes list.
const maxLostFiles = 8

// Notes lists missing and uncertain data. For a core, or a process that a debugger holds, Notes has the notes about the target, and the files with
// code that are missing or may differ from those that were mapped. For a process, it has the reasons why the process's files for perf are not used.
func (v *View) Notes() []string {
	if v.target.Provider == ptrace.FromProcess {
		notes := v.perfNotes()
		if why := progspace.Unopened(v.target); why != "" {
			notes = append(notes, why)
		}
		return notes
	}
	notes := append(slices.Clone(v.target.Notes), v.perfNotes()...)
	onStack := map[*ptrace.Module]bool{}
	for _, t := range v.Threads {
		for _, f := range t.Frames {
			if m := v.target.ModuleAt(f.physical.PC); m != nil {
				onStack[m] = true
			}
		}
	}
	lost := 0
	for _, m := range v.target.Modules {
		switch {
		case m.Unverified != "" && onStack[m]:
			notes = append(notes, m.Path+": "+m.Unverified)
		case m.Lost:
			if lost++; lost <= maxLostFiles {
				notes = append(notes, m.Path+": "+m.Why+"; give its location with --sysroot or --exe")
			}
		}
	}
	if lost > maxLostFiles {
		notes = append(notes, fmt.Sprintf("and %d more files with code", lost-maxLostFiles))
	}
	return notes
}

// perfNotes returns the reasons why perf names of a process are not used, if a frame could have one.
func (v *View) perfNotes() (notes []string) {
	for _, p := range v.target.PerfFiles() {
		if p.Why != "" && v.unregistered {
			notes = append(notes, p.Path+" is not used: "+p.Why)
		}
	}
	return notes
}

// omitted lists the frames of a thread that were not made.
func (v *View) omitted(t *Thread) (list []frame.Omitted) {
	for _, o := range t.Omitted {
		out := frame.Omitted{From: o.From, Count: o.Count}
		for _, p := range o.PCs {
			out.PCs = append(out.PCs, v.omittedPC(p))
		}
		list = append(list, out)
	}
	return list
}

func (v *View) omittedPC(p unwind.PCCount) frame.OmittedPC {
	out := frame.OmittedPC{PC: frame.HexOf(p.PC), Count: p.Count}
	if code := v.space.At(p.Lookup); code != nil {
		if s := code.SymbolAt(p.Lookup); s.Known {
			offset := uint64(p.PC - s.Start)
			out.Function, out.Offset = s.Name, &offset
		}
	}
	return out
}

// OmittedFrames lists the frames of a thread that were not made, as [View.Report] does.
func (v *View) OmittedFrames(t *Thread) []frame.Omitted { return v.omitted(t) }

// ListRegisters makes every frame list the registers of its physical frame, as its function sees them. The list omits vector registers.
func (v *View) ListRegisters() {
	for i := range v.Threads {
		for _, f := range v.Threads[i].Frames {
			regs := f.physical.Registers
			arch := regs.Arch()
			f.Registers = map[string]frame.Hex{}
			for _, reg := range arch.Registers() {
				info, _ := arch.Register(reg)
				if info.Class == machine.General && info.Size <= 8 {
					if b, err := regs.Bytes(reg); err == nil && len(b) == info.Size {
						f.Registers[info.Name] = frame.HexOf(arch.Uint(b))
					}
				}
			}
		}
	}
}

// Report makes the JSON of the view.
func (v *View) Report() *frame.Report {
	r := &frame.Report{Schema: frame.Schema, Target: v.About(), Threads: []frame.Thread{}}
	for _, t := range v.Threads {
		out := frame.Thread{TID: t.ID, Name: t.Name, Frames: []frame.Frame{}}
		if !t.End.Complete {
			out.End, out.EndCode = t.End.Reason, t.End.Code
		}
		for _, f := range t.Frames {
			out.Frames = append(out.Frames, f.Frame)
		}
		out.Total, out.Omitted, out.Goroutine = t.total(), v.omitted(&t), t.Goroutine
		if t.Parked() {
			r.Goroutines = append(r.Goroutines, frame.ParkedGoroutine{Goroutine: *t.Goroutine, Frames: out.Frames, End: out.End, EndCode: out.EndCode, Total: out.Total, Omitted: out.Omitted})
			continue
		}
		r.Threads = append(r.Threads, out)
	}
	return r
}
