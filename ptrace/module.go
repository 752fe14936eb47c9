package ptrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"reframe/deopt/machine"
	"reframe/deopt/object"
)

// Module is a file that is mapped into the target (or the vdso, which is one
// without a file).
type Module struct {
	Path  string
	Image *object.Image // nil where the file is no ELF image or cannot be read
	Why   string        // why Image is nil

	// Unverified says why it cannot be told whether the file is the one that was mapped,
	// or is "". Only a core leaves that open.
	Unverified string

	// StackMaps is the section .llvm_stackmaps as it lies in the target's memory, where
	// the dynamic linker may have relocated it.
	StackMaps []byte
	// MapsWhy is why StackMaps is nil although the image has that section.
	MapsWhy string

	maps []machine.Mapping
	data io.ReaderAt
	file *os.File
}

// Contains says whether addr lies in one of the module's mappings.
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

// readModules groups mappings by file and opens those that are ELF images.
func readModules(pid int, maps []machine.Mapping) []*Module {
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
	for _, m := range modules {
		if err := m.open(pid); err != nil {
			m.fail(err)
			continue
		}
		m.readStackMaps(live(pid))
	}
	return modules
}

// fail notes why there is no image.
func (m *Module) fail(err error) {
	m.close()
	m.Why = err.Error()
}

func (m *Module) close() {
	if m.file != nil {
		m.file.Close()
	}
	m.file, m.Image, m.data = nil, nil, nil
}

func (m *Module) open(pid int) error {
	if m.Path == vdsoPath {
		return m.openVDSO(live(pid), arch)
	}
	f, err := openMapped(pid, m.maps[0])
	if err != nil {
		return err
	}
	return m.openFile(f, arch)
}

func (m *Module) openFile(f *os.File, arch *machine.Arch) error {
	m.file, m.data = f, &fileCache{file: f}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return m.openImage(info.Size(), arch)
}

// openVDSO reads the kernel's own page: the same for the life of the process.
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

// openImage reads the headers of the module's data and finds out where it is loaded.
func (m *Module) openImage(size int64, arch *machine.Arch) error {
	img, err := object.New(m.Path, m.data, size)
	if err != nil {
		return err
	}
	if err := madeFor(img, arch); err != nil {
		return err
	}
	bias, ok := m.bias(img)
	if !ok {
		return errors.New("its mappings belong to none of its segments")
	}
	img.Bias = bias
	m.Image = img
	return nil
}

// madeFor returns an error where an image holds no code for the target: files of other
// architectures are mapped too, by those who compile for them.
func madeFor(img *object.Image, arch *machine.Arch) error {
	of, err := img.Arch()
	switch {
	case err != nil:
		return err
	case of != arch:
		return fmt.Errorf("it is made for %s", of.Title)
	case img.Narrow():
		return fmt.Errorf("it is made for %s with addresses of 32 bits", of.Title)
	}
	return nil
}

// bias finds out where the image is loaded: the first mapping by which its code lies in
// executable memory. The mapping that comes first may not be the loader's: a program that
// reads symbols maps files, its own too, as data.
func (m *Module) bias(img *object.Image) (bias machine.Addr, known bool) {
	code := img.Code()
	for i, r := range m.maps {
		linked, ok := img.FileAddr(r.Offset)
		if !ok {
			continue
		}
		if !known {
			bias, known = r.Start-linked, true
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

// openMapped opens the very file that a mapping shows. The path may lie in another
// mount namespace, the file there may be a newer one, and a file made by
// memfd_create(2) has none: the inode tells. map_files always leads to it, and needs
// privileges.
func openMapped(pid int, r machine.Mapping) (*os.File, error) {
	for _, path := range []string{
		fmt.Sprintf("/proc/%d/root%s", pid, strings.TrimSuffix(r.Path, deletedSuffix)),
		fmt.Sprintf("/proc/%d/exe", pid),
		fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, uint64(r.Start), uint64(r.End)),
	} {
		if f, err := openRegular(path, r.Inode); err == nil {
			return f, nil
		}
	}
	return nil, errors.New("the file was replaced or cannot be reached")
}

// openRegular opens a regular file that has the inode, or any if that is 0. Opening a device or a pipe could
// block or act, and what a path leads to is up to the target: it is taken hold of without
// being opened (O_PATH) until it is known what it is.
func openRegular(path string, inode uint64) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("not a regular file")
	}
	if inode != 0 && st.Ino != inode {
		return nil, errors.New("another file")
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// readStackMaps reads the section of ahead-of-time code from memory, because a
// position-independent module has it relocated there and not in the file.
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
		m.MapsWhy = object.StackMapSection + " lies outside of the mapped segments"
		return
	}
	b, err := readAll(mem, s.Loaded(), s.Size)
	if err != nil {
		m.MapsWhy = fmt.Sprintf("%s: %v", object.StackMapSection, err)
		return
	}
	m.StackMaps = b
}
