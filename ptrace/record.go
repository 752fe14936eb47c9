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

// CoreMemory selects the memory that a core holds.
type CoreMemory string

// The kinds of core.
const (
	// Minimal: the stacks in use, the code around return addresses, registered objects and their data, loaded stack maps, what debuggers need to
	// find the files, and the pages that registers and stacks point to. For a held target also every page that was read since it was stopped.
	Minimal CoreMemory = "minimal"
	// Writable: all that no file has, which is the kernel's default.
	Writable CoreMemory = "writable"
	// All: the contents of files too.
	All CoreMemory = "all"
)

// RecordOptions describe how [Target.WriteCore] writes.
type RecordOptions struct {
	Memory   CoreMemory
	Thread   int  // the thread that readers show first; 0: the first one
	Compress bool // by zstd; [OpenCore] reads it, debuggers do not
	// Environment keeps the environment block of the process in a minimal core: passwords and tokens are often in it, and no frame needs it.
	Environment bool
	Redact      []Redaction // memory that the core leaves out, whatever Memory selects; a [*RedactionError] if one of them fits no memory
	Replace     bool        // a file that exists and is not empty; otherwise that is an error which wraps [os.ErrExist]
	// Progress is called often, with the number of bytes written and their total; may be nil.
	Progress func(written, of uint64)
}

// RecordedCore describes a core that was written.
type RecordedCore struct {
	Threads int
	Size    int64  // of the file, including holes
	Held    uint64 // bytes of memory that it holds
	// LeftOut lists what a minimal core should hold and does not, because it is too large.
	LeftOut []string
	// Redacted lists the memory that was left out on request, by address; of a core also what that core leaves out on request.
	Redacted    []machine.Range
	Environment CoreEnvironment
}

// CoreEnvironment says whether a core holds the environment block of the process.
type CoreEnvironment int

// The states of the environment block.
const (
	EnvironmentKept    CoreEnvironment = iota
	EnvironmentLeftOut                 // with the strings of the auxiliary vector
	EnvironmentUnknown                 // it was to be left out, and its place is not known
)

// recorded holds what a target needs so that a core can be made of it.
type recorded struct {
	about   *coreAbout
	own     []keptPart        // pages of files, without writable data, that may differ from the file; by address
	maps    []machine.Mapping // mappings that the target does not have: they were made while it was read; by address
	after   []machine.Mapping // all mappings after it was read; nil where it was not resumed
	spans   []span            // what a minimal core holds beside memory that does not change
	leftOut []string
}

// prepareRecord makes ready before a process is stopped of which a core is to be made.
func (t *Target) prepareRecord(s *stopped) error {
	about, err := t.about()
	if err != nil {
		return err
	}
	t.recorded = &recorded{about: about, own: t.ownPages(true)}
	s.gatherer = newGatherer(t)
	return nil
}

// about returns what the notes of a core contain about the process.
func (t *Target) about() (*coreAbout, error) {
	about, err := readAbout(t.via)
	if err != nil {
		return nil, explain(t.PID, "cannot keep it as a core", err)
	}
	about.pid = t.PID // that of the thread it was read by is different if the first has ended
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

// recordChanges records what has changed since the mappings were read, for a process that was resumed: before or after the stop is unknown. A file
// whose mapping changed, or that was written, is no longer used.
func (t *Target) recordChanges() error {
	now, err := readMaps(t.via)
	if err != nil {
		return err
	}
	r := t.recorded
	r.after = now
	r.own = append(r.own, t.ownPages(true)...)
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
				more.Inode, more.Path, more.Offset = 0, "", 0 // what was mapped there at the moment is not known
			}
			r.maps = append(r.maps, more)
		}
	}
	return nil
}

// joined returns kept parts by address. It joins those that overlap or touch.
func joined(parts []keptPart) (out []keptPart) {
	for _, r := range joinedRanges(rangesOf(parts, keptPart.place)) {
		out = append(out, keptPart{r.start, r.end, true})
	}
	return out
}

// take keeps what was copied while the process was stopped.
func (r *recorded) take(g *gatherer, ranges []span) {
	for _, c := range ranges {
		r.spans = append(r.spans, span{c.addr, slices.Clone(c.data)})
	}
	r.spans = append(r.spans, g.spans()...)
	if g.full {
		r.leftOut = append(r.leftOut, fmt.Sprintf("pages that registers and stacks lead to, beyond %d", reachPages))
	}
}

// collect copies what a capture copies for a core, of a target whose memory is all there.
func (t *Target) collect() error {
	s := &stopped{pid: t.PID, via: t.via}
	if t.core != nil {
		t.recorded = &recorded{about: &coreAbout{auxv: t.core.auxv}, own: t.core.ownPages()}
		s.gatherer = newGatherer(t)
	} else if err := t.prepareRecord(s); err != nil {
		return err
	}
	var mem memory = piecemeal{t.memory, t.source}
	if t.core != nil && len(t.core.holes) > 0 {
		mem = piecemeal{blanked{t.memory, t.core.holes}, t.source}
	}
	code := t.code(t.recorded.own)
	if err := mem.readMany(code.whole); err != nil {
		return err
	}
	ranges := append(t.linkage(), code.spans()...)
	var from []start
	for _, th := range t.threads {
		if th.Registers == nil {
			continue
		}
		c := stoppedThread{tid: th.ID, arch: t.arch, stacks: []span{{data: make([]byte, defaultStack)}}}
		c.sp, _ = th.Registers.Addr(t.arch.SP)
		c.pc, _ = th.Registers.Addr(t.arch.PC)
		c.link, _ = th.Registers.Addr(t.arch.Link)
		c.copyAll(mem, t.maps, code.around, code.pages)
		from = append(from, start{c.sp, words(th.Registers), c.stacks[0]})
		ranges = append(ranges, c.ranges()...)
	}
	if err := s.gather(mem, t, from); err != nil {
		return err
	}
	t.recorded.take(s.gatherer, ranges)
	return nil
}

// words are the registers that may hold pointers.
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

// piecemeal reads by one memory what another would read in larger pieces.
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

// maxNamesakes bounds the cores of one name: processes have the same number again and again.
const maxNamesakes = 10000

// KeepCore is [Target.WriteCore] under a name in a directory, or under name-2.core and so on where that is taken. It returns the path.
func (t *Target) KeepCore(ctx context.Context, dir, name string, o RecordOptions) (path string, err error) {
	return newfile.Unused(dir, name, maxNamesakes, func(path string) error {
		if _, err := os.Lstat(path); err == nil { // or it is known only when the core is written
			return &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
		}
		_, err := t.WriteCore(ctx, path, o)
		return err
	})
}

// WriteCore writes the target to an ELF core (core(5)), which gdb, eu-stack and [OpenCore] read: one that was captured with [Options.Record], one
// of a session that is stopped, or a core. Only a minimal core can be made of a core, and of a process that was resumed.
//
// A captured process that is held resumes as soon as everything is read; writing and compressing follow. The file appears under its name when it is
// complete; on an error there is none. An error that is no [*Error] concerns the file, or is the cause of ctx.
func (t *Target) WriteCore(ctx context.Context, path string, o RecordOptions) (_ *RecordedCore, err error) {
	if t.stands { // the known mappings are those of the last time a frame needed them
		maps, err := readMaps(t.via)
		if err != nil {
			return nil, err
		}
		t.maps, t.provided = maps, &provisions{tid: t.via}
	}
	switch {
	case t.core != nil && o.Memory != Minimal:
		return nil, &CoreError{t.Core, -1, errors.New("of a core only a minimal one can be made"), ""}
	case len(t.raw) == 0 && t.core == nil:
		return nil, &Error{t.PID, "cannot keep it as a core", fmt.Errorf("no thread of it could be read%s", t.whyNone()), ""}
	case t.recorded == nil && o.Memory == Minimal:
		if err := t.collect(); err != nil {
			return nil, err
		}
	}
	r := t.recorded
	if r == nil {
		r = &recorded{}
		if r.about, err = t.about(); err != nil {
			return nil, err
		}
	}
	redacted, err := t.redacted(o.Redact, r)
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
		if t.core == nil && th.Registers == nil { // a core has no note for one of which nothing is known
			out.LeftOut = append(out.LeftOut, fmt.Sprintf("thread %d: %s", th.ID, th.Missing))
			continue
		}
		out.Threads++
	}
	m := &coreMoment{ctx: ctx, arch: t.arch, about: r.about, threads: slices.Clone(t.raw), vectors: xsave.Host(), maps: t.maps, memory: t.memory, mode: o.Memory, redacted: redacted, progress: o.Progress}
	slices.SortStableFunc(m.threads, func(a, b coreThread) int { return cmp.Compare(btoi(a.tid != o.Thread), btoi(b.tid != o.Thread)) })
	for _, th := range t.threads {
		m.names = append(m.names, threadNote{th.ID, th.Name})
	}
	if t.core == nil && t.redactsCommand(r.about, redacted) {
		about := *r.about
		about.command, m.about = "", &about
	}
	if t.core != nil {
		if m.from, err = t.core.identity(t.redactsCommand(r.about, redacted)); err != nil {
			return nil, err
		}
	} else if pages, err := t.pagemap(); err == nil && o.Memory != Minimal { // which has pages already, and not those of now
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
				out.LeftOut = append(out.LeftOut, fmt.Sprintf("pages that were touched, beyond %d", maxTouched))
			}
		}
		kept := newCopied(spans, "")
		copied := rangesOf(kept.ranges, span.place)
		for _, s := range t.immutable(out) { // what was copied while the process was stopped comes first
			spans = append(spans, s.outside(copied)...)
		}
		if !o.Environment {
			var block []addrRange
			block, out.Environment = t.environment(r.about)
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
		return nil, &Error{t.PID, "cannot keep its memory as a core", errors.New(NotCopied), ""}
	case t.touched != nil:
		m.memory = t.touched.memory
	}
	if o.Memory == Minimal {
		t.Release() // all of it is copied
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

// whyNone returns the reason why the first thread could not be read.
func (t *Target) whyNone() string {
	if len(t.threads) == 0 {
		return ""
	}
	return fmt.Sprintf(": thread %d: %s", t.threads[0].ID, t.threads[0].Missing)
}

// Limits on what a minimal core holds of memory that does not change, of all together.
const (
	maxObjects4Core = 64 << 20 // registered objects that no stack leads to
	maxFoundEach    = 4 << 20  // of what looked like a stack map
	maxFoundAll     = 64 << 20
	maxGoneFiles    = 64 << 20 // files that are deleted
)

// immutable returns memory that does not change while it is in use, so that it need not be read in the stop: registered objects, loaded stack maps,
// the beginning of each file, and all of the files that cannot be found again.
func (t *Target) immutable(out *RecordedCore) (spans []span) {
	own := rangesOf(t.recorded.own, keptPart.place)
	room, left := maxObjects4Core, 0
	zeroes := uint64(maxObjects4Core) // room for memory that the process has not touched, which takes room in a core
	for _, r := range t.Registries {
		if len(r.Entries) > registryPages {
			spans = append(spans, r.spans()...)
		}
		late := map[*Entry]bool{} // read after the process was resumed: valid if nothing has changed since
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
		out.LeftOut = append(out.LeftOut, fmt.Sprintf("%d registered JIT objects that no stack leads to, or that are too large", left))
	}
	room = maxFoundAll
	for _, f := range t.Found {
		n := min(mapLength(t.arch.Order, f.Data), maxFoundEach, room) // the memory after it in its mapping changes
		spans, room = append(spans, span{f.Addr, f.Data[:n:n]}), room-n
	}
	room = maxGoneFiles
	for _, m := range t.Modules {
		if m.StackMaps != nil {
			spans = append(spans, span{m.Image.Section(object.StackMapSection).Loaded(), m.StackMaps})
		}
		for _, s := range t.identifying(m, &room) {
			if t.core != nil {
				spans = append(spans, s)
				continue
			}
			spans = append(spans, s.outside(own)...) // what is not as in the file was copied, or is not known
		}
	}
	return spans
}

// identifying returns the memory that identifies a mapped file: its first page. For a deleted file it is all of its mappings that are not writable,
// and for the vdso all of it. For a core it is what that holds: the file there now may be a different one.
func (t *Target) identifying(m *Module, room *int) (spans []span) {
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
		// After the end of the file the last page is zero (mmap(2)).
		b = b[:min((n+elfcore.Page-1)&^(elfcore.Page-1), len(b))]
		spans = append(spans, span{r.Start, b})
	}
	return spans
}

// gone reports whether the path of the module does not lead to its file.
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

// spans are the list itself: the descriptor, and the entries as they were when it was walked.
func (r *Registry) spans() []span {
	list := []span{{r.Descriptor, r.head}}
	for _, e := range r.Entries {
		list = append(list, span{e.Addr, e.raw[:]})
	}
	return list
}

// touched is the memory of a process that is stopped, of which every page that is read is kept.
type touched struct {
	memory
	pages map[machine.Addr][]byte
}

// KeepTouched makes a target of a session, or a core, keep every page that is read from now on, for a core.
func (t *Target) KeepTouched() {
	t.touched = &touched{piecemeal{t.memory, t.source}, map[machine.Addr][]byte{}}
	t.memory = t.touched
}

// maxTouched bounds the pages that are kept.
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
				return t.memory.ReadMemory(p, addr)
			}
			t.pages[page] = b
		}
		n += copy(p[n:], b[in:])
	}
	return nil
}

func (t *touched) spans() (list []span) {
	for at, b := range t.pages {
		list = append(list, span{at, slices.Clone(b)})
	}
	return list
}
