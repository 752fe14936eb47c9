package ptrace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// Options are the options of [Capture]. With the zero value, Capture copies the state and resumes the process.
type Options struct {
	// Hold keeps the process stopped until [Target.Release] is called. Until then, all memory of the process can be read.
	Hold bool
	// StackBytes is the number of bytes to copy of each stack. 0 means 512 KiB, and for deeper stacks up to 9 MiB of each and 64 MiB in total.
	StackBytes int
	deep       int // bytes of deep stacks to copy beyond StackBytes
	// Record copies the data that [Target.WriteCore] needs. With Hold, it also keeps each page that is read while the process is held.
	Record bool
	// Also lists further memory to copy during the stop, such as the ranges in a [Plan].
	Also []machine.Range
	// DebugDirs lists the directories that are searched for separate debug files; nil means [DebugDir].
	DebugDirs []string
	// Objects are unregistered objects. If their code is not at the given addresses, the error is an [*ObjectError].
	Objects []Object
	// Goroutines is called before the stop if the process runs a Go program. It returns the addresses and offsets by which goroutines are found, or
	// nil. If it returns them, goroutines that no thread runs are copied, too.
	Goroutines func(*Target) *GoLayout
}

const (
	defaultStack = 512 << 10
	// deepStack is slightly more than the default limit of a stack's size (ulimit -s), so that an overflowed stack is copied completely.
	deepStack  = 9 << 20
	deepStacks = 64 << 20
	maxStack   = 1 << 30
	// attempts bounds the number of captures that are tried if the lists of registered objects keep changing before the stop. The last attempt reads
	// the lists during the stop.
	attempts = 8
)

// Capture copies the state of a process at one moment. If it returns an error, the process continues unchanged. The errors are [*Error]s.
func Capture(pid int, o Options) (*Target, error) {
	if o.StackBytes == 0 {
		o.StackBytes, o.deep = defaultStack, deepStacks
	}
	if o.StackBytes < 4096 || o.StackBytes > maxStack {
		return nil, fmt.Errorf("ptrace: stack of %d bytes: 4096 to %d can be copied", o.StackBytes, maxStack)
	}
	if err := exists(pid); err != nil {
		return nil, err
	}
	var t *Target
	err := pastLeaving(pid, func() error {
		t = newTarget(pid, o.DebugDirs)
		t.wanted = o.Objects
		err := t.reading().capture(o)
		if err != nil {
			t.Close()
		}
		return err
	})
	if err != nil {
		if !errors.Is(err, ErrNoProcess) && exists(pid) != nil {
			// The process has ended, which caused the error.
			err = &Error{pid, "cannot read it", ErrProcessExited, ""}
		}
		return nil, err
	}
	return t, nil
}

// Survey reads a running process without stopping it: modules, registered objects, and, if none is registered, memory that looks like a stack map.
// The result has no threads. Survey uses only the options Objects and DebugDirs.
func Survey(pid int, o Options) (*Target, error) {
	if err := exists(pid); err != nil {
		return nil, err
	}
	t := newTarget(pid, o.DebugDirs)
	t.wanted = o.Objects
	for range attempts {
		if err := t.reading().survey(); err != nil {
			t.Close()
			return nil, err
		}
		t.reading().readAllObjects()
		if t.reading().stillRegistered() {
			t.memory = t.source
			return t, nil
		}
		t.Close()
	}
	return nil, &Error{pid, "cannot read it", ErrObjectsChanging, "try again, or stop it first: kill -STOP " + fmt.Sprint(pid)}
}

func (t reading) capture(o Options) error {
	for attempt := 1; !o.Hold && attempt < attempts; attempt++ {
		if settled, err := t.captureBriefly(o); settled || err != nil {
			return err
		}
	}
	return t.captureHeld(o)
}

// captureBriefly surveys mappings, modules and lists of registered objects before the stop. settled reports whether they also describe the data that
// was copied during the stop.
func (t reading) captureBriefly(o Options) (settled bool, err error) {
	if err := t.survey(); err != nil {
		return false, err
	}
	linkage := t.linkage()
	s := newStopped(t.PID, t.via, o)
	code, err := t.prepare(s, o)
	if err != nil {
		return false, err
	}
	var lists []stoppedList
	err = s.doUrgently(func() error {
		defer s.letGo()
		if err := s.stopAll(); err != nil {
			return explain(t.PID, "cannot attach", err)
		}
		lists, settled = t.readHeads()
		t.perf.freeze()
		return s.copy(t.Target, code)
	})
	s.end()
	if err != nil {
		return false, explain(t.PID, "cannot read its threads", err)
	}
	points := s.points()
	for i := range lists {
		settled = settled && lists[i].atStop(t.source, func(e *Entry) bool {
			return slices.ContainsFunc(e.code, func(c codeRange) bool { return points(c.start, c.end) })
		})
	}
	if !settled {
		return false, nil
	}
	t.readObjects(s)
	if !t.stillRegistered() || !t.sameCodeWhere(points) || !t.objectsHold() || !t.givenHold() || !code.holds(t.ownCode(t.ownPages(false))) {
		return false, nil
	}
	if o.Record {
		if err := t.recorder().recordChanges(); err != nil {
			return false, err
		}
	}
	t.finish(s, code, asBefore(linkage, t.linkage()))
	t.Pause, t.Stopping = s.pause, s.stopping
	return true, nil
}

// captureHeld surveys mappings, modules and lists of registered objects before the stop, and again during the stop if they have changed.
func (t reading) captureHeld(o Options) error {
	if err := t.survey(); err != nil {
		return err
	}
	s := newStopped(t.PID, t.via, o)
	t.held = s // from now on Close resumes it
	if err := s.doUrgently(s.stopAll); err != nil {
		return explain(t.PID, "cannot attach", err)
	}
	if !t.updated() || !t.sameCode() || !t.givenHold() {
		if err := t.survey(); err != nil {
			return err
		}
	}
	t.perf.freeze()
	code, err := t.prepare(s, o)
	if err != nil {
		return err
	}
	if err := s.doUrgently(func() error { return s.copy(t.Target, code) }); err != nil {
		return explain(t.PID, "cannot read its threads", err)
	}
	t.readObjects(s)
	t.finish(s, code, t.linkage())
	t.copied = t.memory
	if o.Hold {
		t.memory, t.stands = unawaited{t.source, t.Target}, true
		if o.Record {
			t.KeepTouched()
		}
	} else {
		t.Release()
	}
	return nil
}

// prepare allocates the memory that a stop copies into.
func (t reading) prepare(s *stopped, o Options) (*codeCopy, error) {
	t.prepareGoroutines(s, o)
	if !o.Record {
		return t.code(t.ownPages(false)), nil
	}
	if err := t.recorder().prepareRecord(s); err != nil {
		return nil, err
	}
	return t.code(t.recorded.own), nil
}

// survey reads mappings, modules and the lists of registered objects.
func (t reading) survey() error {
	if err := check64(t.via); err != nil {
		return err
	}
	for _, m := range t.Modules {
		m.close()
	}
	maps, err := readMaps(t.via)
	if err != nil {
		return err
	}
	t.maps = maps
	t.know()
	if err := readable(t.source, maps); err != nil {
		return explain(t.PID, "cannot read its memory", err)
	}
	t.Modules = readModules(t.source, t.via, maps, nil)
	t.debugFiles()
	t.placeModules()
	t.findPerf()
	t.find()
	return t.place(t.wanted)
}

// readable returns an error if the memory of a process cannot be read at all. It tests one mapping: the first belongs to the program, and its pages
// are present.
func readable(mem memory, maps []machine.Mapping) error {
	for _, m := range maps {
		if m.Read {
			if _, err := mem.readUpTo(make([]byte, 1), m.Start); !errors.Is(err, syscall.EFAULT) {
				return err
			}
			return nil
		}
	}
	return nil
}

// know passes the current mappings to the memory reader of the process.
func (t reading) know() {
	t.provided = &provisions{tid: t.via}
	t.process.know(t.maps, t.provided)
}

// find finds JIT code in the target: the lists of registered objects or, if there is none, memory that looks like a stack map.
func (t reading) find() {
	t.Registries, t.Found, t.Scanned, t.objects = nil, nil, false, 0
	room := maxEntries
	if n := t.source.size() / entrySize; n < maxEntries {
		room = int(n)
	}
	registered, sections := 0, 0
	seen := map[machine.Addr]bool{}
	for _, m := range t.Modules {
		if m.Image == nil {
			continue
		}
		if m.StackMaps != nil {
			sections++
		}
		if sym, ok := m.Image.Lookup(descriptorName); ok && !seen[sym.Addr] {
			seen[sym.Addr] = true
			r := readRegistry(t.source, t.arch, m.Path, sym.Addr, room-registered)
			t.Registries = append(t.Registries, r)
			registered += len(r.Entries)
		}
	}
	if registered == 0 && sections == 0 && len(t.wanted) == 0 && !t.Unlisted() && len(jitCode(t.maps, t.Modules)) > 0 {
		var whole bool
		t.Found, whole = scan(t.source, t.arch.Order, t.maps)
		t.Scanned, t.ScanCut = true, !whole
	}
}

func (t reading) readAllObjects() {
	for _, r := range t.Registries {
		for n, e := range r.Entries {
			t.read(e, n+1)
		}
	}
}

// objectsHold reports whether the objects that were read are still registered.
func (t reading) objectsHold() bool {
	for _, r := range t.Registries {
		for _, e := range r.Entries {
			if e.image != nil && !r.holds(e, t.source) {
				return false
			}
		}
	}
	return true
}

// sameCode reports whether the executable mappings are unchanged. New executable mappings would not be recognized as code, and an exec(2) changes all
// mappings.
func (t reading) sameCode() bool {
	now, err := readMaps(t.via)
	data := func(r machine.Mapping) bool { return !r.Exec }
	return err == nil && slices.Equal(slices.DeleteFunc(now, data), slices.DeleteFunc(slices.Clone(t.maps), data))
}

// readObjects reads the registered objects that contain an address in a program counter or in a word of a stack. Only these objects can contain
// frames.
func (t reading) readObjects(s *stopped) {
	for _, r := range t.Registries {
		if len(r.ranges) == 0 {
			continue
		}
		number := make(map[*Entry]int, len(r.Entries))
		for n, e := range r.Entries {
			number[e] = n + 1
		}
		read := func(addr machine.Addr) {
			// A call may be the last instruction of a function; then the return address is just after the function's code.
			for _, a := range []machine.Addr{addr, addr - 1} {
				if e := r.at(a); e != nil {
					t.read(e, number[e])
				}
			}
		}
		for _, thread := range s.threads {
			if thread.missing == "" {
				thread.eachCode(read)
			}
		}
	}
}

// finish sets the target's threads and memory. Memory consists of the copies, and of other ranges whose content during the stop is known.
func (t reading) finish(s *stopped, code *codeCopy, ranges []span) {
	ranges = append(ranges, code.spans()...)
	unread := unreadOf(code.whole)
	slices.SortFunc(s.threads, func(a, b *stoppedThread) int {
		first := func(x *stoppedThread) int {
			if x.tid == t.PID {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.tid, b.tid))
	})
	for _, thread := range s.threads {
		if thread.ended {
			continue
		}
		out := machine.Thread{ID: thread.tid, Name: system.ThreadName(t.PID, thread.tid), Missing: thread.missing}
		if thread.missing == "" {
			out.Registers = thread.raw.decode()
			if t.recorded != nil {
				t.raw = append(t.raw, coreThread{thread.tid, thread.raw})
			}
			ranges = append(ranges, thread.ranges()...)
			unread = append(append(unread, thread.unread...), unreadOf(thread.code)...)
		}
		t.threads = append(t.threads, out)
	}
	if s.goroutines != nil {
		ranges = append(ranges, s.goroutines.spans...)
	}
	ranges = append(ranges, spansOf(s.also)...)
	if t.recorded != nil {
		t.recorded.take(s.gatherer, ranges)
	}
	t.memory = moment{newCopied(ranges, NotCopied), fileMemory{t.places, code.own}, unread, t.provided}
}

var errKernel = errors.New("a kernel thread, which has no memory of its own")

// kernelThread reports whether a process has the flag PF_KTHREAD (proc_pid_stat(5)).
func kernelThread(pid int) bool {
	fields, err := system.StatFields(pid)
	if err != nil || len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&0x00200000 != 0
}

// check64 returns an error for a 32-bit process and for a kernel thread.
func check64(pid int) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil && kernelThread(pid) {
		return &Error{pid, "cannot read it", errKernel, ""}
	}
	if err != nil {
		return explain(pid, "cannot open its executable", err)
	}
	defer f.Close()
	var ident [5]byte
	if _, err := io.ReadFull(f, ident[:]); err == nil && ident[4] == 1 {
		return &Error{pid, "cannot read it", Err32Bit, ""}
	}
	return nil
}
