package ptrace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/xsave"
	"example.com/reframe/test/livetest"
)

// writeCore writes a core of a stopped process.
func writeCore(s *Session, path string, tid int) error {
	t, err := s.Target()
	if err != nil {
		return err
	}
	_, err = t.WriteCore(context.Background(), path, RecordOptions{Memory: Writable, Thread: tid, Replace: true})
	return err
}

// ownCore writes a core of a stopped process, and resumes the process.
func ownCore(t testing.TB, p *livetest.Process) string {
	t.Helper()
	s, err := Open(context.Background(), p.PID)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "core")
	require.NoError(t, writeCore(s, path, p.PID))
	require.NoError(t, s.Detach())
	return path
}

// recordedCore captures a process and writes its core.
func recordedCore(t testing.TB, p *livetest.Process, o Options, memory CoreMemory) string {
	t.Helper()
	target, err := Capture(p.PID, o)
	require.NoError(t, err)
	defer target.Close()
	path := filepath.Join(t.TempDir(), "core")
	out, err := target.WriteCore(context.Background(), path, RecordOptions{Memory: memory})
	require.NoError(t, err)
	t.Logf("%s, paused %v: %+v", memory, target.Release(), out)
	return path
}

// thinCore makes a small core from a large one, and returns its path.
func thinCore(t testing.TB, large string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "thin")
	_, err := openCore(t, large).WriteCore(context.Background(), path, RecordOptions{Memory: Minimal})
	require.NoError(t, err)
	return path
}

// TestWriteCoreAsOthersReadIt requires that gdb and eu-stack report the same for a core and for the process.
func TestWriteCoreAsOthersReadIt(t *testing.T) {
	livetest.Slow(t)
	for name, p := range map[string]*livetest.Process{
		"vectors":  program(t, "regs.c", []string{"-no-pie"}, "pause"),
		"threads":  livetest.C(t, "threads.c", nil, "3"),
		"compiled": livetest.Linked(t, 19, "deoptimize.ll", "-pie"),
		"jit":      livetest.Lli(t, 19, "jit_sp.ll", "mcjit"),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "vectors" {
				p.Quiet(t, 0)
			}
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
			require.NoError(t, err)
			live := string(livetest.GDBScript(t, p, "testdata/threads.py"))
			stacks := output(t, "eu-stack", "-p", fmt.Sprint(p.PID))
			for how, core := range map[string]string{"writable": ownCore(t, p), "minimal": recordedCore(t, p, Options{Record: true}, Minimal),
				"thin": thinCore(t, ownCore(t, p)), "held, minimal": recordedCore(t, p, Options{Record: true, Hold: true}, Minimal), "all": recordedCore(t, p, Options{Record: true, Hold: true}, All)} {
				if how != "writable" && !livetest.Share(2, name, how) {
					continue
				}
				t.Log(how)
				require.True(t, p.Alive())
				args := []string{"-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", exe, core, "-x", "testdata/threads.py"}
				requireSameLines(t, fromThreads(live), fromThreads(output(t, "gdb", args...)))
				requireSameLines(t, frameLines(stacks), frameLines(output(t, "eu-stack", "--core="+core, "-e", exe)))
				require.Contains(t, output(t, "eu-readelf", "-n", core), "PRPSINFO")
			}
		})
	}
}

// output returns the output of a program.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, livetest.Tool(t, name), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if name != "eu-stack" { // eu-stack exits with 1 if it does not recognize the end of a stack
		require.NoError(t, err, "%s\n%s", cmd, stderr.String())
	}
	return string(out)
}

// fromThreads removes gdb's messages that precede the output of the script.
func fromThreads(text string) string {
	_, rest, _ := strings.Cut(text, "\nthread ")
	rest, _, _ = strings.Cut(rest, "\n[Inferior ")
	if k, standard := xsave.Host()[5], (xsave.Place{Offset: 1088, Size: 64}); k != standard {
		// In a process, gdb up to 13 reads k0 to k7 at the places of Intel's processors, and shows other registers (TestWriteCoreOfProcessors
		// covers them).
		rest = regexp.MustCompile(`(?m)^k[0-7] .*\n`).ReplaceAllString(rest, "")
	}
	// gdb 13 warns about unknown components in the XSAVE area of newer processors, but reads those that it knows.
	return regexp.MustCompile("warning: Unexpected size of section `.reg-xstate/\\d+' in core file.\n").ReplaceAllString(rest, "")
}

// frameLines returns the lines of eu-stack's output for threads and frames.
func frameLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "TID") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func requireSameLines(t *testing.T, want, got string) {
	t.Helper()
	require.NotEmpty(t, want)
	require.Equal(t, strings.Split(strings.TrimSpace(want), "\n"), strings.Split(strings.TrimSpace(got), "\n"))
}

// TestWriteCoreThenCut requires that the remaining part of a truncated core can be read.
func TestWriteCoreThenCut(t *testing.T) {
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	for _, path := range []string{recordedCore(t, p, Options{Record: true}, Minimal), ownCore(t, p)} {
		whole := openCore(t, path)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, info.Size()/2))
		cut := openCore(t, path)
		require.Equal(t, registersOf(whole.threads[0]), registersOf(cut.threads[0]))
		require.Equal(t, whole.maps, cut.maps)
		require.Regexp(t, `^the core is cut short: it has \d+ of its \d+ bytes`, strings.Join(cut.Notes, "\n"))
	}
}

// TestWriteCoreInterrupted requires that canceling leaves no file, and that the process resumes.
func TestWriteCoreInterrupted(t *testing.T) {
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	for _, compress := range []bool{false, true} {
		target, err := Capture(p.PID, Options{Record: true, Hold: true})
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(context.Background())
		enough := errors.New("enough")
		dir := t.TempDir()
		last := uint64(0)
		_, err = target.WriteCore(ctx, filepath.Join(dir, "core"), RecordOptions{Memory: All, Compress: compress, Progress: func(written, of uint64) {
			require.GreaterOrEqual(t, written, last)
			require.LessOrEqual(t, written, of)
			if last = written; written > of/2 {
				cancel(enough)
			}
		}})
		require.ErrorIs(t, err, enough)
		require.NotZero(t, last)
		target.Close()
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
		p.AwaitPause(t)
	}
}

// TestWriteCoreIsWhole requires that a core appears either complete or not at all.
func TestWriteCoreIsWhole(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "1")
	s, err := Open(context.Background(), p.PID)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() })
	dir := t.TempDir()
	names := func() (list []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	require.NoError(t, writeCore(s, filepath.Join(dir, "core"), p.PID))
	require.Equal(t, []string{"core"}, names())
	before, err := os.ReadFile(filepath.Join(dir, "core"))
	require.NoError(t, err)
	require.NoError(t, writeCore(s, filepath.Join(dir, "core"), p.PID), "over one that is there")
	again, err := os.ReadFile(filepath.Join(dir, "core"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, again), "nothing has moved")
	require.ErrorIs(t, writeCore(s, filepath.Join(dir, "none", "core"), p.PID), os.ErrNotExist)
	require.Equal(t, []string{"core"}, names())

	// An error must be returned at any position at which the disk becomes full.
	m := momentOf(t, s)
	for room := 0; room < 1<<16; room += 4000 {
		require.ErrorIs(t, m.write(&narrow{room: room}), unix.ENOSPC)
	}
	require.NoError(t, m.write(&narrow{room: 1 << 30}))
	require.NoError(t, s.Detach())
	require.Error(t, writeCore(s, filepath.Join(dir, "late"), p.PID))
	require.Equal(t, []string{"core"}, names())
}

// momentOf returns the state of the process at a session's current stop.
func momentOf(t *testing.T, s *Session) *coreMoment {
	t.Helper()
	target, err := s.Target()
	require.NoError(t, err)
	about, err := readAbout(s.pid)
	require.NoError(t, err)
	return &coreMoment{ctx: context.Background(), about: about, maps: target.maps, memory: target, arch: arch, threads: []coreThread{{s.pid, newRawRegisters(arch)}}}
}

// narrow is a disk with room for a number of bytes.
type narrow struct{ room int }

func (n *narrow) WriteAt(p []byte, _ int64) (int, error) {
	if n.room -= len(p); n.room < 0 {
		return 0, unix.ENOSPC
	}
	return len(p), nil
}

func (n *narrow) Truncate(int64) error { return nil }

// TestWriteCoreOfManyMappings requires that unreadable memory is omitted, and that a core has all mappings, also if the ELF header cannot hold their
// number.
func TestWriteCoreOfManyMappings(t *testing.T) {
	m := &coreMoment{ctx: context.Background(), about: &coreAbout{pid: 7, name: "many"}, arch: arch, threads: []coreThread{{7, newRawRegisters(arch)}}, memory: newCopied([]span{{0x10000000, bytes.Repeat([]byte{5}, 4096)}}, "not there")}
	for i := range machine.Addr(70000) {
		start := 0x10000000 + i*0x3000
		m.maps = append(m.maps, machine.Mapping{Start: start, End: start + 0x2000, Read: true, Write: true})
	}
	path := filepath.Join(t.TempDir(), "core")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, errors.Join(m.write(f), f.Close()))
	core := openCore(t, path)
	require.Empty(t, core.Notes)
	// The first page can be read and the second cannot. All other mappings are read completely or not at all.
	require.Len(t, core.maps, 70001)
	require.Equal(t, 7, core.PID)
	b := make([]byte, 4096)
	require.NoError(t, core.ReadMemory(b, 0x10000000))
	require.Equal(t, bytes.Repeat([]byte{5}, 4096), b)
	require.ErrorContains(t, core.ReadMemory(b, 0x10001000), "not in the core")
	require.ErrorContains(t, core.ReadMemory(b, 0x10003000), "not in the core")
}

// TestKeptParts requires that a core keeps the right parts of each kind of mapping.
func TestKeptParts(t *testing.T) {
	const page = machine.Addr(elfcore.Page)
	entries := []byte{}
	for _, e := range []uint64{0, 0, 0xa1 << 56, 0x81 << 56, 0x40 << 56, 0, 0xa1 << 56} { // entries of the pages from 0x10000
		entries = binary.LittleEndian.AppendUint64(entries, e)
	}
	m := &coreMoment{pages: bytes.NewReader(append(make([]byte, 8*16), entries...))}
	all := machine.Mapping{Start: 16 * page, End: 23 * page, Read: true, Inode: 1, Path: "/lib"}
	with := func(f func(m *machine.Mapping)) machine.Mapping {
		r := all
		f(&r)
		return r
	}
	whole, none := []keptPart{{16 * page, 23 * page, true}}, []keptPart{{16 * page, 23 * page, false}}
	for _, c := range []struct {
		of   machine.Mapping
		Want []keptPart
	}{
		{all, []keptPart{{16 * page, 17 * page, true}, {17 * page, 19 * page, false}, {19 * page, 21 * page, true}, {21 * page, 23 * page, false}}},
		{with(func(m *machine.Mapping) { m.Offset = 4096 }), []keptPart{{16 * page, 19 * page, false}, {19 * page, 21 * page, true}, {21 * page, 23 * page, false}}},
		{with(func(m *machine.Mapping) { m.Write = true }), whole},
		{with(func(m *machine.Mapping) { m.Inode, m.Path = 0, "" }), whole},
		{with(func(m *machine.Mapping) { m.Share = true }), none},
		{with(func(m *machine.Mapping) { m.Share, m.Path = true, "/memfd:jit (deleted)" }), whole},
		{with(func(m *machine.Mapping) { m.Read = false }), none},
		{with(func(m *machine.Mapping) { m.Inode, m.End = 0, m.Start+maxKept+page }), []keptPart{{16 * page, 16*page + maxKept + page, false}}},
		{with(func(m *machine.Mapping) { m.End = 24 * page }), []keptPart{{16 * page, 24 * page, true}}}, // the last page has no entry
	} {
		require.Equal(t, c.Want, m.kept(c.of), "%+v", c.of)
	}
	require.True(t, m.untouched(machine.Mapping{}, 16*page, 2*elfcore.Page))
	require.False(t, m.untouched(machine.Mapping{}, 16*page, 3*elfcore.Page))
	require.False(t, m.untouched(machine.Mapping{Path: "[vvar]"}, 16*page, elfcore.Page))
	require.False(t, (&coreMoment{}).untouched(machine.Mapping{}, 16*page, elfcore.Page))
}

// TestWriteCoreHasNoBreakpoints requires that a core does not contain a session's breakpoints.
func TestWriteCoreHasNoBreakpoints(t *testing.T) {
	path, site, _ := sitesProgram(t)
	s, _ := launch(t, path, "plain", "10")
	before := make([]byte, 64)
	target, err := s.Target()
	require.NoError(t, err)
	require.NoError(t, target.ReadMemory(before, site))
	require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: true}))
	e, err := s.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, site, e.At)
	changed := make([]byte, 1)
	require.NoError(t, live(s.pid).ReadMemory(changed, site))
	require.Equal(t, byte(0xcc), changed[0])
	file := filepath.Join(t.TempDir(), "core")
	require.NoError(t, writeCore(s, file, e.Thread.ID))
	core := openCore(t, file)
	after := make([]byte, 64)
	require.NoError(t, core.ReadMemory(after, site))
	require.Equal(t, before, after)
	require.Equal(t, site, mustPC(t, core.Threads()[0]))
	require.Same(t, any(core.file), any(regionAt(t, core, site).from), "the page is one of the process's own now")
}
