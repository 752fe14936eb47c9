package ptrace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// thread adds the note of a thread. Its registers are zero.
func (c *coreImage) thread(tid uint32) {
	status := make([]byte, 336)
	c.order.PutUint32(status[statusPID:], tid)
	c.note("CORE", uint32(elf.NT_PRSTATUS), status)
}

// info adds struct elf_prpsinfo.
func (c *coreImage) info(pid uint32, name string) {
	info := make([]byte, infoSize)
	c.order.PutUint32(info[infoPID:], pid)
	copy(info[40:56], name)
	copy(info[56:], "command line")
	c.note("CORE", uint32(elf.NT_PRPSINFO), info)
}

// TestThreadNames requires that threads have exactly the names in the core.
func TestThreadNames(t *testing.T) {
	row := func(order byteOrders, tid, size uint32, name string) []byte {
		return append(order.AppendUint32(order.AppendUint32(nil, tid), size), name...)
	}
	little, big := binary.LittleEndian, binary.BigEndian
	both := func(order byteOrders) []byte {
		return bytes.Join([][]byte{row(order, 7, 5, "first"), row(order, 8, 3, "two")}, nil)
	}
	for _, c := range []struct {
		name  string
		order byteOrders
		comm  string
		note  []byte
		Want  []string // of threads 7, 8 and 9
	}{
		{"no note", little, "program", nil, []string{"program", "", ""}},
		{"sixteen bytes", little, "sixteen-bytes-xx", nil, []string{"sixteen-bytes-x", "", ""}},
		{"none at all", little, "", nil, []string{"", "", ""}},
		{"a note", little, "program", both(little), []string{"first", "two", ""}},
		{"of the other order", big, "program", both(big), []string{"first", "two", ""}},
		{"empty", little, "program", []byte{}, []string{"program", "", ""}},
		{"an empty name", little, "program", row(little, 7, 0, ""), []string{"", "", ""}},
		{"cut", little, "program", both(little)[:18], []string{"first", "", ""}},
		{"too long", little, "program", row(little, 7, 1<<32-1, "first"), []string{"program", "", ""}},
		{"of others", little, "program", row(little, 1<<31, 3, "abc"), []string{"program", "", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cpu := elf.EM_X86_64
			if c.order == byteOrders(big) {
				cpu = elf.EM_S390
			}
			img := &coreImage{order: c.order, machine: cpu, unit: 1}
			img.thread(7)
			img.info(7, c.comm)
			img.thread(9)
			img.thread(8)
			if c.note != nil {
				img.note("REFRAME", ntNames, c.note)
			}
			img.load(0x10000000, elf.PF_R|elf.PF_W, make([]byte, 16), 0x1000)
			var names []string
			for _, th := range readBytes(t, img.bytes()).Threads() {
				names = append(names, th.Name)
			}
			require.Equal(t, c.Want, names)
		})
	}
}

// TestRecordedMemory requires that memory which the process has overwritten is not read from the file, and that the reason names the --memory mode
// that includes it.
func TestRecordedMemory(t *testing.T) {
	file, err := os.ReadFile(livetest.CBinary(t, "nojit.c", "-no-pie"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, file, 0o700))
	const left = "not in the core: the process changed this memory of "
	const more = "; the core was recorded with --memory minimal, which omits it"
	for _, c := range []struct {
		name string
		note []uint64
		why  map[uint64]string // for each address, the reason why 16 bytes there are unavailable, or "" if they are read from the file
		said string
	}{
		{"none", nil, map[uint64]string{0x401000: "not in the core, and neither are changes to the memory of " + path}, "the core contains no private memory"},
		{"nothing written", []uint64{1}, map[uint64]string{0x401000: "", 0x401ff0: "", 0x500000: "not in the core" + more}, ""},
		{"all", []uint64{3}, map[uint64]string{0x401000: "", 0x500000: "not in the core: it was never written, or the process excluded it from cores"}, ""},
		{"some", []uint64{1, 0x401100, 0x401200, 0x401800, 0x401810}, map[uint64]string{
			0x4010f0: "", 0x4010f8: left + path + more, 0x401100: left + path + more, 0x4011f0: left + path + more, 0x401200: "", 0x401808: left + path + more, 0x401810: ""}, ""},
		{"to the end", []uint64{1, 0x401f00, 0x409000}, map[uint64]string{0x401e00: "", 0x401f00: left + path + more}, ""},
		{"everything", []uint64{1, 0, 1<<64 - 1}, map[uint64]string{0x401000: left + path + more}, ""},
		{"backwards", []uint64{1, 0x401200, 0x401100}, map[uint64]string{0x401000: left + path}, "its list of memory that was written over files is corrupt"},
		{"overlapping", []uint64{1, 0x401000, 0x401200, 0x401100, 0x401300}, map[uint64]string{0x401000: left + path, 0x401800: left + path}, "its list of memory that was written over files is corrupt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			img := &coreImage{order: binary.LittleEndian, machine: elf.EM_X86_64, unit: 1,
				files: []fileRow{{0x400000, 0x401000, 0, path}, {0x401000, 0x402000, 0x1000, path}}}
			img.thread(7)
			if c.note != nil {
				b, err := binary.Append(nil, img.order, c.note)
				require.NoError(t, err)
				img.note("REFRAME", ntMemory, b)
			}
			img.load(0x400000, elf.PF_R, file[:4096], 0x1000)
			img.load(0x401000, elf.PF_R|elf.PF_X, nil, 0x1000)
			img.load(0x500000, elf.PF_R|elf.PF_W, nil, 0x1000)
			target := readBytes(t, img.bytes())
			for at, why := range c.why {
				got := make([]byte, 16)
				err := target.ReadMemory(got, machine.Addr(at))
				if why == "" {
					require.NoError(t, err, "%#x", at)
					require.Equal(t, file[at-0x400000:][:16], got)
					continue
				}
				require.ErrorContains(t, err, why, "%#x", at)
			}
			require.Contains(t, strings.Join(target.Notes, "\n"), c.said)
		})
	}
}
