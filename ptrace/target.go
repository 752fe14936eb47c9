package ptrace

import (
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace/files"
	"example.com/reframe/ptrace/system"
)

// Target is a process at one moment, or a core of one. Its state does not change.
type Target struct {
	Provider Provider
	PID      int
	Core     string // path of the core; "" for a process
	Debugger string // address of the debugger that holds the process; "" for a core, and if this program stopped the process
	Command  string // command line; a core contains 79 bytes of it, a core of gcore only the name
	Pause    time.Duration
	// Stopping is the part of Pause until the last thread had stopped. A running thread stops when it is next scheduled, which may take long on a
	// busy machine.
	Stopping time.Duration
	// Stopped means that a signal had stopped the process before it was read (SIGSTOP; signal(7)). The process stays stopped afterwards.
	Stopped bool
	Modules []*Module
	// Notes are remarks about a core as a whole, such as that it was truncated.
	Notes []string
	// Registries holds the list of registered objects of each __jit_debug_descriptor.
	Registries []*Registry
	// Scanned means that memory was searched for stack maps because nothing was registered. Found lists the candidates. ScanCut means that the search
	// did not reach the end.
	Scanned bool
	Found   []Found
	ScanCut bool

	wanted   []Object // as in Options.Objects
	given    []*given
	arch     *machine.Arch
	sysroot  *files.Sysroot // directory with the files of a core; nil if they are read from this machine
	debug    []opener       // directories in which separate debug files are searched
	via      int            // the thread through which memory is read
	source   memory         // all memory, in its current state
	file     io.Closer      // file of a core
	objects  uint64         // total size of the registered objects that were read
	room     uint64         // maximum of objects; 0 for the default
	maps     []machine.Mapping
	provided *provisions // mappings whose pages userfaultfd or a file system provides; nil for a core
	places   places      // the mappings of the modules
	// goProgram means that the process runs a program linked by Go's linker.
	goProgram bool
	threads   []machine.Thread
	memory    machine.Memory
	copied    machine.Memory // memory after a held process was resumed
	held      *stopped
	stands    bool         // memory is the memory of a stopped process
	process   *liveMemory  // the memory in source; nil for a core
	lost      func() error // returns the error after which a debugger no longer answered; nil if no debugger holds the process
	core      *core        // nil for a process that this program stopped
	raw       []coreThread // registers as the kernel provided them; nil if no core will be written
	recorded  *recorded    // data for writing a core; nil if not requested
	touched   *touched     // pages that were read; nil if they need not be stored
	perf      *perfFiles   // nil for a core
}

// reading holds the methods that read a target's modules, registered objects and memory, until all of them are of one moment.
type reading struct{ *Target }

func (t *Target) reading() reading { return reading{t} }

// recorder holds the methods that prepare and write a core of a target.
type recorder struct{ *Target }

func (t *Target) recorder() recorder { return recorder{t} }

func newTarget(pid int, debug []string) *Target {
	via := firstAlive(pid)
	mem := live(via)
	return &Target{Provider: FromProcess, PID: pid, debug: debugDirs(debug), Command: system.CommandLine(pid), arch: arch, via: via, source: mem, process: mem, Stopped: bySignal(pid, via)}
}

// bySignal reports whether a signal has stopped a process that is not traced. via is a thread of the process that has not ended.
func bySignal(pid, via int) bool { return system.ThreadState(pid, via) == 'T' }

// firstAlive returns a thread through which the memory of a process can be read. This is the first thread, whose number is that of the process. If
// the first thread has ended while others run, the kernel no longer provides memory through it, and firstAlive returns another thread.
func firstAlive(pid int) int {
	if !system.Ended(pid, pid) {
		return pid
	}
	tids, _ := system.ThreadIDs(pid) // empty if the process has ended; a later read then returns the error
	slices.Sort(tids)
	for _, tid := range tids {
		if !system.Ended(pid, tid) {
			return tid
		}
	}
	return pid
}

// read reads a registered object, if the objects that were read before leave room for it.
func (t *Target) read(e *Entry, number int) {
	if e.Bad != "" || e.image != nil {
		return
	}
	need := e.needs()
	switch most := min(cmp.Or(t.room, maxObjects), t.source.size()); {
	case need > maxRead:
		e.Bad = fmt.Sprintf("its headers and sections claim %d MiB; the limit for an object is %d MiB", need>>20, maxRead>>20)
		return
	case t.objects+need > most:
		e.Bad = fmt.Sprintf("it needs %d bytes after the %d of the objects before it; the limit for all objects is %d", need, t.objects, most)
		return
	}
	t.objects += need
	e.read(t.source, t.arch, number)
}

// String returns the name of the target in messages: "process 41822", "core PATH", or "process 41822 at localhost:1234".
func (t *Target) String() string {
	switch {
	case t.Core != "":
		return "core " + t.Core
	case t.Debugger == "":
		return fmt.Sprintf("process %d", t.PID)
	case t.PID == 0:
		return "the process at " + t.Debugger
	}
	return fmt.Sprintf("process %d at %s", t.PID, t.Debugger)
}

// Arch returns the architecture of the target.
func (t *Target) Arch() *machine.Arch { return t.arch }

// ReadMemory implements [machine.Memory]. It reads copied memory, and unmodified code from files. For a held process it reads all current memory
// until the process is resumed. For a core it reads the memory in the core, and unmodified mapped files.
func (t *Target) ReadMemory(p []byte, addr machine.Addr) error { return t.memory.ReadMemory(p, addr) }

// Threads returns the threads: the first thread of the process, then the others by number.
func (t *Target) Threads() []machine.Thread { return t.threads }

// Mapping returns the mapping that contains addr.
func (t *Target) Mapping(addr machine.Addr) (machine.Mapping, bool) { return findMapping(t.maps, addr) }

// Mappings returns the mappings of the address space in ascending order: the current ones of a live process, or those of a core.
func (t *Target) Mappings() ([]machine.Mapping, error) {
	if t.Provider != FromProcess {
		return t.maps, nil
	}
	maps, err := readMaps(t.via)
	if err != nil && system.Ended(t.PID, t.via) { // other threads may still run, and share the memory
		maps, err = readMaps(firstAlive(t.PID))
	}
	if err != nil {
		return nil, explain(t.PID, "cannot read its mappings", err)
	}
	return maps, nil
}

// ModuleAt returns the module that contains addr, or nil.
func (t *Target) ModuleAt(addr machine.Addr) *Module {
	if r := t.places.at(addr); r != nil {
		return r.module
	}
	return nil
}

// JITObjectAt returns the registered or given object whose code contains addr, or nil. reason explains why an object that is registered there cannot
// be used.
func (t *Target) JITObjectAt(addr machine.Addr) (img *object.Image, reason string) {
	if img := t.givenAt(addr); img != nil {
		return img, ""
	}
	for _, r := range t.Registries {
		if e := r.at(addr); e != nil {
			switch {
			case e.Bad != "":
				return nil, e.Bad
			case e.image == nil:
				return nil, "it was not read: no return address pointed into it"
			}
			return e.image, ""
		}
	}
	return nil, ""
}

// FindSymbol returns the address of a symbol that the target exports. It searches the given objects first. Then it searches the registered objects,
// newest first, and prefers a strong definition to a weak one. Finally it searches the modules. In a held process it searches every registered
// object, otherwise only those that were read.
func (t *Target) FindSymbol(name string) (object.Symbol, bool) {
	for _, g := range t.given {
		if sym, ok := g.image.Exported(name); ok {
			return sym, true
		}
	}
	var weak object.Symbol
	for _, r := range t.Registries {
		for n, e := range r.Entries {
			if t.held != nil {
				t.read(e, n+1)
			}
			if e.image == nil {
				continue
			}
			sym, ok := e.image.Exported(name)
			if !ok {
				continue
			}
			if strong, ok := e.image.Strong(name); ok {
				return strong, true
			}
			if weak.Name == "" {
				weak = sym
			}
		}
	}
	if weak.Name != "" {
		return weak, true
	}
	for _, m := range t.Modules {
		if m.Image == nil {
			continue
		}
		if sym, ok := m.Image.Exported(name); ok {
			return sym, true
		}
	}
	return object.Symbol{}, false
}

// ReadObjects reads every registered object of a held process, and not only those to which its stacks point.
func (t *Target) ReadObjects() {
	if t.held != nil {
		t.reading().readAllObjects()
	}
}

// ReadObject reads the registered object whose code contains an address, if the process is held.
func (t *Target) ReadObject(addr machine.Addr) {
	for _, r := range t.Registries {
		if e := r.at(addr); e != nil && t.held != nil {
			t.read(e, slices.Index(r.Entries, e)+1)
		}
	}
}

// HasJITCode reports whether the target has executable memory that belongs to no file.
func (t *Target) HasJITCode() bool { return len(jitCode(t.maps, t.Modules)) > 0 }

// IsJITCode reports whether an address is in executable memory that contains no part of a program's files: memory without a file, of a memfd, or of a
// deleted file that is not an ELF image. If the names of mapped files are unknown, the result is false.
func (t *Target) IsJITCode(addr machine.Addr) bool {
	r, ok := t.Mapping(addr)
	if m := t.ModuleAt(addr); !ok || !r.Exec || m != nil && m.Image != nil || t.Unlisted() {
		return false
	}
	switch {
	case strings.HasSuffix(r.Path, deletedSuffix):
		return !t.isImage(t.ModuleAt(addr))
	case r.Path == "":
		return t.Provider == FromProcess || slices.ContainsFunc(t.maps, func(m machine.Mapping) bool { return strings.HasPrefix(m.Path, "/") })
	case strings.HasPrefix(r.Path, "[anon"), strings.HasPrefix(r.Path, "//anon"), strings.HasPrefix(r.Path, "/memfd:"), r.Path == "[heap]", strings.HasPrefix(r.Path, "[stack"):
		return true
	}
	return false
}

// isImage reports whether the mapping of a file that can no longer be opened begins like an ELF image.
func (t *Target) isImage(m *Module) bool {
	var magic [4]byte
	return m != nil && len(m.maps) > 0 && m.maps[0].Offset == 0 && t.source.ReadMemory(magic[:], m.maps[0].Start) == nil && string(magic[:]) == elf.ELFMAG
}

// Release resumes a held process, and returns the duration of its stop. It adds the duration to Pause, which may already contain earlier stops.
func (t *Target) Release() time.Duration {
	if t.held != nil {
		_ = t.held.doUrgently(t.held.letGo)
		t.held.end()
		t.Pause, t.Stopping = t.Pause+t.held.pause, t.held.stopping
		t.held, t.memory, t.stands = nil, t.copied, false
		if t.touched != nil {
			t.memory = layers{t.copied, newCopied(t.touched.spans(), NotCopied)}
		}
	}
	return t.Pause
}

// Close resumes a held process, and closes the open files of the target.
func (t *Target) Close() {
	t.Release()
	t.closeFiles()
	if t.process != nil {
		t.process.mem.Close()
	}
	if t.file != nil {
		_ = t.file.Close() // the file was only read, so an error has no effect
	}
}

// closeFiles closes all files except the core itself.
func (t *Target) closeFiles() {
	for _, m := range t.Modules {
		m.close()
	}
	if t.sysroot != nil {
		t.sysroot.Close()
	}
	t.perf.close()
}

// findMapping searches mappings that are sorted by address, as the kernel lists them.
func findMapping(maps []machine.Mapping, addr machine.Addr) (machine.Mapping, bool) {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].End > addr })
	if i < len(maps) && maps[i].Contains(addr) {
		return maps[i], true
	}
	return machine.Mapping{}, false
}

// jitCode returns the executable mappings without a file, or with a file that is not an ELF image, such as a memfd that a JIT maps twice.
func jitCode(maps []machine.Mapping, modules []*Module) []machine.Mapping {
	inFile := map[machine.Addr]bool{}
	for _, m := range modules {
		for _, r := range m.maps {
			inFile[r.Start] = m.Image != nil
		}
	}
	var code []machine.Mapping
	for _, r := range maps {
		if r.Exec && r.Path != "[vsyscall]" && !inFile[r.Start] {
			code = append(code, r)
		}
	}
	return code
}

// exists returns an error if a process does not exist or has ended.
func exists(pid int) error {
	if err := needLive("reading a running process"); err != nil {
		return &Error{pid, "cannot attach", err, ""}
	}
	state := byte('?')
	if _, err := system.ThreadIDs(pid); err == nil {
		state = system.ThreadState(pid, pid)
	}
	switch state {
	case '?':
		if hint := hiddenHint(pid); hint != "" {
			return &Error{pid, "cannot attach", ErrPermission, hint}
		}
		return &Error{pid, "cannot attach", ErrNoProcess, ""}
	case 'Z', 'X':
		if !system.Ended(pid, firstAlive(pid)) {
			return nil // only its first thread has ended
		}
		return &Error{pid, "cannot attach", ErrNoProcess, "it has ended, and its parent has not waited for it yet"}
	}
	return nil
}
