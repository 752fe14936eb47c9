package ptrace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/test/livetest"
)

func TestSmallCore(t *testing.T) {
	for _, xnum := range []bool{false, true} {
		c, program := smallCore(t, hostObject(t))
		c.xnum = xnum
		target := readBytes(t, c.bytes())
		require.Empty(t, target.Notes)
		require.Equal(t, []any{4242, "small --core", "core core"}, []any{target.PID, target.Command, target.String()})
		require.Len(t, target.Modules, 1)
		m := target.Modules[0]
		require.Equal(t, []string{program, "", ""}, []string{m.Path, m.Why, m.Unverified})
		require.Zero(t, m.Image.Bias)
		require.Len(t, target.Registries, 1)
		require.Len(t, target.Registries[0].Entries, 1)
		e := target.Registries[0].Entries[0]
		require.Equal(t, []any{machine.Addr(smallEntry), machine.Addr(smallObject), ""}, []any{e.Addr, e.Start, e.Bad})
		require.NotNil(t, e.Image().Section(".llvm_stackmaps"))
		pc, err := target.Threads()[0].Registers.Addr(16)
		require.NoError(t, err)
		require.Equal(t, machine.Addr(0x401234), pc)
		for addr, why := range map[machine.Addr]string{
			smallEntry + 32: "16 bytes at 0x10000020: not in the core: it was never written, or the process excluded it from cores",
			smallEntry + 24: "16 bytes at 0x10000018: not in the core: it was never written, or the process excluded it from cores",
			0x20000000:      "16 bytes at 0x20000000: not in the core",
			1<<64 - 8:       "16 bytes at 0xfffffffffffffff8: not in the core",
			smallEntry - 8:  "16 bytes at 0xffffff8: not in the core",
		} {
			require.EqualError(t, target.ReadMemory(make([]byte, 16), addr), why)
		}
		// The bytes of the first page after those in the core come from the file.
		file, err := os.ReadFile(program)
		require.NoError(t, err)
		b := make([]byte, 512)
		require.NoError(t, target.ReadMemory(b, m.maps[0].Start+768))
		require.Equal(t, file[768:768+512], b)
	}
}

// TestEveryCut truncates a core at every byte, and changes every byte in headers and notes. The result must be an error or a target, and never a
// panic.
func TestEveryCut(t *testing.T) {
	livetest.Slow(t)
	c, _ := smallCore(t, hostObject(t))
	whole := c.bytes()
	for n := range whole {
		target, err := readCore("core", bytes.NewReader(whole[:n]), int64(n), CoreOptions{})
		if err != nil {
			require.Less(t, n, 128+56*(len(c.segments)+1), "the headers are there")
			continue
		}
		require.NotEmpty(t, target.Notes, "%d of %d bytes", n, len(whole))
		target.Close()
	}
	headers := 128 + 56*(len(c.segments)+1) + len(c.notes)
	for n := range headers {
		for _, v := range []byte{0, 0xff, whole[n] ^ 0x80, whole[n] ^ 1} {
			changed := bytes.Clone(whole)
			changed[n] = v
			if target, err := readCore("core", bytes.NewReader(changed), int64(len(changed)), CoreOptions{}); err == nil {
				require.NotContains(t, target.Notes, "panic")
				target.Close()
			} else {
				require.NotContains(t, err.Error(), "malformed", "byte %d as %#x", n, v)
			}
		}
	}
}

// TestHostileCores requires an error or a target for headers and notes with hostile values.
func TestHostileCores(t *testing.T) {
	load := func(addr, memsz uint64) func(*coreImage) {
		return func(c *coreImage) { c.load(addr, elf.PF_R|elf.PF_W, []byte("12345678"), memsz) }
	}
	header := func(off int, size int, v uint64) func([]byte) {
		return func(b []byte) {
			var w [8]byte
			binary.LittleEndian.PutUint64(w[:], v)
			copy(b[off:off+size], w[:])
		}
	}
	for _, c := range []struct {
		name  string
		build func(*coreImage)
		patch func([]byte)
		err   string
		note  string
	}{
		{"no segments", nil, nil, "core: it contains no memory", ""},
		{"overlap", func(c *coreImage) { load(0x1000, 0x2000)(c); load(0x2000, 0x1000)(c) }, nil,
			"core+0x80: two segments contain the address 0x2000: they begin at 0x1000 and at 0x2000", ""},
		{"the whole address space", load(0, math.MaxUint64), nil, "", ""},
		{"past its end", load(0x1000, math.MaxUint64), nil, "core+0x80: segment 1 has 0xffffffffffffffff bytes at 0x1000: it ends outside of the address space", ""},
		{"a terabyte", load(0x1000, 1<<40), nil, "", ""},
		{"more held than there is", load(0x1000, 4), nil, "", ""},
		{"offset past the end", load(0x1000, 8), header(128+56+8, 8, math.MaxUint64-4), "", ""},
		{"claims more than the file", load(0x1000, 1<<20), header(128+56+32, 8, 1<<20), "", "the core is cut short: it has 248 of its 1048816 bytes"},
		{"program headers past the end", load(0x1000, 8), header(32, 8, 1<<60), "core+0x1000000000000000: it ends inside its 2 program headers", ""},
		{"many program headers", load(0x1000, 8), header(56, 2, 0xfffe), "core+0x80: it ends inside its 65534 program headers", ""},
		{"small program headers", load(0x1000, 8), header(54, 2, 32), "core+0x80: program headers of 32 bytes", ""},
		{"too many to count", load(0x1000, 8), func(b []byte) { header(56, 2, elfcore.ManyPrograms)(b); header(64+44, 4, math.MaxUint32)(b) },
			"core+0x80: 4294967295 program headers; at most 1048576 are supported", ""},
		{"no section header to count in", load(0x1000, 8), func(b []byte) { header(56, 2, elfcore.ManyPrograms)(b); header(40, 8, 1<<60)(b) },
			"core+0x80: section header 0 lies at 0x1000000000000000 of 0xf8 bytes", ""},
		{"a huge note", func(c *coreImage) { load(0x1000, 8)(c); c.notes = bytes.Repeat([]byte{0xff}, 16) }, nil, "", "the notes of the core are incomplete"},
		{"notes outside", load(0x1000, 8), func(b []byte) { header(128+8, 8, 1<<50)(b); header(128+32, 8, 16)(b) }, "", "the core is cut short"},
		{"files that are not there", func(c *coreImage) {
			load(0x1000, 8)(c)
			c.note("CORE", ntFile, append(c.order.AppendUint64(nil, 1<<60), make([]byte, 64)...))
		}, nil, "", "its list of mapped files (NT_FILE) is corrupt: it claims more files than it has room for"},
		{"a name without an end", func(c *coreImage) {
			load(0x1000, 8)(c)
			c.note("CORE", ntFile, append(append(c.order.AppendUint64(nil, 1), make([]byte, 32)...), "xxxx"...))
		}, nil, "", "its list of mapped files (NT_FILE) is corrupt: a name does not end"},
		{"rows that mean nothing", func(c *coreImage) {
			load(0x1000, 0x1000)(c)
			c.unit = 4096
			c.files = []fileRow{{0x3000, 0x2000, 0, "/a"}, {0x1000, 0x2000, 1 << 60, "/b"}, {0x1800, 0x2800, 0, "/c"}, {0x2000, 0x3000, 0, "/d"}, {0, math.MaxUint64, math.MaxUint64 / 4096, "/e"}}
		}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			img := &coreImage{order: binary.LittleEndian, machine: elf.EM_X86_64}
			if c.build != nil {
				c.build(img)
			}
			b := img.bytes()
			if c.patch != nil {
				c.patch(b)
			}
			var target *Target
			var err error
			used := livetest.Allocated(func() { target, err = readCore("core", bytes.NewReader(b), int64(len(b)), CoreOptions{}) })
			require.Less(t, used, uint64(4<<20))
			if c.err != "" {
				require.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			defer target.Close()
			notes := strings.Join(target.Notes, "\n")
			require.Contains(t, notes, c.note)
			require.Equal(t, c.note == "", notes == "", notes)
		})
	}
}

// TestCoreOfOtherArchitectures requires that unregistered code is found in cores of other architectures and byte orders.
func TestCoreOfOtherArchitectures(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		order   byteOrders
		arch    *machine.Arch
	}{
		{elf.EM_X86_64, binary.LittleEndian, machine.AMD64},
		{elf.EM_AARCH64, binary.LittleEndian, machine.ARM64},
		{elf.EM_RISCV, binary.LittleEndian, machine.RISCV64},
		{elf.EM_S390, binary.BigEndian, machine.S390X},
	} {
		const code, at = 0x40000000, 0x50000000
		img := &coreImage{order: c.order, machine: c.machine}
		status := make([]byte, 512)
		c.order.PutUint32(status[32:], 77)
		img.note("CORE", uint32(elf.NT_PRSTATUS), status)
		img.load(code, elf.PF_R|elf.PF_X, make([]byte, 64), 4096)
		// A header of version 3 with one function, at code: "Stack Map Format" of LLVM.
		section := []byte{3, 0, 0, 0}
		section = c.order.AppendUint32(section, 1)
		section = c.order.AppendUint64(section, 0)
		section = c.order.AppendUint64(section, code)
		section = append(section, make([]byte, 16)...)
		img.load(at, elf.PF_R|elf.PF_W, append(make([]byte, 64), section...), 4096)
		target := readBytes(t, img.bytes())
		require.Same(t, c.arch, target.Arch())
		require.True(t, target.Scanned)
		require.Equal(t, []Found{{at + 64, section}}, target.Found, c.arch.Name)
		require.Equal(t, 77, target.PID)
		require.Len(t, target.Threads(), 1)
		require.NotNil(t, target.Threads()[0].Registers)
	}
}

// TestNoCore requires that the error for a file which is not a core names the file's type.
func TestNoCore(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	core := func(m elf.Machine, order byteOrders) []byte {
		c := &coreImage{order: order, machine: m}
		c.load(0x1000, elf.PF_R, []byte("12345678"), 8)
		return c.bytes()
	}
	bits32 := core(elf.EM_386, binary.LittleEndian)
	bits32[elf.EI_CLASS] = byte(elf.ELFCLASS32)
	const readsFiles = ": reframe maps FILE reads the stack maps of a file"
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"): "no such file or directory",
		dir:                           "not an ELF core: a directory: give the path of a core file",
		"/dev/null":                   "not an ELF core: a device: give the path of a core file",
		pipe:                          "not an ELF core: a pipe: give the path of a core file",
		write("empty", nil):           "not an ELF core: it is empty: was there a limit on the size of cores (ulimit -c), or no room on the disk?",
		write("text", []byte("text")): "not an ELF core: no ELF file",
		write("cut", []byte("\x7fELF\x02\x01\x01")):                  "not an ELF core: a broken ELF file: it ends inside its header",
		write("zstd", []byte("\x28\xb5\x2f\xfd and more")):           "cannot be decompressed: ",
		write("lz4", []byte("\x04\x22\x4d\x18 and more")):            "not an ELF core: compressed by lz4: decompress it first, or have it written by coredumpctl dump",
		livetest.Object(t, 19, "host_mod.ll"):                        "not an ELF core: an unlinked object" + readsFiles,
		livetest.CBinary(t, "nojit.c", "-no-pie"):                    "not an ELF core: an executable" + readsFiles,
		livetest.CBinary(t, "nojit.c"):                               "not an ELF core: a shared object or a position-independent executable" + readsFiles,
		write("32", bits32):                                          "a 32-bit core; only 64-bit ones can be read",
		write("68k", core(elf.EM_68K, binary.BigEndian)):             "ELFCLASS64 EM_68K",
		write("order", append([]byte("\x7fELF\x02\x07"), bits32...)): "not an ELF core: a broken ELF file: its byte order is 7",
	} {
		_, err := OpenCore(path, CoreOptions{})
		var e *CoreError
		require.ErrorAs(t, err, &e, path)
		require.Equal(t, path, e.Path)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, want)
		require.Equal(t, strings.Contains(want, "not an ELF core"), errors.Is(err, ErrNotCore), path)
		require.NotContains(t, err.Error(), "\n")
	}
}

func FuzzCore(f *testing.F) {
	c, _ := smallCore(f, hostObject(f))
	f.Add(c.bytes())
	c, _ = smallCore(f, nil)
	c.xnum = true
	f.Add(c.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		target, err := readCore("core", bytes.NewReader(b), int64(len(b)), CoreOptions{})
		if err != nil {
			require.NotContains(t, err.Error(), "malformed")
			return
		}
		defer target.Close()
		for _, m := range target.maps {
			p := make([]byte, 64)
			if err := target.ReadMemory(p, m.Start); err != nil {
				var e *machine.MemoryError
				require.ErrorAs(t, err, &e)
				require.NotEmpty(t, e.Why)
			}
		}
	})
}
