package ptrace

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/files"
)

// coreModule is a module of a core.
type coreModule struct {
	*Module
	rows []*coreMapping
	size uint64 // size of the file
	// other means that the file is not an image, such as a JIT's dump for a profiler.
	other bool
	// unlisted means that permissions are unknown, because the debugger that holds the process does not list its mappings.
	unlisted bool
}

// code reports whether the module has executable mappings.
func (m *coreModule) code() bool {
	return slices.ContainsFunc(m.rows, func(row *coreMapping) bool { return row.Exec })
}

// openModules groups the mappings by file and opens the ELF images. A core identifies a mapped file only by its path. mem is the memory that the core
// contains.
func (c *core) openModules(mem *coreMemory) {
	byPath := map[string]*coreModule{}
	var modules []*coreModule
	for i := range c.maps {
		row := &c.maps[i]
		if row.Path == "" || row.Path == vsyscallPath || c.whole && !ofFile(row.Mapping) && row.Path != vdsoPath {
			continue
		}
		m := byPath[row.Path]
		if m == nil {
			if len(modules) == modulesToLookFor {
				c.target.Notes = append(c.target.Notes, fmt.Sprintf("only the first %d of its files were read", modulesToLookFor))
				break
			}
			m = &coreModule{Module: &Module{Path: row.Path}, unlisted: c.unlisted}
			byPath[row.Path] = m
			modules = append(modules, m)
		}
		row.module = m
		m.rows = append(m.rows, row)
	}
	seen := seenFiles{}
	for _, m := range modules {
		if err := c.openModule(m, mem, seen); err != nil {
			m.fail(err)
			m.other = errors.Is(err, elfcore.ErrNoELF)
		}
		c.target.Modules = append(c.target.Modules, m.Module)
	}
	for _, row := range c.maps {
		c.target.maps = append(c.target.maps, row.Mapping)
	}
}

// seenFiles holds the opened files, indexed by size and modification time. Most files differ in them, so only few files need os.SameFile.
type seenFiles map[seenKey][]seenFile

type seenKey struct {
	size     int64
	modified time.Time
}

type seenFile struct {
	os.FileInfo
	path string
}

// add records a file. It returns the path by which the file is already recorded, or "".
func (s seenFiles) add(info os.FileInfo, path string) string {
	key := seenKey{info.Size(), info.ModTime()}
	for _, other := range s[key] {
		if os.SameFile(info, other.FileInfo) {
			return other.path
		}
	}
	s[key] = append(s[key], seenFile{info, path})
	return ""
}

func (c *core) openModule(m *coreModule, mem *coreMemory, seen seenFiles) error {
	m.show()
	if c.keep(m, mem) {
		return nil
	}
	if m.Path == vdsoPath {
		return m.openVDSO(mem, c.target.arch)
	}
	err := c.openFrom(c.open, m, mem, seen)
	if err == nil || c.fetch == nil || !ofFile(m.maps[0]) {
		return err
	}
	m.close()
	if again := c.openFrom(c.fetch, m, mem, seenFiles{}); again != nil {
		m.close()
		return err
	}
	return nil
}

// keep uses the module that an earlier target of the same process has for the file, if the file has not changed. It reports whether it did.
func (c *core) keep(m *coreModule, mem *coreMemory) bool {
	if c.before == nil {
		return false
	}
	i := slices.IndexFunc(c.before.Modules, func(old *Module) bool { return old.Path == m.Path && old.Image != nil })
	if i < 0 || !c.before.Modules[i].unchanged(mem, &Module{Path: m.Path, maps: m.placed(c.before.Modules[i])}) {
		return false
	}
	m.Module = c.before.Modules[i]
	c.before.Modules = slices.Delete(c.before.Modules, i, i+1)
	for n, row := range m.rows {
		row.Mapping = m.maps[n]
	}
	return true
}

// placed returns the mappings of the module. If the debugger does not list permissions, they are those of the earlier module.
func (m *coreModule) placed(old *Module) []machine.Mapping {
	list := slices.Clone(m.maps)
	for n := range list {
		if m.unlisted && n < len(old.maps) {
			list[n].Read, list[n].Write, list[n].Exec = old.maps[n].Read, old.maps[n].Write, old.maps[n].Exec
		}
	}
	return list
}

// openFrom opens the file of a module and its image. open opens files by the paths in the core.
func (c *core) openFrom(open opener, m *coreModule, mem *coreMemory, seen seenFiles) error {
	path, deleted := strings.CutSuffix(m.Path, deletedSuffix)
	// The core's paths may be those of another machine. The path of --exe is one of this machine, whose system may have another form of paths.
	if !strings.HasPrefix(path, "/") && !filepath.IsAbs(path) {
		return errors.New("its name is not a path")
	}
	f, err := c.openNamed(open, m.Path, path)
	if err != nil {
		if e := (*fs.PathError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		where := "here"
		if c.below != "" {
			where = "below " + c.below
		}
		return fmt.Errorf("cannot be opened %s: %w", where, err)
	}
	m.file = f
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= 0 {
		return errors.New("the file there now is empty") // files of proc(5) have size 0, and opening them may block
	}
	m.size = uint64(info.Size())
	// A core can list thousands of names of one large file. The file must be opened and parsed only once.
	if other := seen.add(info, m.Path); other != "" {
		return fmt.Errorf("the same file as %s", other)
	}
	disk, err := m.borrow(c.lender, c.debug, info)
	if err != nil {
		return err
	}
	unverified, err := m.compare(disk, mem, c.exe != "" && m.Path == c.named)
	if err != nil {
		return err
	}
	if deleted && unverified != "" && m.Path != c.named {
		return errors.New("it was deleted, and it is unknown whether the file there now is the same: " + unverified)
	}
	m.permit(disk.loads(c.page))
	m.show()
	if m.lent != nil {
		err = m.place(m.lent.image, c.target.arch)
	} else if err = m.openFile(f, c.target.arch); err == nil && c.lender != nil {
		m.lent, m.lender = &moduleFile{path: m.Path, debug: c.debug, info: info, file: f, data: m.data, disk: disk, image: m.Image}, c.lender
	}
	if err != nil {
		return err
	}
	m.Unverified = unverified
	return nil
}

// borrow makes the module use an already open file, if from has it. It returns the identity of the file.
func (m *coreModule) borrow(from *ModuleFiles, debug string, info os.FileInfo) (*identity, error) {
	lent := from.take(m.Path, debug, info)
	if lent == nil {
		return readIdentity(m.file, m.size)
	}
	m.file.Close()
	m.lent, m.lender, m.file, m.data = lent, from, lent.file, lent.data
	return lent.disk, nil
}

// openNamed opens a file that the core names. path is the name without the suffix that marks a deleted file.
func (c *core) openNamed(open opener, name, path string) (*os.File, error) {
	if c.exe != "" && name == c.named {
		return files.OpenRegular(c.exe, 0)
	}
	return open(path)
}

// show sets the module's mappings from the rows.
func (m *coreModule) show() {
	m.maps = m.maps[:0]
	for _, row := range m.rows {
		m.maps = append(m.maps, row.Mapping)
	}
}

// load is a segment of a file as it is mapped: extended to the start of its first page.
type load struct {
	addr, off, end uint64 // end is an offset in the file
	flags          elf.ProgFlag
}

// maxLoads bounds the number of loads of a file. Most files have about five.
const maxLoads = 64

func (id *identity) loads(page uint64) (list []load) {
	for _, p := range id.programs {
		if elf.ProgType(p.Type) == elf.PT_LOAD && p.Filesz > 0 && len(list) < maxLoads {
			skew := p.Off & (page - 1)
			list = append(list, load{p.Vaddr - skew, p.Off - skew, p.Off + p.Filesz, elf.ProgFlag(p.Flags)})
		}
	}
	return list
}

// bias returns the distance between the mapping and the segment, if the mapping shows a part of the segment.
func (l load) bias(m machine.Mapping) (machine.Addr, bool) {
	return m.Start - machine.Addr(l.addr+m.Offset-l.off), m.Offset >= l.off && m.Offset < l.end
}

// permit sets the permissions of mappings that are only in the list of files. It uses those of the file's segment that the mapping contains. A page
// of a file may belong to two segments: permit then chooses the one with the load bias on which most mappings agree. If such a page is mapped twice,
// permit cannot distinguish the two mappings.
func (m *coreModule) permit(loads []load) {
	votes := map[machine.Addr]int{}
	var bias machine.Addr
	for _, row := range m.rows[:min(len(m.rows), mappingsToTry)] {
		for _, l := range loads {
			if b, ok := l.bias(row.Mapping); ok {
				if votes[b]++; votes[b] > votes[bias] {
					bias = b
				}
			}
		}
	}
	for _, row := range m.rows {
		if row.segment != nil && !m.unlisted {
			continue
		}
		near := false
		for _, l := range loads {
			if b, ok := l.bias(row.Mapping); ok && (b == bias || !near) {
				row.Read, row.Write, row.Exec = l.flags&elf.PF_R != 0, l.flags&elf.PF_W != 0, l.flags&elf.PF_X != 0
				near = b == bias
			}
		}
	}
}

// identity holds data that distinguishes one ELF file from others.
type identity struct {
	header   [elfcore.HeaderSize]byte
	programs []elf.Prog64 // nil if they cannot be read
	build    []byte       // nil if the file has no build ID, or if it cannot be read
}

// Limits on the data that is read to identify a file.
const (
	maxFilePrograms = 1 << 10
	maxFileNotes    = 1 << 8
	maxBuildID      = 64
)

// readIdentity reads the identity of a file of size bytes.
func readIdentity(r io.ReaderAt, size uint64) (*identity, error) {
	h, err := elfcore.ReadHeader(r)
	if err != nil {
		return nil, err
	}
	id := &identity{header: h.Raw}
	if h.Class != elf.ELFCLASS64 {
		return nil, errors.New("a 32-bit file")
	}
	// If the program headers cannot be read, only the ELF header is compared.
	id.programs, _ = h.Programs(r, size, maxFilePrograms)
	budget := elfcore.Budget(maxFileNotes)
	for _, p := range id.programs {
		if elf.ProgType(p.Type) != elf.PT_NOTE {
			continue
		}
		budget.Each(r, size, h.Order, p, func(n elfcore.Note) {
			if n.Owner == "GNU" && n.Kind == elf.NType(3) && n.Desc.Size() <= maxBuildID { // NT_GNU_BUILD_ID of elf.h
				if b, ok := n.Read(1, maxBuildID); ok {
					id.build = b
				}
			}
		})
	}
	return id, nil
}

// compare compares the current file, or the one given in its place, with the data of the mapped file in the core. It returns an error if they differ.
// If that cannot be determined, unverified is the reason.
func (m *coreModule) compare(disk *identity, mem *coreMemory, given bool) (unverified string, err error) {
	another := "the file there now is a different one: "
	if given {
		another = "it is a different file: "
	}
	for _, row := range m.rows {
		// The last mapped page may extend beyond the end of the file.
		if row.Offset >= m.size {
			return "", fmt.Errorf(another+"it has only %d bytes, but offset %d was mapped", m.size, row.Offset)
		}
	}
	view := fileView{mem, m.maps}
	var magic [4]byte
	if n, _ := view.ReadAt(magic[:], 0); n < len(magic) {
		return "the core does not contain the beginning of the mapped file", nil
	}
	mapped, err := readIdentity(view, m.size)
	switch {
	case err != nil:
		return "", fmt.Errorf(another+"in the core it is %w", err)
	case mapped.build != nil && disk.build != nil && !bytes.Equal(mapped.build, disk.build):
		return "", fmt.Errorf(another+"its build id is %x, but that in the core is %x", disk.build, mapped.build)
	case mapped.build != nil && disk.build != nil:
		return "", nil
	case mapped.header != disk.header || mapped.programs != nil && !slices.Equal(mapped.programs, disk.programs):
		return "", errors.New(another + "its headers differ from those in the core")
	case disk.build != nil:
		return "the core does not contain its build id; its headers are the same", nil
	}
	return "it has no build id; its headers are the same", nil
}
