package ptrace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"reframe/deopt/machine"
	"reframe/deopt/object"
	"reframe/internal/newfile"
	"reframe/ptrace/elfcore"
	"reframe/ptrace/system"
	"reframe/ptrace/xsave"
)

// CoreMemory says which memory a core holds.
type CoreMemory string

// What a core can hold.
const (
	// Minimal: the stacks in use, the code around return addresses, registered objects and their data, loaded stack maps, what
	// debuggers need to find the files, and the pages that registers and stacks lead to. Of a held target also every
	// page that was read since it is stopped.
	Minimal CoreMemory = "minimal"
	// Writable: all that no file has, which is what the kernel keeps where nothing else is asked for.
	Writable CoreMemory = "writable"
	// All: what files hold too.
	All CoreMemory = "all"
)

// RecordOptions say how [Target.WriteCore] writes.
type RecordOptions struct {
	Memory   CoreMemory
	Thread   int  // that readers show first; 0: the first one
	Compress bool // by zstd; [OpenCore] reads it, debuggers do not
	// Environment keeps the environment block of the process in a minimal core: passwords and tokens are often in it, and no frame needs it.
	Environment bool
	Replace     bool // a file that is there already and not empty; otherwise that is an error which wraps [os.ErrExist]
	// Progress is called with how many bytes of how many are written, often; nil where nobody wants to know.
	Progress func(written, of uint64)
}

// RecordedCore is what became of it.
type RecordedCore struct {
	Threads int
	Size    int64  // of the file, holes too
	Held    uint64 // bytes of memory that it holds
	// LeftOut says what a minimal core should hold and does not, because it is too much.
	LeftOut []string
}

// recorded is what a target has to know for a core to be made of it.
type recorded struct {
	about   *coreAbout
	own     []keptPart        // pages of files, without data that can be written to, that need not be those of the file; by address
	maps    []machine.Mapping // that the target does not know of: they came while it was read; by address
	spans   []span            // what a minimal core holds beside what does not change
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

// about is what the notes of a core say of the process.
func (t *Target) about() (*coreAbout, error) {
	about, err := readAbout(t.via)
	if err != nil {
		return nil, explain(t.PID, "cannot keep it as a core", err)
	}
	about.pid = t.PID // that of the thread it was read by is another one where the first has ended
	return about, nil
}

// pagemap opens the list of the process's pages.
func (t *Target) pagemap() (*pagemap, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", t.via))
	if err != nil {
		return nil, err
	}
	return &pagemap{f, f, int64(os.Getpagesize()), f}, nil
}

// recordChanges notes what has changed since the mappings were read, of a process that was let go on: nobody knows on which side of
// the stop. Of a file that is not mapped any more as it was, or that was written over, the file tells nothing.
func (t *Target) recordChanges() error {
	now, err := readMaps(t.via)
	if err != nil {
		return err
	}
	r := t.recorded
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

// joined are parts by address, those in one that overlap or touch.
func joined(parts []keptPart) (out []keptPart) {
	slices.SortFunc(parts, func(a, b keptPart) int { return cmp.Compare(a.start, b.start) })
	for _, p := range parts {
		if n := len(out); n > 0 && p.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, p.end)
			continue
		}
		out = append(out, p)
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

// WriteCore keeps the target as an ELF core (core(5)), which gdb, eu-stack and [OpenCore] read: one that was captured with
// [Options.Record], one of a session that is stopped, or a core. Of a core, and of a process that was let go on, only a minimal
// one can be made.
//
// A captured process that is held goes on as soon as all is read; what is left is to write and to compress. The file
// comes into being under its name when it is whole; on an error there is none. An error that is
// no [*Error] is about the file, or is the cause of ctx.
func (t *Target) WriteCore(ctx context.Context, path string, o RecordOptions) (_ *RecordedCore, err error) {
	if t.stands { // what is mapped is known as it was when a frame asked for it
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
	out := &RecordedCore{}
	for _, th := range t.threads {
		if t.core == nil && th.Registers == nil { // a core has no note for one of which nothing is known
			out.LeftOut = append(out.LeftOut, fmt.Sprintf("thread %d: %s", th.ID, th.Missing))
			continue
		}
		out.Threads++
	}
	m := &coreMoment{ctx: ctx, arch: t.arch, about: r.about, threads: slices.Clone(t.raw), vectors: xsave.Host(), maps: t.maps, memory: t.memory, mode: o.Memory, progress: o.Progress}
	slices.SortStableFunc(m.threads, func(a, b coreThread) int { return cmp.Compare(btoi(a.tid != o.Thread), btoi(b.tid != o.Thread)) })
	for _, th := range t.threads {
		m.names = append(m.names, threadNote{th.ID, th.Name})
	}
	if t.core != nil {
		if m.from, err = t.core.identity(); err != nil {
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
			spans = withoutRange(spans, r.about.environment)
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

// whyNone says of the first thread why it could not be read.
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

// immutable is memory that does not change while it is in use, so that it need not be read while the process stands
// still: registered objects, loaded stack maps, the beginning of each file and all of those which nobody will find again.
func (t *Target) immutable(out *RecordedCore) (spans []span) {
	own := rangesOf(t.recorded.own, keptPart.place)
	room, left := maxObjects4Core, 0
	for _, r := range t.Registries {
		if len(r.Entries) > registryPages {
			spans = append(spans, r.spans()...)
		}
		late := map[*Entry]bool{} // read after the process was let go on: good where nothing has changed since
		for n, e := range r.Entries {
			if e.image == nil && e.Bad == "" && uint64(room) >= e.Size {
				room -= int(e.Size)
				e.read(t.source, t.arch, n+1)
				late[e] = true
			}
		}
		unchanged := r.unchanged(t.source)
		for e := range late {
			if !unchanged || !r.holds(e, t.source) {
				e.image, e.data = nil, nil
			}
		}
		for _, e := range r.Entries {
			switch {
			case e.image != nil:
				spans = append(spans, span{e.Start, e.data})
			case e.Bad == "" || late[e]:
				left++
			}
		}
	}
	if left > 0 {
		out.LeftOut = append(out.LeftOut, fmt.Sprintf("%d registered JIT objects that no stack leads to", left))
	}
	room = maxFoundAll
	for _, f := range t.Found {
		n := min(mapLength(t.arch.Order, f.Data), maxFoundEach, room) // what lies behind it in its mapping changes
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

// identifying is what tells which file was mapped: its first page. Of a file that is deleted it is all that is
// mapped and cannot be written to, and of the vdso all of it. Of a core it is what that holds: the file there now may be another one.
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
		// Behind the end of the file the last page is zero (mmap(2)).
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
	there, err := os.Stat(m.Path)
	if err != nil {
		return true
	}
	own, err := m.file.Stat()
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

// maxTouched is how many pages are kept.
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
