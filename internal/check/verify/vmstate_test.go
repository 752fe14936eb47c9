package verify

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
)

// page is the memory of an exit, at 0x10000.
type page [protocol.PageSize]byte

const pageStart = machine.Addr(0x10000)

func (p *page) ReadMemory(b []byte, addr machine.Addr) error {
	if addr < pageStart || addr+machine.Addr(len(b)) > pageStart+protocol.PageSize {
		return fmt.Errorf("%v cannot be read", addr)
	}
	copy(b, p[addr-pageStart:])
	return nil
}

// runOf returns a run of n states. Instruction k is at position k % loop in a loop whose local 0 is local(k), and stores the words of stores[k].
func runOf(t *testing.T, n, loop int, local func(k int) int, stores map[int]map[int]uint64) *entryRun {
	t.Helper()
	memory := protocol.NewOverlay(&page{}, []machine.Mapping{{Start: pageStart, End: pageStart + protocol.PageSize, Read: true, Write: true}}, 8)
	run := &entryRun{start: "loop @ 0", memory: memory}
	for k := range n {
		run.states = append(run.states, vmState{&protocol.Stopped{Frames: frameAt(k%loop, local(k))}, len(run.writes)})
		for at, value := range stores[k] {
			word := binary.LittleEndian.AppendUint64(nil, value)
			run.writes = append(run.writes, vmWrite{k, pageStart + machine.Addr(at), word})
			require.NoError(t, memory.Write(word, pageStart+machine.Addr(at)))
		}
	}
	return run
}

func frameAt(position, local int) []protocol.Frame {
	at, zero := int64(position), int64(0)
	return []protocol.Frame{{Method: "loop", Position: &at, Resume: frame.Reexecute, Locals: []protocol.Value{{Index: &zero, Type: "i32", Text: fmt.Sprint(local), Bits: protocol.Word(fmt.Sprintf("%#x", local))}}}}
}

func compareExit(run *entryRun, now *page, position, local int) *VMState {
	c := &vmComparison{run: run, raw: frameAt(position, local), vm: &frame.VM{}, memory: now, order: binary.LittleEndian, ids: map[machine.Addr]int64{},
		follow: func(uint64) (machine.Addr, bool) { return 0, false }}
	return c.compare(func(machine.Addr) string { return "" })
}

// TestStateInLongLoop requires that the state of an exit is found after many states that differ little.
func TestStateInLongLoop(t *testing.T) {
	run := runOf(t, 3000, 3, func(k int) int { return k / 3 }, nil)
	require.Equal(t, &VMState{Start: "loop @ 0", Steps: 2701, At: "loop @ 1"}, compareExit(run, &page{}, 1, 900))
	run.next = 0
	state := compareExit(run, &page{}, 1, 5000)
	require.True(t, state.different())
	require.Empty(t, state.Why)
	require.Equal(t, []int{maxCandidates - 1, 1000 - maxCandidates}, []int{state.Others, state.NotCompared})
}

// TestStatesWithEqualFrames requires no verdict if the bound excludes a state that the exit may have.
func TestStatesWithEqualFrames(t *testing.T) {
	stores := map[int]map[int]uint64{}
	for k := range 1000 {
		stores[k] = map[int]uint64{8: uint64(k) + 1}
	}
	run := runOf(t, 1000, 1, func(int) int { return 7 }, stores)
	now := &page{}
	binary.LittleEndian.PutUint64(now[8:], 200)
	require.Equal(t, &VMState{Start: "loop @ 0", Steps: 200, At: "loop @ 0"}, compareExit(run, now, 0, 7))
	run.next = 0
	binary.LittleEndian.PutUint64(now[8:], 900)
	state := compareExit(run, now, 0, 7)
	require.False(t, state.different())
	require.Equal(t, "over 256 states of the run have equal frames; only the memory of the first 256 was compared", state.Why)
}

// TestEarlyStore requires that a store that compiled code makes earlier than the interpreter is a difference that names the instruction.
func TestEarlyStore(t *testing.T) {
	run := runOf(t, 10, 10, func(int) int { return 0 }, map[int]map[int]uint64{2: {8: 5}, 6: {16: 0x0102}, 7: {16: 0x0304}})
	now := &page{}
	binary.LittleEndian.PutUint64(now[8:], 5)
	require.Equal(t, &VMState{Start: "loop @ 0", Steps: 4, At: "loop @ 4"}, compareExit(run, now, 4, 0))
	run.next = 0
	binary.LittleEndian.PutUint64(now[16:], 0x0304)
	state := compareExit(run, now, 4, 0)
	require.Len(t, state.Differences, 1)
	require.Equal(t, "memory at 0x10010 is 0403, should be 0000: the store by loop @ 7 is too early", state.Differences[0].String())
	now[16] = 9
	state = compareExit(run, now, 4, 0)
	require.Len(t, state.Differences, 1)
	require.Equal(t, "memory at 0x10010 is 0903, should be 0000", state.Differences[0].String())
}

// TestUnreadableState requires no verdict if the only words that may differ cannot be read at the exit.
func TestUnreadableState(t *testing.T) {
	run := runOf(t, 10, 10, func(int) int { return 0 }, map[int]map[int]uint64{2: {8: 5}, 3: {8: 0}})
	c := &vmComparison{run: run, raw: frameAt(4, 0), vm: &frame.VM{}, memory: protocol.NewOverlay(nil, nil, 8), order: binary.LittleEndian}
	c.memory.(*protocol.Overlay).MakeUnreadable()
	state := c.compare(func(machine.Addr) string { return "" })
	require.False(t, state.different())
	require.Equal(t, "memory that the run from loop @ 0 had stored cannot be read at the exit", state.Why)
}

// TestPartOfWord requires that a difference in the last bytes of an object, which are less than a word, is listed.
func TestPartOfWord(t *testing.T) {
	pairs := &withComparison{}
	pairs.diffs.add(pageStart, make([]byte, 4), make([]byte, 4), make([]byte, 4), []byte{0, 7, 0, 0})
	c := &vmComparison{run: runOf(t, 1, 1, func(int) int { return 0 }, nil)}
	list := c.named(1, pairs, func(machine.Addr) string { return "" })
	require.Len(t, list, 1)
	require.Equal(t, "memory at 0x10001 is 07, should be 00", list[0].String())
}

// TestConcludeAfterRelease requires that a difference in memory that was compared at the return does not count if the process was released in the
// meantime.
func TestConcludeAfterRelease(t *testing.T) {
	for _, c := range []struct {
		released, atReturn bool
		status             string
	}{{false, false, Different}, {false, true, Different}, {true, false, Different}, {true, true, NotComparable}} {
		out := &Verified{Status: Different, VMState: &VMState{Differences: []VMDifference{{Place: "memory at 0x10"}}, atReturn: c.atReturn}}
		out.conclude(c.released)
		require.Equal(t, c.status, out.Status, "%+v", c)
		require.Equal(t, c.status == Different, out.VMState.different(), "%+v", c)
	}
}

// TestBoundsOfEntryRun requires that a run of few instructions with many frames ends before its states use too much memory.
func TestBoundsOfEntryRun(t *testing.T) {
	var frames []protocol.Frame
	for range 1000 {
		frames = append(frames, frameAt(1, 2)...)
	}
	run := &entryRun{}
	for run.full() == "" {
		run.add(&protocol.Stopped{Frames: frames})
	}
	require.Equal(t, "only the first 2097152 values of a run's states are compared", run.full())
	require.Len(t, run.states, maxValues/2000+1)
	run = &entryRun{}
	for run.full() == "" {
		run.add(&protocol.Stopped{Frames: frames[:1]})
	}
	require.Equal(t, "only the first 20000 instructions of a run are compared", run.full())
}
