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

	// StackMaps is the section .llvm_stackmaps as it lies in the target's memory, where
	// the dynamic linker may have relocated it.
	StackMaps []byte

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
		if r.Inode == 0 && r.Path != "[vdso]" {
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
			m.Why = err.Error()
			m.close()
		}
	}
	return modules
}

func (m *Module) close() {
	if m.file != nil {
		m.file.Close()
	}
	m.file, m.Image, m.data = nil, nil, nil
}

func (m *Module) open(pid int) error {
	size, err := m.openData(pid)
	if err != nil {
		return err
	}
	img, err := object.New(m.Path, m.data, size)
	if err != nil {
		return err
	}
	if _, err := img.Arch(); err != nil {
		return err
	}
	bias, ok := m.bias(img)
	if !ok {
		return errors.New("its mappings belong to none of its segments")
	}
	img.Bias = bias
	m.Image = img
	return m.readStackMaps(live(pid))
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

func (m *Module) openData(pid int) (int64, error) {
	if m.Path == "[vdso]" {
		// The kernel's own page: the same for the life of the process.
		size := m.maps[0].End - m.maps[0].Start
		if size > maxVDSO {
			return 0, fmt.Errorf("a vdso of %d bytes", size)
		}
		b := make([]byte, size)
		if err := live(pid).ReadMemory(b, m.maps[0].Start); err != nil {
			return 0, err
		}
		m.data = bytes.NewReader(b)
		return int64(size), nil
	}
	f, err := openMapped(pid, m.maps[0])
	if err != nil {
		return 0, err
	}
	m.file, m.data = f, f
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
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

// openRegular opens a regular file that has the inode. Opening a device or a pipe could
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
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Ino != inode {
		return nil, errors.New("another file")
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// readStackMaps reads the section of ahead-of-time code from memory, because a
// position-independent module has it relocated there and not in the file.
func (m *Module) readStackMaps(mem live) error {
	s := m.Image.Section(object.StackMapSection)
	if s == nil || !s.Alloc || s.Size == 0 {
		return nil
	}
	if s.Size > maxStackMaps {
		return fmt.Errorf("%s claims %d bytes", object.StackMapSection, s.Size)
	}
	if !m.Contains(s.Loaded()) {
		return fmt.Errorf("%s lies outside of the mapped segments", object.StackMapSection)
	}
	b := make([]byte, s.Size)
	if err := mem.ReadMemory(b, s.Loaded()); err != nil {
		return fmt.Errorf("%s: %w", object.StackMapSection, err)
	}
	m.StackMaps = b
	return nil
}
