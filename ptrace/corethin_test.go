package ptrace

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/test/livetest"
)

// registersOf returns the bytes of each register of a thread by name, or the reason why they are unavailable.
func registersOf(th machine.Thread) map[string]string {
	out := map[string]string{"thread": fmt.Sprint(th.ID, th.Name, th.Missing)}
	arch := th.Registers.Arch()
	for _, reg := range arch.Registers() {
		b, err := th.Registers.Bytes(reg)
		out[arch.RegisterName(reg)] = fmt.Sprint(b, err)
	}
	return out
}

// TestThinCoreOfQEMU requires for each architecture that gdb shows the same for a core of QEMU and for a small core made from it.
func TestThinCoreOfQEMU(t *testing.T) {
	livetest.Slow(t)
	for _, c := range livetest.Crosses {
		if !c.WritesCores() {
			continue
		}
		t.Run(c.Arch, func(t *testing.T) {
			program := c.Build(t, []string{"-static", "-O1", "-g"}, "testdata/crash.c")
			path := c.Core(t, program)
			large, err := OpenCore(path, CoreOptions{Exe: program})
			require.NoError(t, err)
			t.Cleanup(large.Close)
			thin := filepath.Join(t.TempDir(), "thin")
			_, err = large.WriteCore(context.Background(), thin, RecordOptions{Memory: Minimal})
			require.NoError(t, err)
			small, err := OpenCore(thin, CoreOptions{Exe: program})
			require.NoError(t, err)
			t.Cleanup(small.Close)
			require.Equal(t, large.Arch(), small.Arch())
			require.Equal(t, []any{large.PID, large.Command}, []any{small.PID, small.Command})
			require.Len(t, small.Threads(), len(large.Threads()))
			for i, th := range large.Threads() {
				require.Equal(t, registersOf(th), registersOf(small.Threads()[i]))
				sp, err := th.Registers.Addr(large.Arch().SP)
				require.NoError(t, err)
				want, got := make([]byte, 512), make([]byte, 512)
				require.NoError(t, large.ReadMemory(want, sp))
				require.NoError(t, small.ReadMemory(got, sp))
				require.Equal(t, want, got)
			}
			bt := func(core string) string {
				args := []string{"-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-ex", "bt", "-ex", "info registers", program, core}
				_, text, _ := strings.Cut(output(t, "gdb-multiarch", args...), "#0")
				return text
			}
			require.Contains(t, bt(path), "main")
			require.Equal(t, bt(path), bt(thin))
			one, err := os.Stat(path)
			require.NoError(t, err)
			other, err := os.Stat(thin)
			require.NoError(t, err)
			require.Less(t, other.Size(), one.Size())
		})
	}
}

// TestThinCoreRefused requires an error if the new core would have to contain memory that the original core lacks.
func TestThinCoreRefused(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "1")
	large := openCore(t, ownCore(t, p))
	dir := t.TempDir()
	for _, memory := range []CoreMemory{Writable, All} {
		_, err := large.WriteCore(context.Background(), filepath.Join(dir, "core"), RecordOptions{Memory: memory})
		require.ErrorContains(t, err, "only a minimal core can be recorded from a core")
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// requireNoMore requires that a core contains only memory that its original contains, with the same contents.
func requireNoMore(t *testing.T, large, small *Target) {
	t.Helper()
	for _, r := range small.source.(*coreMemory).regions {
		if r.from == nil {
			continue
		}
		for at, pages := r.start, 0; at < r.end && pages < 64; pages++ {
			n := min(elfcore.Page, r.end-at)
			want, got := make([]byte, n), make([]byte, n)
			if small.ReadMemory(got, at) == nil {
				require.NoError(t, large.ReadMemory(want, at), "%v of %v to %v", at, r.start, r.end)
				require.True(t, bytes.Equal(want, got), "%v of %v to %v", at, r.start, r.end)
			}
			at += n
		}
	}
}

// thinOf makes a small core from a core in memory and reads it. It returns nil if the small core is refused.
func thinOf(t *testing.T, large *Target) *Target {
	t.Helper()
	path := filepath.Join(t.TempDir(), "thin")
	if _, err := large.WriteCore(context.Background(), path, RecordOptions{Memory: Minimal}); err != nil {
		require.NoFileExists(t, path)
		return nil
	}
	return openCore(t, path)
}

// anotherFile replaces the first page of the program in the core by the first page of another program.
func anotherFile(c *coreImage, flags elf.ProgFlag) {
	for i := range c.segments {
		if s := &c.segments[i]; bytes.HasPrefix(s.data, []byte(elf.ELFMAG)) && s.Vaddr < smallEntry {
			s.data = bytes.Clone(s.data)
			s.data[24]++ // changes the entry point in the ELF header
			s.Flags = uint32(flags)
		}
	}
}

// TestThinCoreOfHostile requires that a core with false claims causes neither a panic nor an endless loop. Memory that is readable in a small core
// made from it must be the same in the original.
func TestThinCoreOfHostile(t *testing.T) {
	words := func(list ...uint64) (b []byte) {
		for _, w := range list {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	const everywhere = 1<<63 - 1<<12
	for name, change := range map[string]func(c *coreImage, program string){
		"files everywhere, all written over": func(c *coreImage, program string) {
			c.files = append(c.files, fileRow{1 << 40, 1<<40 + everywhere, 0, program})
			c.note(ownOwner, ntMemory, words(1, 1<<12, everywhere))
		},
		"pages written over by bytes": func(c *coreImage, program string) {
			list := []uint64{1}
			for i := range uint64(1 << 15) {
				list = append(list, 0x400001+3*i, 0x400002+3*i)
			}
			c.note(ownOwner, ntMemory, words(list...))
		},
		"a list of what was written over that is no list": func(c *coreImage, _ string) {
			c.note(ownOwner, ntMemory, words(1, 0x402000, 0x401000))
		},
		"program headers everywhere": func(c *coreImage, _ string) {
			c.note("CORE", ntAUXV, words(atPhdr, 1<<64-64, atPhnum, 1<<63, atEntry, 0, 0, 0))
		},
		"dynamic section and list of files are a loop": func(c *coreImage, _ string) {
			page := make([]byte, elfcore.Page)
			copy(page, words(2, 0, 0x20000040, 0, 0, 0, 0)) // a PT_DYNAMIC, whose address is its third word
			copy(page[64:], words(dtDebug, 0x20000080))
			copy(page[128:], words(1, 0x200000c0))
			copy(page[192:], words(0, 0x200000c0, 0, 0x200000c0, 0x200000c0)) // the next field has the same value
			c.load(0x20000000, elf.PF_R|elf.PF_W, page, elfcore.Page)
			c.note("CORE", ntAUXV, words(atPhdr, 0x20000000, atPhnum, 1, 0, 0))
		},
		"a stack at the end of the address space": func(c *coreImage, _ string) {
			status := make([]byte, 336)
			binary.LittleEndian.PutUint32(status[32:], 4243)
			for i := range 27 {
				binary.LittleEndian.PutUint64(status[112+8*i:], ^uint64(0)-uint64(i))
			}
			c.note("CORE", uint32(elf.NT_PRSTATUS), status)
			c.load(1<<64-1<<13, elf.PF_R|elf.PF_W, make([]byte, elfcore.Page), elfcore.Page)
		},
		"a core that is cut inside of a file's page": func(c *coreImage, _ string) {
			for i := range c.segments {
				if s := &c.segments[i]; s.Vaddr < smallEntry && s.Filesz == 0 {
					s.Filesz, s.Off = s.Memsz, 1<<40
				}
			}
		},
		"no private memory": func(c *coreImage, _ string) {
			for i := range c.segments {
				if s := &c.segments[i]; s.Vaddr >= smallEntry {
					s.Flags = uint32(elf.PF_R)
				}
			}
		},
		"segments at odd addresses": func(c *coreImage, _ string) {
			for i := range uint64(3000) {
				c.load(0x30000001+i*37, elf.PF_R|elf.PF_W, []byte("odd"), 5)
			}
		},
		"another file, by its first page":                    func(c *coreImage, _ string) { anotherFile(c, elf.PF_R) },
		"another file, by its first page, which was written": func(c *coreImage, _ string) { anotherFile(c, elf.PF_R|elf.PF_W) },
		"one part of the core many times": func(c *coreImage, program string) {
			big := bytes.Repeat([]byte("x"), 1<<20)
			for i := range uint64(300) {
				c.load(1<<40+i<<24, elf.PF_R, nil, 1<<24)
				s := &c.segments[len(c.segments)-1]
				if i == 0 {
					s.data = big
				}
				s.Off, s.Filesz = 1<<15, 1<<20
				c.files = append(c.files, fileRow{machine.Addr(1<<40 + i<<24), machine.Addr(1<<40 + i<<24 + 1<<24), 0, program})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, program := smallCore(t, hostObject(t))
			change(c, program)
			large := readBytes(t, c.bytes())
			small := thinOf(t, large)
			require.NotNil(t, small)
			requireNoMore(t, large, small)
			require.Len(t, small.Threads(), len(large.Threads()))
			again := thinOf(t, small)
			require.NotNil(t, again)
			requireNoMore(t, small, again)
		})
	}
}

func FuzzThinCore(f *testing.F) {
	c, _ := smallCore(f, hostObject(f))
	f.Add(c.bytes())
	c.note(ownOwner, ntMemory, make([]byte, 24))
	f.Add(c.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		large, err := readCore("core", bytes.NewReader(b), int64(len(b)), CoreOptions{})
		if err != nil {
			return
		}
		defer large.Close()
		if small := thinOf(t, large); small != nil {
			requireNoMore(t, large, small)
		}
	})
}
