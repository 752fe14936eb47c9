package ptrace

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestCorruptList requires that each kind of corruption is reported quickly, and that the valid entries before it are kept.
func TestCorruptList(t *testing.T) {
	for _, c := range []struct {
		how     string
		entries int
		broken  string
		bad     map[int]string // reasons of the entries that cannot be used
	}{
		{"loop", 2, `^entry 2 is again the entry at 0x[0-9a-f]+: the list is a loop$`, nil},
		{"wild", 2, `^entry 2 cannot be read: 32 bytes at 0x5ead00000000: not mapped$`, nil},
		{"wildfile", 2, `^$`, map[int]string{1: "it points outside of memory"}},
		{"hugesize", 2, `^$`, map[int]string{1: "it claims 9223372036854775807 bytes"}},
		{"badmagic", 2, `^$`, map[int]string{1: "it does not point to a 64-bit ELF object"}},
		// Both entries refer to the same truncated object.
		{"truncated", 2, `^$`, map[int]string{0: "its section headers lie outside of it", 1: "its section headers lie outside of it"}},
	} {
		t.Run(c.how, func(t *testing.T) {
			p := livetest.C(t, "corrupt.c", nil, c.how)
			before := states(t, p.PID)
			look := func(target *Target, err error) {
				t.Helper()
				require.NoError(t, err)
				defer target.Close()
				require.Len(t, target.Registries, 1)
				r := target.Registries[0]
				require.Regexp(t, c.broken, r.Broken)
				require.Len(t, r.Entries, c.entries)
				for n, e := range r.Entries {
					require.Equal(t, c.bad[n], e.Bad)
				}
			}
			look(Capture(p.PID, Options{}))
			look(Capture(p.PID, Options{Hold: true}))
			look(Survey(p.PID, Options{}))
			requireStates(t, p.PID, before)
		})
	}
}

// listed holds the addresses of an object in a process with 20,000 objects, as read from /proc/PID/mem.
type listed struct{ entry, start, size uint64 }

func walkList(t *testing.T, pid int, descriptor machine.Addr) []listed {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	defer f.Close()
	word := func(addr uint64) uint64 {
		var b [8]byte
		_, err := f.ReadAt(b[:], int64(addr))
		require.NoError(t, err)
		return binary.LittleEndian.Uint64(b[:])
	}
	var list []listed
	for at := word(uint64(descriptor) + 16); at != 0; at = word(at) {
		list = append(list, listed{entry: at, start: word(at + 16), size: word(at + 24)})
	}
	return list
}

func TestManyObjects(t *testing.T) {
	livetest.Slow(t)
	const n = 20000
	p := livetest.ManyObjects(t, n)
	target := capture(t, p.PID, Options{})
	require.Len(t, target.Registries, 1)
	r := target.Registries[0]
	require.Empty(t, r.Broken)
	require.Len(t, r.Entries, n)
	read := 0
	var code []codeRange
	for i, want := range walkList(t, p.PID, r.Descriptor) {
		e := r.Entries[i]
		require.Equal(t, machine.Addr(want.entry), e.Addr)
		require.Equal(t, machine.Addr(want.start), e.Start)
		require.Equal(t, want.size, e.Size)
		require.Empty(t, e.Bad)
		require.Len(t, e.code, 1, "one code section")
		code = append(code, e.code[0])
		if e.image != nil {
			read++
		}
	}
	require.Len(t, code, n)
	require.Positive(t, read, "the frame on the stack needs its object")
	require.Less(t, read, 100, "and no more than what words on the stack point into")
	for i := 0; i < n; i += 97 {
		c := code[i]
		require.Same(t, r.Entries[i], r.at(c.start))
		require.Same(t, r.Entries[i], r.at(c.end-1))
		require.Nil(t, r.at(c.end))
		require.Nil(t, r.at(c.start-1))
	}
	// The return addresses of the process are in the middle object, whose code has called another function.
	middle := 0
	stack := make([]byte, 8)
	sp, err := target.Threads()[0].Registers.Addr(machine.AMD64.SP)
	require.NoError(t, err)
	for at := sp; target.ReadMemory(stack, at) == nil; at += 8 {
		if e := r.at(machine.Addr(binary.LittleEndian.Uint64(stack))); e == r.Entries[n-1-n/2] {
			middle++
		}
	}
	require.Positive(t, middle)
	img, reason := target.JITObjectAt(code[n-1-n/2].start)
	require.NotNil(t, img, reason)
	require.True(t, img.Registered)
	_, reason = target.JITObjectAt(code[3].start)
	require.Equal(t, "it was not read: no return address pointed into it", reason)

	all, err := Survey(p.PID, Options{})
	require.NoError(t, err)
	defer all.Close()
	for _, e := range all.Registries[0].Entries {
		require.NotNil(t, e.Image())
	}
	require.Empty(t, all.Threads())
}

// TestNewestEntry requires that, if the code of entries overlaps because a JIT has reused memory, the newest entry is used: the one nearest to the
// head of the list.
func TestNewestEntry(t *testing.T) {
	newest, older, oldest, apart := &Entry{Addr: 1}, &Entry{Addr: 2}, &Entry{Addr: 3}, &Entry{Addr: 4}
	r := &Registry{Entries: []*Entry{newest, older, oldest, apart}}
	oldest.code = []codeRange{{0x1000, 0x2000, oldest, 0}}
	older.code = []codeRange{{0x1800, 0x1900, older, 0}}
	newest.code = []codeRange{{0x1000, 0x1820, newest, 0}}
	apart.code = []codeRange{{0x5000, 0x5010, apart, 0}}
	r.order()
	for addr, want := range map[machine.Addr]*Entry{
		0xfff: nil, 0x1000: newest, 0x17ff: newest, 0x1800: newest, 0x181f: newest, 0x1820: older, 0x18ff: older,
		0x1900: oldest, 0x1fff: oldest, 0x2000: nil, 0x5000: apart, 0x5010: nil, 0: nil, 1<<64 - 1: nil,
	} {
		require.Same(t, want, r.at(addr), "%v", addr)
	}
}

// TestScan requires that an unregistered, relocated section in memory is found. The address of its function must be the one that the host prints.
func TestScan(t *testing.T) {
	p := livetest.Host(t, 14, "orcrt", "block")
	jf := printed(t, p, "jf @")
	for _, try := range []func() (*Target, error){
		func() (*Target, error) { return Capture(p.PID, Options{}) },
		func() (*Target, error) { return Survey(p.PID, Options{}) },
	} {
		target, err := try()
		require.NoError(t, err)
		defer target.Close()
		require.True(t, target.Scanned)
		require.False(t, target.ScanCut)
		require.True(t, target.HasJITCode())
		entries := 0
		for _, r := range target.Registries {
			entries += len(r.Entries)
		}
		require.Zero(t, entries)
		hits := 0
		for _, f := range target.Found {
			require.Equal(t, uint32(3), binary.LittleEndian.Uint32(f.Data))
			first := min(len(f.Data), 256)
			require.Equal(t, f.Data[:first], peek(t, p.PID, f.Addr, first))
			if binary.LittleEndian.Uint64(f.Data[16:]) == jf && binary.LittleEndian.Uint64(f.Data[40:]) == 31 {
				hits++ // the only function, and the id of its record
			}
		}
		require.Positive(t, hits)
	}
}

// TestScanFindsNothing requires that nothing is found if the JIT linker does not keep the section.
func TestScanFindsNothing(t *testing.T) {
	p := livetest.Host(t, 19, "orc", "block")
	target := capture(t, p.PID, Options{})
	require.True(t, target.Scanned)
	jf := printed(t, p, "jf @")
	for _, f := range target.Found {
		require.NotEqual(t, jf, binary.LittleEndian.Uint64(f.Data[16:]))
	}
	q := livetest.C(t, "nojit.c", nil)
	target = capture(t, q.PID, Options{})
	require.False(t, target.HasJITCode())
	require.False(t, target.Scanned)
	require.Empty(t, target.Registries)
}

// printed returns a number in hexadecimal that a process has printed after a word.
func printed(t *testing.T, p *livetest.Process, after string) uint64 {
	t.Helper()
	_, text, found := strings.Cut(p.Output(), after)
	require.True(t, found, p.Output())
	v, err := strconv.ParseUint(strings.Fields(text)[0], 0, 64)
	require.NoError(t, err)
	return v
}

func TestCandidates(t *testing.T) {
	good := make([]byte, 96)
	binary.LittleEndian.PutUint32(good[16:], 3)
	binary.LittleEndian.PutUint32(good[20:], 1)
	binary.LittleEndian.PutUint64(good[32:], 0x4000)
	executable := func(addr machine.Addr) bool { return addr == 0x4000 }
	require.Equal(t, []int{16}, candidates(good, binary.LittleEndian, executable))
	require.Empty(t, candidates(good[:16+39], binary.LittleEndian, executable), "cut")
	for at, v := range map[int]byte{16: 2, 17: 1, 19: 1, 20: 0, 32: 1, 39: 0x80} {
		bad := append([]byte(nil), good...)
		bad[at] = v
		require.Empty(t, candidates(bad, binary.LittleEndian, executable), "byte %d", at)
	}
	require.Empty(t, candidates(good[4:], binary.LittleEndian, executable), "not aligned")
}

// TestSurvey requires that Survey does not stop a process: the process is never traced, and its threads are not interrupted.
func TestSurvey(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "3", "0", "3")
	p.Quiet(t, 0)
	before, switches := states(t, p.PID), procFile(t, "%d/task/%d/schedstat", p.PID, p.PID)
	for range 20 {
		target, err := Survey(p.PID, Options{})
		require.NoError(t, err)
		require.Zero(t, target.Pause)
		require.Equal(t, before, states(t, p.PID))
		target.Close()
	}
	require.Equal(t, switches, procFile(t, "%d/task/%d/schedstat", p.PID, p.PID), "its first thread ran")
}
