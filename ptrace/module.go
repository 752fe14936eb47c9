package ptrace

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace/files"
)

// Module is a file that is mapped in the target, or the vdso, which has no file.
type Module struct {
	Path  string
	Image *object.Image // nil if the file is not an ELF image or cannot be read
	Why   string        // why Image is nil

	// Unverified is the reason why it is unknown whether the file is the one that was mapped, or "". It is set only for a core.
	Unverified string

	// Lost means that the mapped file is missing, and that the core lacks the code, or contains the code but lacks its unwind information. It is set
	// only for a core.
	Lost bool

	// Unopened means that the file was not read because file descriptors or memory ran out. The contents of the file, and objects registered in it,
	// are then unknown.
	Unopened bool

	// StackMaps is the section .llvm_stackmaps in the target's memory, where the dynamic linker may have relocated it.
	StackMaps []byte
	// MapsWhy is the reason why StackMaps is nil although the image has that section.
	MapsWhy string

	maps      []machine.Mapping
	data      io.ReaderAt
	file      *os.File
	opened    os.FileInfo  // info of the file when it was opened
	checked   atomic.Int64 // number of reads of the file at the last check that it had not changed
	debugged  bool         // the image has a function to find separate symbols
	debugFile *os.File     // the file with separate symbols; nil until it is opened

	lent   *moduleFile // the owner of file and image; nil if the module owns them
	lender *ModuleFiles
}

// File returns the size of the module's file, and a path that opens it, even if the file has another path in the target or was deleted. The path is
// valid until the target is closed. It is "" if the module has no file.
func (m *Module) File() (path string, size int64) {
	if m.file == nil || m.opened == nil {
		return "", 0
	}
	if runtime.GOOS != "linux" {
		return m.file.Name(), m.opened.Size()
	}
	return fmt.Sprintf("/proc/self/fd/%d", m.file.Fd()), m.opened.Size()
}

// Contains reports whether one of the module's mappings contains addr.
func (m *Module) Contains(addr machine.Addr) bool {
	for _, r := range m.maps {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}

const (
	vdsoPath         = "[vdso]"
	maxStackMaps     = 1 << 30
	maxVDSO          = 1 << 20
	deletedSuffix    = " (deleted)"
	modulesToLookFor = 1 << 14
	mappingsToTry    = 64
)

// readModules groups mappings by file and opens the ELF images. It reuses the modules in known that have not changed, and closes the others.
func readModules(mem machine.Memory, pid int, maps []machine.Mapping, known []*Module) []*Module {
	modules := groupModules(maps)
	old := map[machine.Addr]*Module{}
	for _, m := range known {
		old[m.maps[0].Start] = m
	}
	for i, m := range modules {
		if same := old[m.maps[0].Start]; same != nil && same.unchanged(mem, m) {
			delete(old, m.maps[0].Start)
			modules[i] = same
			continue
		}
		if err := m.open(mem, pid); err != nil {
			m.fail(err)
			continue
		}
		m.readStackMaps(mem)
	}
	for _, m := range old {
		m.close()
	}
	return modules
}

// groupModules returns a module for each mapped file.
func groupModules(maps []machine.Mapping) []*Module {
	var modules []*Module
	type file struct {
		path  string
		inode uint64
	}
	byFile := map[file]*Module{}
	for _, r := range maps {
		if r.Inode == 0 && r.Path != vdsoPath {
			continue
		}
		key := file{r.Path, r.Inode}
		m := byFile[key]
		if m == nil {
			if len(modules) == modulesToLookFor {
				break
			}
			m = &Module{Path: r.Path}
			byFile[key] = m
			modules = append(modules, m)
		}
		m.maps = append(m.maps, r)
	}
	return modules
}

// unchanged reports whether m equals now: it has the same mappings of the same file, and its stack maps are the same, although the dynamic linker may
// relocate them later.
func (m *Module) unchanged(mem machine.Memory, now *Module) bool {
	if m.Unopened || m.Path != now.Path || !slices.Equal(m.maps, now.maps) {
		return false
	}
	if m.Image == nil || m.Image.Section(object.StackMapSection) == nil {
		return true
	}
	again := m.withStackMaps(mem)
	return bytes.Equal(again.StackMaps, m.StackMaps) && again.MapsWhy == m.MapsWhy
}

// ReadStackMaps reads the stack maps of the module again, and reports whether they have changed.
func (m *Module) ReadStackMaps(mem machine.Memory) (changed bool) {
	again := m.withStackMaps(mem)
	if bytes.Equal(again.StackMaps, m.StackMaps) && again.MapsWhy == m.MapsWhy {
		return false
	}
	m.StackMaps, m.MapsWhy = again.StackMaps, again.MapsWhy
	return true
}

// withStackMaps returns a module with the same image and mappings, and with the stack maps in mem.
func (m *Module) withStackMaps(mem machine.Memory) *Module {
	again := &Module{Image: m.Image, maps: m.maps}
	again.readStackMaps(mem)
	return again
}

// fail records the reason why the module has no image.
func (m *Module) fail(err error) {
	m.close()
	m.Why, m.Unopened = err.Error(), exhausted(err)
	if why := new(syscall.Errno); m.Unopened && errors.As(err, why) {
		m.Why = why.Error() // without the path under which the file was opened
	}
}

// exhausted reports whether a call failed because file descriptors or memory ran out.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

func (m *Module) close() {
	if m.lent != nil {
		m.lent.also = cmp.Or(m.lent.also, m.debugFile)
		m.lender.give(m.lent)
		m.file, m.debugFile, m.lent = nil, nil, nil
	}
	for _, f := range []*os.File{m.file, m.debugFile} {
		if f != nil {
			files.CloseWithin(f)
		}
	}
	m.file, m.debugFile, m.Image, m.data = nil, nil, nil, nil
}

func (m *Module) open(mem machine.Memory, pid int) error {
	if m.Path == vdsoPath {
		return m.openVDSO(mem, arch)
	}
	f, err := openMapped(pid, m.maps[0])
	if err != nil {
		return err
	}
	return m.openFile(f, arch)
}

func (m *Module) openFile(f *os.File, arch *machine.Arch) error {
	m.file = f
	info, err := files.StatWithin(f.Stat)
	if err != nil {
		return err
	}
	m.opened, m.data = info, &files.Cache{File: files.Bounded(f, info)}
	return m.openImage(info.Size(), arch)
}

// holds reports whether the file did not change between its opening and the last read.
func (m *Module) holds() bool {
	file, ok := m.data.(*files.Cache)
	if !ok {
		return true
	}
	reads := file.Reads.Load()
	if reads == m.checked.Load() {
		return true
	}
	if m.changes() {
		return false
	}
	m.checked.Store(reads)
	return true
}

// fresh is the age that a file's modification time must have so that a later write changes it. Older kernels round that time to ticks.
const fresh = 100 * time.Millisecond

// changes reports whether the file was written since it was opened. It also returns true if the modification time is so recent that it would not show
// a write.
func (m *Module) changes() bool {
	if m.file == nil {
		return false
	}
	now, err := files.StatWithin(m.file.Stat)
	return err != nil || now.Size() != m.opened.Size() || !now.ModTime().Equal(m.opened.ModTime()) || time.Since(now.ModTime()) < fresh
}

// openVDSO reads the vdso from memory. The vdso does not change while the process runs.
func (m *Module) openVDSO(mem machine.Memory, arch *machine.Arch) error {
	size := uint64(m.maps[0].End - m.maps[0].Start)
	if size > maxVDSO {
		return fmt.Errorf("a vdso of %d bytes", size)
	}
	b, err := readAll(mem, m.maps[0].Start, size)
	if err != nil {
		return err
	}
	m.data = bytes.NewReader(b)
	return m.openImage(int64(size), arch)
}

// openImage opens the image in the module's data, and determines its load address.
func (m *Module) openImage(size int64, arch *machine.Arch) error {
	img, err := object.New(m.Path, m.data, size)
	if err != nil {
		return err
	}
	return m.place(img, arch)
}

// place determines the load address of an image.
func (m *Module) place(img *object.Image, arch *machine.Arch) error {
	if err := madeFor(img, arch); err != nil {
		return err
	}
	bias, ok := m.bias(img)
	if !ok {
		return errors.New("none of its mappings matches one of its segments")
	}
	img.Rebase(bias)
	m.Image = img
	return nil
}

// madeFor returns an error if an image does not contain code for the target. Compilers also map files of other architectures.
func madeFor(img *object.Image, arch *machine.Arch) error {
	of, err := img.Arch()
	switch {
	case err != nil:
		return err
	case of != arch:
		return fmt.Errorf("it is built for %s", of.Title)
	case img.Narrow():
		return fmt.Errorf("it is built for %s with 32-bit addresses", of.Title)
	}
	return nil
}

// bias returns the load bias of the image, from the first mapping that places the image's code in executable memory. An earlier mapping of the file
// may not be the loader's, because a program that reads symbols also maps files, including its own, as data.
func (m *Module) bias(img *object.Image) (bias machine.Addr, known bool) {
	code := img.Code()
	executable := false
	for i, r := range m.maps {
		linked, ok := img.FileAddr(r.Offset)
		if !ok {
			continue
		}
		if !known || r.Exec && !executable { // the file may be mapped twice, in parts
			bias, known, executable = r.Start-linked, true, r.Exec
		}
		if len(code) == 0 || i == mappingsToTry {
			break
		}
		if at, ok := findMapping(m.maps, code[0].Addr+r.Start-linked); ok && at.Exec {
			return r.Start - linked, true
		}
	}
	return bias, known
}

// openMapped opens the mapped file. The path may be in another mount namespace, the file there may be a newer one, and a file of memfd_create(2) has
// no path. Therefore openMapped compares the inode. map_files always leads to the file, but requires privileges.
func openMapped(pid int, r machine.Mapping) (*os.File, error) {
	for _, path := range []string{
		fmt.Sprintf("/proc/%d/root%s", pid, strings.TrimSuffix(r.Path, deletedSuffix)),
		fmt.Sprintf("/proc/%d/exe", pid),
		fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, uint64(r.Start), uint64(r.End)),
	} {
		f, err := files.OpenWithin(path, r.Inode)
		if err == nil {
			return f, nil
		}
		if exhausted(err) || errors.Is(err, files.ErrLate) {
			return nil, err
		}
	}
	return nil, errors.New("the file was replaced or cannot be reached")
}

// readStackMaps reads the section of ahead-of-time compiled code from memory, because in a position-independent module it is relocated only there.
func (m *Module) readStackMaps(mem machine.Memory) {
	s := m.Image.Section(object.StackMapSection)
	if s == nil || !s.Alloc || s.Size == 0 {
		return
	}
	switch {
	case s.Size > maxStackMaps:
		m.MapsWhy = fmt.Sprintf("%s claims %d bytes", object.StackMapSection, s.Size)
		return
	case !m.Contains(s.Loaded()):
		m.MapsWhy = object.StackMapSection + " is outside of the mapped segments"
		return
	}
	b, err := readAll(mem, s.Loaded(), s.Size)
	if err != nil {
		m.MapsWhy = fmt.Sprintf("%s: %v", object.StackMapSection, err)
		return
	}
	m.relocate(s, b)
	m.StackMaps = b
}

// relocate applies relocations of a section to b, the bytes in memory, if the dynamic linker has not yet applied them. glibc reports a library as
// consistent before it relocates the library (dl_open_worker_begin of elf/dl-open.c), and reports nothing more before the library's code runs. A word
// that equals the word in the file was not yet relocated.
//
// A symbol that the image defines resolves to the image's definition: a record describes the code that was compiled with it, even if the dynamic
// linker prefers the definition of another library.
func (m *Module) relocate(s *object.Section, b []byte) {
	file, err := s.Data()
	if err != nil || len(file) != len(b) {
		return
	}
	linked, relocations, err := s.Relocated()
	if err != nil {
		return // the error is found when the stack maps are read
	}
	arch, err := m.Image.Arch()
	if err != nil {
		return
	}
	order := arch.Order
	for _, r := range relocations {
		if r.Defined && r.Offset+8 <= uint64(len(b)) && bytes.Equal(b[r.Offset:r.Offset+8], file[r.Offset:r.Offset+8]) {
			order.PutUint64(b[r.Offset:], order.Uint64(linked[r.Offset:])+uint64(m.Image.Bias))
		}
	}
}

// Virtual reports whether the module is the vdso, which has no file and is read from memory.
func (m *Module) Virtual() bool { return m.Path == vdsoPath }

// modulePlace is a mapping of a module.
type modulePlace struct {
	machine.Mapping
	module *Module
}

// places holds the mappings of all modules in order of address.
type places []modulePlace

func newPlaces(modules []*Module) places {
	var list places
	for _, m := range modules {
		for _, r := range m.maps {
			list = append(list, modulePlace{r, m})
		}
	}
	slices.SortStableFunc(list, func(a, b modulePlace) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return 0
	})
	return list
}

// at returns the mapping that contains addr, or nil.
func (p places) at(addr machine.Addr) *modulePlace {
	i := sort.Search(len(p), func(i int) bool { return p[i].End > addr })
	if i < len(p) && p[i].Contains(addr) {
		return &p[i]
	}
	return nil
}
