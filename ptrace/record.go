package ptrace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"example.com/reframe/internal/base/newfile"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/files"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/xsave"
)

// CoreMemory is the extent of memory that a core contains.
type CoreMemory string

// The values of CoreMemory.
const (
	// Minimal: the stacks in use, the code around return addresses, registered objects and their data, loaded stack maps, the data that debuggers
	// need to find the files, and the pages to which registers and stacks point. For a held target, also every page that was read since the stop.
	Minimal CoreMemory = "minimal"
	// Writable: all memory whose content is in no file, which is the kernel's default.
	Writable CoreMemory = "writable"
	// All: also the contents of files.
	All CoreMemory = "all"
)

// RecordOptions describe how [Target.WriteCore] writes.
type RecordOptions struct {
	Memory   CoreMemory
	Thread   int  // the thread that readers show first; 0 means the first thread of the process
	Compress bool // compress with zstd; [OpenCore] can read such a core, debuggers cannot
	// Environment includes the environment block of the process in a minimal core. It often contains passwords and tokens, and frames do not need it.
	Environment bool
	Redact      []Redaction // memory to omit even if Memory selects it; the error is a [*RedactionError] if one matches no memory
	Replace     bool        // replace an existing file; without it, an existing file that is not empty is an error that wraps [os.ErrExist]
	// Progress is called often, with the number of bytes written and the total number. It may be nil.
	Progress func(written, of uint64)
}

// RecordedCore describes a core that was written.
type RecordedCore struct {
	Threads int
	Size    int64  // size of the file, including holes
	Held    uint64 // bytes of memory in the core
	// LeftOut lists parts that a minimal core should contain but does not, because they are too large.
	LeftOut []string
	// Redacted lists the memory that was omitted on request, in order of address. If the target is a core, it includes the redactions of that core.
	Redacted    []machine.Range
	Environment CoreEnvironment
}

// CoreEnvironment reports whether a core contains the environment block of the process.
type CoreEnvironment int

// The states of the environment block.
const (
	EnvironmentKept    CoreEnvironment = iota
	EnvironmentLeftOut                 // omitted together with the strings of the auxiliary vector
	EnvironmentUnknown                 // it should be omitted, but its address is unknown
)

// recorded holds the data that a target needs for writing a core.
type recorded struct {
	about   *coreAbout
	own     []keptPart        // pages of files, without writable data, that may differ from the file; in order of address
	maps    []machine.Mapping // mappings that were created while the target was read; in order of address
	after   []machine.Mapping // all mappings after the target was read; nil if the process was not resumed
	spans   []span            // contents of a minimal core, except for memory that does not change
	leftOut []string
}

// prepareRecord prepares recording a core, before the process is stopped.
func (t recorder) prepareRecord(s *stopped) error {
	about, err := t.about()
	if err != nil {
		return err
	}
	t.recorded = &recorded{about: about, own: t.reading().ownPages(true)}
	s.gatherer = newGatherer(t.Target)
	return nil
}

// about returns the data about the process for the notes of a core.
func (t recorder) about() (*coreAbout, error) {
	about, err := readAbout(t.via)
	if err != nil {
		return nil, explain(t.PID, "cannot record a core", err)
	}
	about.pid = t.PID // t.via is another thread if the first thread has ended
	return about, nil
}

// pagemap opens the list of the process's pages.
func (t *Target) pagemap() (*pagemap, error) { return openPagemap(t.via) }

func openPagemap(tid int) (*pagemap, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", tid))
	if err != nil {
		return nil, err
	}
	return &pagemap{f, f, int64(os.Getpagesize()), f}, nil
}

// recordChanges records the changes since the mappings were read, for a process that was resumed. It is unknown whether they happened before or after
// the stop. If the mapping of a file changed, or the file was written, the file is no longer used.
func (t recorder) recordChanges() error {
	now, err := readMaps(t.via)
	if err != nil {
		return err
	}
	r := t.recorded
	r.after = now
	r.own = append(r.own, t.reading().ownPages(true)...)
	same := map[machine.Mapping]bool{}
	for _, m := range now {
		same[m] = true
	}
	for _, m := range t.maps {
		if m.Inode != 0 && !same[m] {
			r.own = append(r.own, keptPart{m.Start, m.End, true})
		}
	}
	r.own = joined(r.own)
	known := rangesOf(ordered(t.maps), place)
	for _, m := range now {
		for _, p := range outside(place(m), known) {
			more := m
			more.Start, more.End, more.Offset = p.start, p.end, m.Offset+uint64(p.start-m.Start)
			if m.Inode != 0 {
				more.Inode, more.Path, more.Offset = 0, "", 0 // the mapping at the stop is unknown
			}
			r.maps = append(r.maps, more)
		}
	}
	return nil
}

// joined sorts kept parts by address, and joins those that overlap or touch.
func joined(parts []keptPart) (out []keptPart) {
	for _, r := range joinedRanges(rangesOf(parts, keptPart.place)) {
		out = append(out, keptPart{r.start, r.end, true})
	}
	return out
}

// take adds the data that was copied while the process was stopped.
func (r *recorded) take(g *gatherer, ranges []span) {
	for _, c := range ranges {
		r.spans = append(r.spans, span{c.addr, slices.Clone(c.data)})
	}
	r.spans = append(r.spans, g.spans()...)
	if g.full {
		r.leftOut = append(r.leftOut, fmt.Sprintf("pages that registers and stacks point to, beyond %d", reachPages))
	}
}

// collect copies the same data as a capture with Record. The target is stopped, or is a core.
func (t recorder) collect() error {
	s := &stopped{pid: t.PID, via: t.via}
	if t.core != nil {
		t.recorded = &recorded{about: &coreAbout{auxv: t.core.auxv}, own: t.core.ownPages()}
		s.gatherer = newGatherer(t.Target)
	} else if err := t.prepareRecord(s); err != nil {
		return err
	}
	var mem memory = piecemeal{t.memory, t.source}
	if t.core != nil && len(t.core.holes) > 0 {
		mem = piecemeal{blanked{t.memory, t.core.holes}, t.source}
	}
	code := t.reading().code(t.recorded.own)
	if err := mem.readMany(code.whole); err != nil {
		return err
	}
	ranges := append(t.reading().linkage(), code.spans()...)
	var from []start
	for _, th := range t.threads {
		if th.Registers == nil {
			continue
		}
		c := stoppedThread{tid: th.ID, arch: t.arch, stacks: []span{{data: make([]byte, defaultStack)}}}
		c.sp, _ = th.Registers.Addr(t.arch.SP)
		c.pc, _ = th.Registers.Addr(t.arch.PC)
		c.link, _ = th.Registers.Addr(t.arch.Link)
		c.block = th.Registers.ThreadPointer()
		c.copyAll(mem, t.Target, code.around, code.pages)
		from = append(from, start{c.sp, words(th.Registers), c.stacks[0]})
		ranges = append(ranges, c.ranges()...)
	}
	if err := s.gather(mem, t.Target, from); err != nil {
		return err
	}
	t.recorded.take(s.gatherer, ranges)
	return nil
}

// words returns the values of the registers that may hold pointers.
func words(r *machine.Registers) (list []uint64) {
	for _, reg := range r.Arch().Registers() {
		if info, ok := r.Arch().Register(reg); ok && info.Class == machine.General {
			if v, err := r.Uint(reg); err == nil {
				list = append(list, v)
			}
		}
	}
	return list
}

// piecemeal reads from Memory page by page, so that an unreadable page does not affect the others.
type piecemeal struct {
	machine.Memory
	of memory
}

func (p piecemeal) readUpTo(b []byte, addr machine.Addr) (int, error) {
	for n := 0; n < len(b); {
		size := min(len(b)-n, elfcore.Page-int(addr+machine.Addr(n))&(elfcore.Page-1))
		if err := p.ReadMemory(b[n:n+size], addr+machine.Addr(n)); err != nil {
			if n == 0 {
				return 0, err
			}
			return n, nil
		}
		n += size
	}
	return len(b), nil
}

func (p piecemeal) readMany(wants []system.Want) error {
	for i := range wants {
		wants[i].OK = p.ReadMemory(wants[i].Buf, wants[i].Addr) == nil
	}
	return nil
}

func (p piecemeal) size() uint64 { return p.of.size() }

// maxNamesakes bounds the number of cores with the same name. Equal names occur because process numbers are reused.
const maxNamesakes = 10000

// KeepCore is like [Target.WriteCore], with an unused name in a directory: name, or name-2.core and so on. It returns the path.
func (t *Target) KeepCore(ctx context.Context, dir, name string, o RecordOptions) (path string, err error) {
	return newfile.Unused(dir, name, maxNamesakes, func(path string) error {
		if _, err := os.Lstat(path); err == nil { // find a conflict before writing
			return &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
		}
		_, err := t.WriteCore(ctx, path, o)
		return err
	})
}

// WriteCore writes the target to an ELF core (core(5)), which gdb, eu-stack and [OpenCore] can read. The target must be captured with
// [Options.Record], belong to a stopped session, or be a core. For a core and for a resumed process only a minimal core is possible.
//
// A held process resumes as soon as all data is read; writing and compressing follow. The file appears under its name when it is complete, and not at
// all after an error. An error that is no [*Error] concerns the file, or is the cause of ctx.
func (t *Target) WriteCore(ctx context.Context, path string, o RecordOptions) (_ *RecordedCore, err error) {
	if t.stands { // t.maps may be older than this stop
		maps, err := readMaps(t.via)
		if err != nil {
			return nil, err
		}
		t.maps, t.provided = maps, &provisions{tid: t.via}
	}
	switch {
	case t.core != nil && o.Memory != Minimal:
		return nil, &CoreError{t.Core, -1, errors.New("only a minimal core can be recorded from a core"), ""}
	case len(t.raw) == 0 && t.core == nil:
		return nil, &Error{t.PID, "cannot record a core", fmt.Errorf("no thread of it could be read%s", t.recorder().whyNone()), ""}
	case t.recorded == nil && o.Memory == Minimal:
		if err := t.recorder().collect(); err != nil {
			return nil, err
		}
	}
	r := t.recorded
	if r == nil {
		r = &recorded{}
		if r.about, err = t.recorder().about(); err != nil {
			return nil, err
		}
	}
	redacted, err := t.recorder().redacted(o.Redact, r)
	if err != nil {
		return nil, err
	}
	if len(redacted) > maxRecordedRanges {
		return nil, fmt.Errorf("cannot redact %d ranges of memory: a core lists up to %d", len(redacted), maxRecordedRanges)
	}
	out := &RecordedCore{}
	for _, p := range redacted {
		out.Redacted = append(out.Redacted, machine.Range{Start: p.start, End: p.end})
	}
	for _, th := range t.threads {
		if (t.core == nil || t.core.whole) && th.Registers == nil { // a thread without registers cannot be written into a core
			out.LeftOut = append(out.LeftOut, fmt.Sprintf("thread %d: %s", th.ID, th.Missing))
			continue
		}
		out.Threads++
	}
	m := &coreMoment{ctx: ctx, arch: t.arch, about: r.about, threads: slices.Clone(t.raw), vectors: xsave.Host(), maps: t.maps, memory: t.memory, mode: o.Memory, redacted: redacted, progress: o.Progress}
	if t.Unlisted() { // the mapping that represents all other memory does not exist in the process
		m.maps = slices.DeleteFunc(slices.Clone(m.maps), func(r machine.Mapping) bool { return r.Path == "" })
	}
	slices.SortStableFunc(m.threads, func(a, b coreThread) int { return cmp.Compare(btoi(a.tid != o.Thread), btoi(b.tid != o.Thread)) })
	for _, th := range t.threads {
		m.names = append(m.names, threadNote{th.ID, th.Name})
	}
	if t.core == nil && t.recorder().redactsCommand(r.about, redacted) {
		about := *r.about
		about.command, m.about = "", &about
	}
	if t.core != nil {
		if m.from, err = t.core.identity(t.recorder().redactsCommand(r.about, redacted)); err != nil {
			return nil, err
		}
	} else if pages, err := t.pagemap(); err == nil && o.Memory != Minimal { // a minimal core already has its pages
		defer pages.Close()
		m.pages = pages
	}
	if t.stands && o.Memory != Minimal {
		m.awaits = t.awaits
	}
	switch {
	case o.Memory == Minimal:
		spans := slices.Clone(r.spans)
		if t.touched != nil {
			spans = append(spans, t.touched.spans()...)
			if len(t.touched.pages) >= maxTouched {
				out.LeftOut = append(out.LeftOut, fmt.Sprintf("pages that were read, beyond %d", maxTouched))
			}
		}
		kept := newCopied(spans, "")
		copied := rangesOf(kept.ranges, span.place)
		for _, s := range t.recorder().immutable(out) { // data that was copied during the stop takes precedence
			spans = append(spans, s.outside(copied)...)
		}
		if !o.Environment {
			var block []addrRange
			block, out.Environment = t.recorder().environment(r.about)
			spans = withoutRanges(spans, block)
		}
		spans = withoutRanges(spans, redacted)
		if t.core != nil {
			spans = withoutRanges(spans, t.core.holes)
		}
		kept = newCopied(spans, "")
		m.memory, m.spans, m.own = kept, kept.ranges, r.own
		m.maps = withMore(m.maps, r.maps, kept.ranges)
		out.LeftOut = append(out.LeftOut, r.leftOut...)
	case !t.stands:
		return nil, &Error{t.PID, "cannot record its memory in a core", errors.New(NotCopied), ""}
	case t.touched != nil:
		m.memory = t.touched.memory
	}
	if o.Memory == Minimal {
		t.Release() // all data is copied
	}
	file, err := newfile.Create(path, o.Replace)
	if err != nil {
		return nil, err
	}
	write := func(f elfcore.File) error {
		err := m.write(f)
		t.Release()
		return err
	}
	if o.Compress {
		err = elfcore.WriteCompressed(ctx, file.File, write)
	} else {
		err = write(file)
	}
	if err = file.Finish(err); err != nil {
		return nil, err
	}
	out.Held = m.held
	if info, err := os.Stat(path); err == nil {
		out.Size = info.Size()
	}
	return out, nil
}

// whyNone returns the reason why no thread could be read, which is that of the first thread.
func (t recorder) whyNone() string {
	if len(t.threads) == 0 {
		return ""
	}
	return fmt.Sprintf(": thread %d: %s", t.threads[0].ID, t.threads[0].Missing)
}

// Limits on the unchanging memory in a minimal core. Each applies to all parts of a kind together.
const (
	maxObjects4Core = 64 << 20 // registered objects to which no stack points
	maxFoundEach    = 4 << 20  // for each possible stack map
	maxFoundAll     = 64 << 20
	maxDeletedFiles = 64 << 20 // deleted files
)

// immutable returns memory that does not change while it is in use, so that it need not be read during the stop: registered objects, loaded stack
// maps, the beginning of each file, and the complete contents of deleted files.
func (t recorder) immutable(out *RecordedCore) (spans []span) {
	own := rangesOf(t.recorded.own, keptPart.place)
	room, left := maxObjects4Core, 0
	zeroes := uint64(maxObjects4Core) // limit on untouched memory, which needs space in a core
	for _, r := range t.Registries {
		if len(r.Entries) > registryPages {
			spans = append(spans, r.spans()...)
		}
		late := map[*Entry]bool{} // objects that were read after the process was resumed; they are valid if nothing has changed since
		for n, e := range r.Entries {
			if e.image == nil && e.Bad == "" && uint64(room) >= e.needs() {
				room -= int(e.needs())
				e.read(t.source, t.arch, n+1)
				late[e] = true
			}
		}
		unchanged := r.unchanged(t.source)
		for e := range late {
			if !unchanged || !r.holds(e, t.source) {
				e.image, e.content = nil, nil
			}
		}
		for _, e := range r.Entries {
			switch {
			case e.image != nil && e.content.untouched() <= zeroes:
				zeroes -= e.content.untouched()
				spans = append(spans, e.content.spans()...)
			case e.image != nil || e.Bad == "" || late[e]:
				left++
			}
		}
	}
	if left > 0 {
		out.LeftOut = append(out.LeftOut, fmt.Sprintf("%d registered JIT objects that no stack points into, or that are too large", left))
	}
	room = maxFoundAll
	for _, f := range t.Found {
		n := min(mapLength(t.arch.Order, f.Data), maxFoundEach, room) // the memory after the stack map in the same mapping may change
		spans, room = append(spans, span{f.Addr, f.Data[:n:n]}), room-n
	}
	room = maxDeletedFiles
	for _, m := range t.Modules {
		if m.StackMaps != nil {
			spans = append(spans, span{m.Image.Section(object.StackMapSection).Loaded(), m.StackMaps})
		}
		for _, s := range t.identifying(m, &room) {
			if t.core != nil {
				spans = append(spans, s)
				continue
			}
			spans = append(spans, s.outside(own)...) // memory that differs from the file was copied, or is unknown
		}
	}
	return spans
}

// identifying returns the memory that identifies a mapped file: its first page. For a deleted file it returns all mappings that are not writable, and
// for the vdso its whole memory. For a core it returns the memory in the core, because the current file may be another one.
func (t recorder) identifying(m *Module, room *int) (spans []span) {
	whole := m.Path == vdsoPath || t.core == nil && m.gone() || t.core != nil && m.data == nil
	for _, r := range m.maps[:min(len(m.maps), mappingsToTry)] {
		size := uint64(r.End - r.Start)
		if t.core != nil {
			size = t.core.heldFrom(r.Start)
		}
		switch {
		case t.core == nil && (m.data == nil || r.Write || !r.Read) || size == 0:
			continue
		case whole && size <= uint64(*room):
			*room -= int(size)
		case r.Offset == 0:
			size = min(size, elfcore.Page)
		default:
			continue
		}
		b := make([]byte, size)
		if t.core != nil {
			n, _ := t.source.readUpTo(b, r.Start)
			spans = append(spans, span{r.Start, b[:n]})
			continue
		}
		off := int64(r.Offset)
		if m.Path == vdsoPath {
			off = 0
		}
		n, err := m.data.ReadAt(b, off)
		if err != nil && !errors.Is(err, io.EOF) {
			continue
		}
		// Beyond the end of the file the last page is zero (mmap(2)).
		b = b[:min((n+elfcore.Page-1)&^(elfcore.Page-1), len(b))]
		spans = append(spans, span{r.Start, b})
	}
	return spans
}

// gone reports whether the path of the module no longer leads to its file.
func (m *Module) gone() bool {
	if m.file == nil {
		return false
	}
	there, err := files.StatWithin(func() (os.FileInfo, error) { return os.Stat(m.Path) })
	if err != nil {
		return true
	}
	own, err := files.StatWithin(m.file.Stat)
	return err == nil && !os.SameFile(there, own)
}

// spans returns the memory of the list: the descriptor, and the entries as they were when the list was read.
func (r *Registry) spans() []span {
	list := []span{{r.Descriptor, r.head}}
	for _, e := range r.Entries {
		list = append(list, span{e.Addr, e.raw[:]})
	}
	return list
}

// touched is the memory of a stopped process. It stores every page that is read.
type touched struct {
	memory
	pages map[machine.Addr][]byte
	parts map[machine.Addr][]byte // parts of pages that cannot be read completely, such as pages of which a minimal core contains a part
	held  int                     // total size of parts in bytes
}

// KeepTouched makes a target store every page that is read from now on, to write a core. The target must belong to a session or be a core.
func (t *Target) KeepTouched() {
	t.touched = &touched{piecemeal{t.memory, t.source}, map[machine.Addr][]byte{}, map[machine.Addr][]byte{}, 0}
	t.memory = t.touched
}

// maxTouched bounds the number of pages that are stored.
const maxTouched = 1 << 16

// ReadMemory implements [machine.Memory].
func (t *touched) ReadMemory(p []byte, addr machine.Addr) error {
	for n := 0; n < len(p); {
		at := addr + machine.Addr(n)
		page, in := at&^(elfcore.Page-1), int(at&(elfcore.Page-1))
		b, known := t.pages[page]
		if !known {
			b = make([]byte, elfcore.Page)
			if len(t.pages) >= maxTouched || t.memory.ReadMemory(b, page) != nil {
				return t.readPart(p, addr)
			}
			t.pages[page] = b
		}
		n += copy(p[n:], b[in:])
	}
	return nil
}

// readPart reads memory, and stores the bytes that it has read.
func (t *touched) readPart(p []byte, addr machine.Addr) error {
	if err := t.memory.ReadMemory(p, addr); err != nil {
		return err
	}
	if known := len(t.parts[addr]); known < len(p) && t.held+len(p) <= maxTouched*elfcore.Page {
		t.held += len(p) - known
		t.parts[addr] = slices.Clone(p)
	}
	return nil
}

func (t *touched) spans() (list []span) {
	for at, b := range t.parts {
		list = append(list, span{at, slices.Clone(b)})
	}
	for at, b := range t.pages {
		list = append(list, span{at, slices.Clone(b)})
	}
	return list
}
