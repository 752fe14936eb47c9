package ptrace

import (
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/files"
	"example.com/reframe/ptrace/holder"
)

// HeldError is an error from a debugger that holds a process.
type HeldError struct {
	Addr string // of the debugger
	Err  error
	Hint string // what to do next, or ""
}

func (e *HeldError) Error() string {
	s := e.Addr + ": " + e.Err.Error()
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

func (e *HeldError) Unwrap() error { return e.Err }

// OpenHeld makes a target of a process that another debugger holds. It finds the same data as [OpenCore] in a core that contains all memory, and
// reads memory on demand. After an error it closes s; otherwise [Target.Close] closes s. An error includes the notes, because no target has them.
//
// Mapped files are read on this machine if it has the same files; otherwise s opens them.
func OpenHeld(s *holder.State, o CoreOptions) (t *Target, err error) {
	return openHeld(s, o, holder.NewCache(s.Memory, s.Mappings != nil), nil)
}

// openHeld is like OpenHeld, and reads memory through cache. before is the target of the same process at an earlier stop, or nil. The new target
// takes over the pointers to data that has not changed since, so the old target must no longer be used or closed.
func openHeld(s *holder.State, o CoreOptions, cache *holder.Cache, before *Target) (t *Target, err error) {
	target := &Target{Provider: Provider(s.Kind), Debugger: s.Addr, PID: s.PID, Command: s.Command, Notes: slices.Clone(s.Notes), arch: s.Arch, threads: s.Threads,
		room: o.Objects, debug: debugDirs(o.DebugDirs), file: closer(s.Close), lost: cache.Lost}
	defer func() {
		if p := recover(); p != nil {
			err = &HeldError{s.Addr, fmt.Errorf("its data is malformed: %v", p), ""}
		}
		if lost := cache.Lost(); lost != nil && err == nil {
			err = &HeldError{s.Addr, lost, ""}
		}
		if err != nil {
			// A note can give the cause, such as an object that is not found because the debugger does not list memory.
			if len(target.Notes) > 0 {
				err = fmt.Errorf("%w (note: %s)", err, strings.Join(target.Notes, "; "))
			}
			t = nil
			target.Close()
		}
	}()
	c := &core{target: target, path: s.Addr, file: heldMemory{cache}, size: math.MaxUint64, page: 4 << 10, lender: o.Files, absent: notMapped,
		debug: fmt.Sprintf("%q %q", o.Sysroot, o.DebugDirs), open: files.OpenNamed, fetch: s.Open, whole: true, before: before}
	target.core = c
	if err := c.search(o); err != nil {
		return nil, err
	}
	c.readAuxv(s.Auxv)
	if err := c.layHeld(s, o.Exe); err != nil {
		return nil, err
	}
	if err := c.complete(o); err != nil {
		return nil, err
	}
	target.findHeldPerf(s.Auxv)
	return target, nil
}

// closer is a function that ends a connection.
type closer func() error

func (c closer) Close() error {
	if c == nil {
		return nil
	}
	return c()
}

const notMapped = "not mapped"

// heldMemory reads the memory of a held process. The offset of a read is the address as a signed number, so addresses in the upper half have negative
// offsets.
type heldMemory struct{ *holder.Cache }

// ReadAt implements [io.ReaderAt].
func (m heldMemory) ReadAt(p []byte, off int64) (int, error) { return m.Read(p, machine.Addr(off)) }

// layHeld creates mappings from the debugger's list. Without a list, one mapping represents each half of the address space, except for its outermost
// page, and the mappings of files are cut out of these.
func (c *core) layHeld(s *holder.State, exe string) error {
	if s.Mappings != nil {
		c.segments = make([]segment, len(s.Mappings))
		for i, m := range s.Mappings {
			c.segments[i] = heldSegment(m)
		}
		for i, m := range s.Mappings {
			c.maps = append(c.maps, coreMapping{Mapping: m, segment: &c.segments[i]})
			if ofFile(m) {
				c.files = append(c.files, fileRow{m.Start, m.End, m.Offset, m.Path})
			}
		}
		if exe == "" {
			return nil
		}
		return c.placeNamed(exe)
	}
	c.unlisted = true
	for _, half := range []machine.Range{{Start: machine.Addr(c.page), End: 1 << 63}, {Start: 1 << 63, End: -machine.Addr(c.page)}} {
		c.segments = append(c.segments, heldSegment(machine.Mapping{Start: half.Start, End: half.End, Read: true, Write: true, Exec: true}))
	}
	switch {
	case exe != "":
		if err := c.placeNamed(exe); err != nil {
			return err
		}
	case s.Program != "":
		if err := c.addProgram(s.Program); err != nil {
			c.target.Notes = append(c.target.Notes, fmt.Sprintf("its program %s is not used: %v; give it with --exe", s.Program, err))
		}
	}
	for _, f := range s.Files {
		c.addFile(f.Path, f.Bias)
	}
	c.nameLinkedFiles()
	c.lay()
	return nil
}

// addProgram adds the file of the program at the addresses where it must have been loaded.
func (c *core) addProgram(name string) error {
	f, err := c.openAny(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := elfcore.ReadHeader(f)
	if err != nil {
		return err
	}
	bias, err := c.biasOf(h)
	if err != nil {
		return err
	}
	c.addFile(name, bias)
	return nil
}

// openAny opens a file of the target: on this machine or, if it is not found, through the debugger.
func (c *core) openAny(name string) (*os.File, error) {
	f, err := c.open(name)
	if err != nil && c.fetch != nil {
		f, err = c.fetch(name)
	}
	return f, err
}

// heldSegment returns a segment with all memory of a mapping.
func heldSegment(m machine.Mapping) segment {
	s := segment{start: m.Start, end: m.End, off: uint64(m.Start), held: uint64(m.End - m.Start)}
	for flag, set := range map[elf.ProgFlag]bool{elf.PF_R: m.Read, elf.PF_W: m.Write, elf.PF_X: m.Exec} {
		if set {
			s.flags |= flag
		}
	}
	return s
}

// placeNamed calls placeExecutable, and adds the name of the file to its error.
func (c *core) placeNamed(exe string) error {
	if err := c.placeExecutable(exe); err != nil {
		return &CoreError{exe, -1, err, "give the program of the process with --exe; it may be stripped"}
	}
	return nil
}

// search sets where files are searched: on this machine, or below a directory.
func (c *core) search(o CoreOptions) error {
	if o.Sysroot == "" {
		return nil
	}
	below, err := files.OpenSysroot(o.Sysroot)
	if err != nil {
		return &CoreError{o.Sysroot, -1, errors.Unwrap(err), "give the directory that contains the files of the other machine"}
	}
	c.target.sysroot = below
	c.open, c.below = below.Open, o.Sysroot
	if o.DebugDirs == nil {
		c.target.debug = append(c.target.debug, func(name string) (*os.File, error) { return below.Open(path.Join(DebugDir, name)) })
	}
	return nil
}

// Unlisted reports whether the debugger that holds the process does not list its mappings. In that case memory was not searched for stack maps.
func (t *Target) Unlisted() bool { return t.core != nil && t.core.unlisted }

// Lost returns the error after which the debugger that holds the process no longer answered, or nil. Data that was not yet read is missing.
func (t *Target) Lost() error {
	if t.lost == nil {
		return nil
	}
	if err := t.lost(); err != nil {
		return &HeldError{t.Debugger, err, ""}
	}
	return nil
}
