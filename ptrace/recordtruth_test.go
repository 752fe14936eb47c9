package ptrace

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// snapshot returns all memory of a waiting process, by pages.
func snapshot(t *testing.T, pid int) map[machine.Addr][]byte {
	t.Helper()
	maps, err := readMaps(pid)
	require.NoError(t, err)
	pages := map[machine.Addr][]byte{}
	for _, r := range maps {
		for at := r.Start; r.Read && at < r.End; at += elfcore.Page {
			b := make([]byte, elfcore.Page)
			if live(pid).ReadMemory(b, at) == nil {
				pages[at] = b
			}
		}
	}
	return pages
}

// requireTrue requires that all memory that a core provides, from the core itself or from files, equals the memory of the process. It returns the
// number of bytes that the core itself contains.
func requireTrue(t *testing.T, want map[machine.Addr][]byte, core *Target) (held int) {
	t.Helper()
	for _, r := range core.source.(*coreMemory).regions {
		if r.from == nil {
			continue
		}
		for at := r.start; at < r.end; {
			page := at &^ (elfcore.Page - 1)
			n := min(elfcore.Page-int(at-page), int(r.end-at))
			got := make([]byte, n)
			if core.ReadMemory(got, at) == nil && want[page] != nil {
				if !bytes.Equal(want[page][at-page:][:n], got) {
					m, _ := core.Mapping(at)
					require.Failf(t, "not what the process had", "%v, %d bytes, in the core %v, of %s", at, n, r.from == core.core.file, m.Path)
				}
				if r.from == core.core.file {
					held += n
				}
			}
			at += machine.Addr(n)
		}
	}
	return held
}

// TestRecordedMomentIsTrue requires that a core contains the state of the process at the capture, whatever the process does afterwards.
func TestRecordedMomentIsTrue(t *testing.T) {
	withoutRseq(t)
	for name, args := range map[string][]string{"its file is there": nil, "its file is gone": {"deleted"}} {
		t.Run(name, func(t *testing.T) {
			p := program(t, "moment.c", []string{"-pie", "-fPIE", "-Wl,-z,relro,-z,now"}, args...)
			p.AwaitPause(t)
			for how, o := range map[string]Options{"held": {Record: true, Hold: true}, "let go": {Record: true}} {
				before := snapshot(t, p.PID)
				target, err := Capture(p.PID, o)
				require.NoError(t, err)
				t.Cleanup(target.Close)
				require.True(t, target.Scanned)
				require.True(t, len(target.Found) == 1)
				if how == "let go" {
					p.SignalInPause(t, syscall.SIGUSR1)
				}
				path := filepath.Join(t.TempDir(), "core")
				_, err = target.WriteCore(context.Background(), path, RecordOptions{Memory: Minimal, Replace: true})
				require.NoError(t, err)
				core := openCore(t, path)
				require.Empty(t, core.Notes)
				t.Log(how, requireTrue(t, before, core))
				require.Equal(t, target.Found[0].Addr, core.Found[0].Addr)
				thin := openCore(t, thinCore(t, path))
				require.Empty(t, thin.Notes)
				t.Log("thin", requireTrue(t, before, thin))
			}
			before := snapshot(t, p.PID)
			large := ownCore(t, p)
			requireTrue(t, before, openCore(t, large))
			thin := openCore(t, thinCore(t, large))
			require.Empty(t, thin.Notes)
			t.Log("thin of large", requireTrue(t, before, thin))
		})
	}
}

// TestRecordedMomentIsOne requires that all memory in a core of a running process is of the same moment.
func TestRecordedMomentIsOne(t *testing.T) {
	livetest.Slow(t)
	p := program(t, "agree.c", nil)
	var cells [][]machine.Addr
	var turns []machine.Addr
	for line := range strings.Lines(p.Output()) {
		words := strings.Fields(line)
		var list []machine.Addr
		for _, w := range words[1:] {
			n, err := strconv.ParseUint(w, 0, 64)
			require.NoError(t, err)
			list = append(list, machine.Addr(n))
		}
		switch words[0] {
		case "cells":
			cells = append(cells, list)
		case "turns":
			turns = list
		}
	}
	require.Len(t, cells, 3)
	held, there, stacks := 0, 0, 0
	path := filepath.Join(t.TempDir(), "core")
	rounds := livetest.Times(25, 60)
	for range rounds {
		target, err := Capture(p.PID, Options{Record: true})
		require.NoError(t, err)
		_, err = target.WriteCore(context.Background(), path, RecordOptions{Memory: Minimal, Replace: true})
		require.NoError(t, err)
		target.Close()
		core, err := OpenCore(path, CoreOptions{})
		require.NoError(t, err)
		require.Empty(t, core.Notes)
		for _, list := range cells {
			var numbers []uint64
			for _, at := range list {
				b := make([]byte, 8)
				if core.ReadMemory(b, at) == nil {
					numbers = append(numbers, binary.LittleEndian.Uint64(b))
				}
			}
			held += len(numbers)
			require.NotEmpty(t, numbers)
			for i := range numbers[1:] {
				require.LessOrEqual(t, numbers[i+1], numbers[i], "%v", numbers)
			}
			require.LessOrEqual(t, numbers[0]-numbers[len(numbers)-1], uint64(1), "%v", numbers)
		}
		var which [2]byte
		var b [1]byte
		if core.ReadMemory(which[:], turns[0]) == nil && which[0] == which[1] && core.ReadMemory(b[:], turns[1]) == nil {
			there++
			require.Equal(t, which[0], b[0])
		}
		for _, th := range core.Threads() {
			sp, err := th.Registers.Addr(machine.AMD64.SP)
			require.NoError(t, err)
			require.NoError(t, core.ReadMemory(make([]byte, 8), sp), "the stack of each thread is there")
			stacks++
		}
		core.Close()
	}
	t.Log(held, there, stacks)
	require.Greater(t, held, rounds*3*4)
}

// TestRegisteredAnew requires that, if an object was unregistered and another one was registered at the same address, the object that was read is no
// longer valid, although the descriptor is the same.
func TestRegisteredAnew(t *testing.T) {
	object := hostObject(t)
	c, _ := smallCore(t, object)
	b := c.bytes()
	target := readBytes(t, b)
	r := target.Registries[0]
	e := r.Entries[0]
	require.NotNil(t, e.Image(), e.Bad)
	require.True(t, r.holds(e, target.source))
	torn := *e // read while the memory was in use for something else
	torn.content = &content{start: e.Start, size: e.Size, parts: newCopied([]span{{e.Start, slices.Clone(e.content.spans()[0].data)}}, "")}
	torn.content.parts.ranges[0].data[64] ^= 1
	require.False(t, r.holds(&torn, target.source))
	at := bytes.Index(b, object)
	sections := at + int(binary.LittleEndian.Uint64(object[40:]))
	for row := sections; row+elfcore.SectionSize <= len(b); row += elfcore.SectionSize {
		if binary.LittleEndian.Uint64(b[row+8:])&uint64(elf.SHF_EXECINSTR) != 0 {
			binary.LittleEndian.PutUint64(b[row+16:], 0x7000) // the object has another load address
			break
		}
	}
	require.True(t, r.unchanged(target.source))
	again := &Entry{Addr: e.Addr, Start: e.Start, Size: e.Size, raw: e.raw, table: e.table, extents: e.extents}
	again.read(target.source, target.arch, 1)
	require.NotNil(t, again.image, again.Bad)
	require.False(t, r.holds(again, target.source))
}

// TestRecordEntryAcrossPages requires that a core contains an object whose list entry crosses a page boundary.
func TestRecordEntryAcrossPages(t *testing.T) {
	c, _ := smallCore(t, hostObject(t))
	const entry = 0x20000ff0
	was, is := binary.LittleEndian.AppendUint64(nil, smallEntry), binary.LittleEndian.AppendUint64(nil, entry)
	for i := range c.segments {
		s := &c.segments[i]
		if at := bytes.Index(s.data, was); s.Vaddr < smallEntry && at >= 0 {
			copy(s.data[at:], is)
		}
		if s.Vaddr == smallEntry {
			s.Vaddr, s.Memsz, s.Filesz = 0x20000000, 2*elfcore.Page, 2*elfcore.Page
			s.data = slices.Concat(make([]byte, entry-0x20000000), s.data, make([]byte, elfcore.Page))[:2*elfcore.Page]
		}
	}
	large := readBytes(t, c.bytes())
	require.Len(t, large.Registries[0].Entries, 1)
	require.Empty(t, large.Registries[0].Broken)
	small := thinOf(t, large)
	require.NotNil(t, small)
	require.Empty(t, small.Registries[0].Broken)
	require.Len(t, small.Registries[0].Entries, 1)
	require.Equal(t, objectBytes(t, large.Registries[0].Entries[0]), objectBytes(t, small.Registries[0].Entries[0]))
}

// TestRecordNoAccess requires that memory without access rights, such as the guard of a stack, is unavailable for that reason, because no larger core
// would contain it.
func TestRecordNoAccess(t *testing.T) {
	c, _ := smallCore(t, nil)
	c.load(0x20000000, 0, nil, elfcore.Page)
	c.note(ownOwner, ntMemory, binary.LittleEndian.AppendUint64(nil, recordedModes[Minimal]))
	err := readBytes(t, c.bytes()).ReadMemory(make([]byte, 8), 0x20000000)
	require.EqualError(t, err, "8 bytes at 0x20000000: not in the core: the process had no access to it (PROT_NONE of mprotect(2))")
}

// TestRecordChurn requires that a core of a process which repeatedly loads and unloads an object, and ends and starts threads, can be read, and
// contains the objects that were registered at the moment of the capture.
func TestRecordChurn(t *testing.T) {
	livetest.Slow(t)
	object := livetest.PICObject(t, 19, "tick.ll")
	p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: 1 << 30, Unload: 1})
	begin()
	objects, places := 0, map[machine.Addr]bool{}
	for range 200 {
		target, err := Capture(p.PID, Options{Record: true})
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "core")
		_, err = target.WriteCore(context.Background(), path, RecordOptions{Memory: Minimal, Replace: true})
		require.NoError(t, err)
		core := openCore(t, path)
		require.Empty(t, core.Notes)
		require.Equal(t, target.PID, core.PID)
		require.Len(t, core.Registries, len(target.Registries))
		for i, r := range core.Registries {
			was := target.Registries[i]
			require.Equal(t, []any{was.Broken, len(was.Entries)}, []any{r.Broken, len(r.Entries)})
			for n, e := range r.Entries {
				if was.Entries[n].image != nil {
					require.Empty(t, e.Bad)
					require.Equal(t, objectBytes(t, was.Entries[n]), objectBytes(t, e)) // if they differ, the message shows both
					objects, places[e.Start] = objects+1, true
				}
			}
		}
		for i, th := range core.Threads() {
			require.Equal(t, target.Threads()[i].ID, th.ID)
			sp, err := th.Registers.Addr(machine.AMD64.SP)
			require.NoError(t, err)
			require.NoError(t, core.ReadMemory(make([]byte, 8), sp))
		}
		target.Close()
		core.Close()
	}
	t.Logf("%d objects at %d places", objects, len(places))
}

func TestOrderedMappings(t *testing.T) {
	file := machine.Mapping{Start: 0x3000, End: 0x6000, Offset: 0x1000, Inode: 1}
	require.Equal(t, []machine.Mapping{{Start: 0x1000, End: 0x4000}, {Start: 0x4000, End: 0x6000, Offset: 0x2000, Inode: 1}, {Start: 0x8000, End: 0x9000}},
		ordered([]machine.Mapping{file, {Start: 0x1000, End: 0x4000}, {Start: 0x2000, End: 0x4000}, {Start: 0x8000, End: 0x9000}}))
}

// TestRecordWithoutFirstThread requires that a process whose first thread has ended can be recorded, and that the data which the core lacks is
// reported.
func TestRecordWithoutFirstThread(t *testing.T) {
	p := program(t, "leader.c", nil)
	p.Signal(t, syscall.SIGUSR1)
	require.Eventually(t, func() bool { return system.Ended(p.PID, p.PID) }, livetest.Patience, time.Millisecond)
	target, err := Capture(p.PID, Options{Record: true})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	path := filepath.Join(t.TempDir(), "core")
	out, err := target.WriteCore(context.Background(), path, RecordOptions{Memory: Minimal})
	require.NoError(t, err)
	require.Equal(t, 1, out.Threads)
	require.Equal(t, []string{fmt.Sprintf("thread %d: the thread has ended, and the process continues without it", p.PID)}, out.LeftOut)
	core := openCore(t, path)
	require.Equal(t, p.PID, core.PID)
	require.Len(t, core.Threads(), 1)
}

// objectBytes returns the bytes of an object that was read, in hexadecimal.
func objectBytes(t *testing.T, e *Entry) string {
	t.Helper()
	b := make([]byte, e.Size)
	_, err := e.content.ReadAt(b, 0)
	require.NoError(t, err)
	return hex.EncodeToString(b)
}
