package ptrace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/perfmap"
	"example.com/reframe/ptrace/files"
	"example.com/reframe/ptrace/system"
)

// perfFiles holds the files in which a process writes the names of its JIT-compiled code for the profiler perf. For a core these files are not read,
// because a file with that name may by then belong to another process.
type perfFiles struct {
	via   int // the thread through which the process is read
	files []*PerfFile
	// live means that the process is stopped whenever a name is looked up. In this case lookups use the current contents of the files, and search for
	// new files.
	live bool
}

// PerfFile is a perf map or a jitdump.
type PerfFile struct {
	Path   string // the path in the process's mount namespace
	Format perfmap.Format
	Why    string // the reason why the file is not used, or ""

	file  *os.File
	size  int64 // size of the file at the stop
	names *perfmap.Map
	pid   int // number of the process in its own namespace
}

// PerfFiles returns the files, including unused ones.
func (t *Target) PerfFiles() []*PerfFile {
	if t.perf == nil {
		return nil
	}
	return t.perf.files
}

// PerfName returns the function that contains an address, and the format of the perf file that names the function. If both formats name it, the
// jitdump takes precedence, because each of its records describes one piece of code.
func (t *Target) PerfName(addr machine.Addr) (f perfmap.Function, by perfmap.Format, ok bool) {
	if t.perf == nil {
		return f, "", false
	}
	if t.perf.live {
		t.perf.find(t.maps)
		t.perf.freeze()
	}
	for _, p := range t.perf.files {
		if f, ok = p.at(addr); ok && p.fitsFile(f, addr, t.memory) {
			return f, p.Format, true
		}
	}
	return f, "", false
}

// compared bounds the number of bytes around an address that are compared with the file.
const compared = 128

// fitsFile reports whether the code around an address may be the function's code in the file. The two may differ: LLVM dumps code before it relocates
// it, and V8's garbage collector writes new addresses into code. But if less than a quarter is equal, the file describes other code, because V8
// writes its records late, in blocks of two megabytes. If the code was not copied, fitsFile returns true.
func (p *PerfFile) fitsFile(f perfmap.Function, addr machine.Addr, mem machine.Memory) bool {
	if f.Code == 0 || mem == nil {
		return true
	}
	from := max(addr, f.Start+compared/2) - compared/2
	to := min(from+compared, f.Start+machine.Addr(f.Size))
	now, then := make([]byte, to-from), make([]byte, to-from)
	if mem.ReadMemory(now, from) != nil {
		return true
	}
	if _, err := p.file.ReadAt(then, f.Code+int64(from-f.Start)); err != nil {
		return true
	}
	same := 0
	for i := range now {
		if now[i] == then[i] {
			same++
		}
	}
	return same >= len(now)/4
}

// at looks up an address in the part of the file that existed at the stop.
func (p *PerfFile) at(addr machine.Addr) (f perfmap.Function, ok bool) {
	if p.Why != "" {
		return f, false
	}
	if err := p.names.Read(&files.Cache{File: p.file}, p.size); err != nil {
		p.refuse(err)
		return f, false
	}
	if h, known := p.names.Header(); known && int(h.PID) != p.pid {
		p.refuse(fmt.Errorf("it belongs to process %d", h.PID))
		return f, false
	}
	return p.names.At(addr)
}

func (p *PerfFile) refuse(why error) {
	p.Why = why.Error()
	p.close()
}

func (p *PerfFile) close() {
	if p.file != nil {
		p.file.Close()
		p.file = nil
	}
}

func (p *perfFiles) close() {
	if p != nil {
		for _, f := range p.files {
			f.close()
		}
	}
}

// findPerf searches for the files again.
func (t *Target) findPerf() {
	t.perf.close()
	t.perf = &perfFiles{via: t.via}
	t.perf.find(t.maps)
}

// findHeldPerf searches for the files of a process that a debugger on this machine holds. A process with that number is the held one if it is traced
// and has the same auxiliary vector, in which the kernel chooses addresses at random. If the debugger shows a core, the process may still run, and
// its files may be newer.
func (t *Target) findHeldPerf(auxv []byte) {
	if t.PID == 0 || len(auxv) == 0 {
		return
	}
	if here, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", t.PID)); err != nil || !bytes.Equal(here, auxv) {
		return
	}
	if system.StatusField(t.PID, "TracerPid") == "0" {
		return
	}
	t.perf = &perfFiles{via: t.PID}
	t.perf.find(t.maps)
	t.perf.freeze()
}

// find searches for the process's files, and opens those that are not yet open.
func (p *perfFiles) find(maps []machine.Mapping) {
	if len(p.files) == 2 {
		return
	}
	ids := strings.Fields(system.StatusField(p.via, "NSpid")) // one number for each namespace; the last is in the process's own namespace
	if len(ids) == 0 {
		return
	}
	pid, err := strconv.Atoi(ids[len(ids)-1])
	if err != nil {
		return
	}
	p.open(perfmap.Jitdump, pid, func() (string, *os.File, error) { return mappedDump(p.via, maps, fmt.Sprintf("jit-%d.dump", pid)) })
	p.open(perfmap.Text, pid, func() (string, *os.File, error) { return perfMap(p.via, fmt.Sprintf("tmp/perf-%d.map", pid)) })
}

// open adds the file of a format, if the file exists and was not yet added.
func (p *perfFiles) open(format perfmap.Format, pid int, opened func() (string, *os.File, error)) {
	if slices.ContainsFunc(p.files, func(f *PerfFile) bool { return f.Format == format }) {
		return
	}
	name, f, err := opened()
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	out := &PerfFile{Path: name, Format: format, file: f, names: perfmap.New(format), pid: pid}
	if err == nil {
		err = belongs(f, p.via)
	}
	if err != nil {
		out.refuse(err)
	}
	p.files = append(p.files, out)
	slices.SortFunc(p.files, func(a, b *PerfFile) int { return strings.Compare(string(a.Format), string(b.Format)) })
}

// freeze records the sizes of the files, because later records describe code that did not exist at the stop.
func (p *perfFiles) freeze() {
	if p == nil {
		return
	}
	for _, f := range p.files {
		if f.file == nil {
			continue
		}
		if info, err := f.file.Stat(); err == nil {
			f.size = info.Size()
		}
	}
}

// mappedDump opens the jitdump of a process. The process maps a page of the file as executable, so that perf detects the file. The mapping gives the
// path, and shows that the file belongs to this process and not to an earlier one.
func mappedDump(via int, maps []machine.Mapping, name string) (string, *os.File, error) {
	for _, r := range maps {
		if r.Exec && path.Base(strings.TrimSuffix(r.Path, deletedSuffix)) == name {
			f, err := openMapped(via, r)
			return r.Path, f, err
		}
	}
	return "", nil, os.ErrNotExist
}

// errLink reports that a file is a symbolic link or not regular.
var errLink = errors.New("it is a symbolic link, or not a regular file")

// perfMap opens a perf map below the root directory of the process. Because all users can write to /tmp, the file there may be a link to any path, or
// a pipe.
func perfMap(via int, name string) (string, *os.File, error) {
	shown := "/" + name
	root, err := os.OpenRoot(fmt.Sprintf("/proc/%d/root", via))
	if err != nil {
		return shown, nil, err
	}
	defer root.Close()
	before, err := root.Lstat(name)
	if err != nil {
		return shown, nil, err
	}
	if !before.Mode().IsRegular() {
		return shown, nil, errLink
	}
	f, err := root.OpenFile(name, os.O_RDONLY|files.Nonblocking, 0)
	if err != nil {
		return shown, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errLink
	}
	if err == nil && info.ModTime().Before(system.ProcessStart(via).Add(-clockSlack)) {
		err = errors.New("it is older than the process: an earlier process with the same number wrote it")
	}
	if err != nil {
		f.Close()
		return shown, nil, err
	}
	return shown, f, nil
}

// clockSlack is the maximum difference between the kernel's clocks for files and for processes.
const clockSlack = time.Second

// belongs returns an error unless root or the process's user owns a file. perf also ignores other files.
func belongs(f *os.File, via int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	owner, known := files.Owner(info)
	if users := strings.Fields(system.StatusField(via, "Uid")); known && (owner == 0 || slices.Contains(users, strconv.Itoa(owner))) {
		return nil
	}
	return fmt.Errorf("it belongs to user %d, who is neither root nor the process's", owner)
}
