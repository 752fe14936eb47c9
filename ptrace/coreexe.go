package ptrace

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/files"
)

// placeExecutable uses the file at path as the program of the core. The file replaces the one that the core has mapped at the program's entry point.
// If the core names no such file, placeExecutable adds the segments of the file at the addresses where they must have been loaded.
func (c *core) placeExecutable(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	f, err := files.OpenRegular(path, 0)
	if err != nil {
		if e := (*fs.PathError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c.exe, c.named = path, path
	for _, row := range c.files {
		if row.start <= c.entry && c.entry < row.end {
			c.named = row.path // keep the name that the core uses
			return nil
		}
	}
	h, err := elfcore.ReadHeader(f)
	if err != nil {
		return err
	}
	bias, err := c.biasOf(h)
	if err != nil {
		return err
	}
	programs, err := h.Programs(f, uint64(info.Size()), maxFilePrograms)
	if err != nil {
		return err
	}
	last := machine.Addr(0) // segments may share a page of the file, but not a page of memory
	for _, l := range (&identity{programs: programs}).loads(c.page) {
		row := fileRow{machine.Addr(l.addr) + bias, machine.Addr(l.addr+(l.end-l.off+c.page-1)&^(c.page-1)) + bias, l.off, path}
		if row.start < last || row.start >= row.end {
			return errors.New("its segments overlap, or end outside of the address space")
		}
		last = row.end
		c.files = append(c.files, row)
	}
	slices.SortStableFunc(c.files, func(a, b fileRow) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(c.files); i++ {
		if c.files[i].start < c.files[i-1].end {
			return fmt.Errorf("the core has %s mapped at the same addresses", c.files[i-1].path)
		}
	}
	return nil
}

// biasOf returns the distance between a program's load address and the addresses in its file.
func (c *core) biasOf(h *elfcore.Header) (machine.Addr, error) {
	if h.Class != elf.ELFCLASS64 || h.Kind != elf.ET_EXEC && h.Kind != elf.ET_DYN {
		return 0, errors.New("not a 64-bit program")
	}
	entry := machine.Addr(h.Order.Uint64(h.Raw[24:]))
	bias := c.entry - entry
	switch {
	case c.entry == 0 && h.Kind == elf.ET_DYN:
		return 0, errors.New("the core does not contain the address of its program (AT_ENTRY)")
	case c.entry == 0:
		return 0, nil
	case h.Kind == elf.ET_EXEC && bias != 0, uint64(bias)&(c.page-1) != 0:
		return 0, fmt.Errorf("its entry point is %v, but that of the core's program is %v: it is another program", entry, c.entry)
	}
	return bias, nil
}
