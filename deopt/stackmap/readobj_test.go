package stackmap

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestReadobj requires that Parse and the llvm-readobj of the same release decode the same values from llc's output.
func TestReadobj(t *testing.T) {
	livetest.Slow(t)
	for _, p := range programs {
		for _, version := range p.releases {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(p.program), version), func(t *testing.T) {
				path := object(t, version, p.program)
				maps := parsed(t, section(t, path))
				require.Len(t, maps, 1)
				require.Equal(t, V3, maps[0].Dialect)
				text := livetest.Printed(t, livetest.LLVM(t, version, "llvm-readobj"), "--stackmap", path)
				_, want, found := strings.Cut(text, "LLVM StackMap Version")
				require.True(t, found, text)
				require.Equal(t, "LLVM StackMap Version"+want, describe(maps))
			})
		}
	}
}

// TestVersionFlag requires that Parse detects layout V3, and no other, in the output of llc -stackmap-version, which writes V3 with the given
// version. llvm-readobj rejects that output.
func TestVersionFlag(t *testing.T) {
	livetest.Slow(t)
	for _, p := range programs {
		for _, release := range livetest.ShareOf(p.releases, "version flag", p.program) {
			plain := section(t, object(t, release, p.program))
			for _, version := range []byte{1, 2} {
				path := object(t, release, p.program, fmt.Sprintf("-stackmap-version=%d", version))
				data := section(t, path)
				require.Equal(t, append([]byte{version}, plain[1:]...), data, "the version is all that differs")
				s, err := Parse(data, little)
				require.NoError(t, err)
				require.Equal(t, &Section{Maps: s.Maps, Dialect: V3}, s)
				want := parsed(t, plain)[0].Blob()
				want.Version = int(version)
				require.Equal(t, []*Blob{want}, blobs(s.Maps))
				said, err := exec.Command(livetest.LLVM(t, release, "llvm-readobj"), "--stackmap", path).CombinedOutput()
				require.NoError(t, err)
				require.Contains(t, string(said), fmt.Sprintf("the version (%d) of the stack map section is unsupported, the supported version is 3", version))
			}
		}
	}
}

// TestLinked requires that Parse finds the maps of all objects in a linked file, in order. Compared with the objects, only the addresses of functions
// may differ.
func TestLinked(t *testing.T) {
	t.Parallel()
	stubs := filepath.Join(t.TempDir(), "stubs.c")
	require.NoError(t, os.WriteFile(stubs, []byte("long cb(long a, long b) { return a - b; }\nvoid callee(void) {}\nvoid use(char *p) { (void)p; }\n"), 0o644))
	functions := map[string][]string{
		"testdata/shapes.ll": {"dynamic", "nothing", "vector", "live", "anyreg", "transition"},
		"jit_pp.ll":          {"work"},
	}
	for _, link := range []struct {
		name  string
		flags []string
	}{
		{"shared", []string{"-shared"}},
		{"static addresses", []string{"-no-pie"}},
		{"position-independent", []string{"-pie", "-Wl,-z,notext"}},
	} {
		t.Run(link.name, func(t *testing.T) {
			order := []string{"testdata/shapes.ll", "jit_pp.ll", "testdata/shapes.ll"}
			out := filepath.Join(t.TempDir(), "linked")
			args := append([]string{"-w", "-O1", "-fPIC", "-o", out, stubs}, link.flags...)
			var want []*Map
			for i, p := range order {
				path := object(t, 19, p, "-relocation-model=pic")
				if i == 2 { // link the same code a second time, with renamed symbols
					renamed := filepath.Join(t.TempDir(), "again.o")
					run(t, livetest.Tool(t, "objcopy"), "--prefix-symbols=again_", path, renamed)
					for _, name := range []string{"use", "callee"} {
						run(t, livetest.Tool(t, "objcopy"), "--redefine-sym", "again_"+name+"="+name, renamed)
					}
					path = renamed
				}
				args = append(args, path)
				maps := parsed(t, section(t, path))
				require.Len(t, maps, 1)
				want = append(want, maps[0])
			}
			run(t, livetest.Tool(t, "gcc"), args...)
			f, err := elf.Open(out)
			require.NoError(t, err)
			defer f.Close()
			symbols, err := f.Symbols()
			require.NoError(t, err)
			addrs := map[string]machine.Addr{}
			for _, s := range symbols {
				addrs[s.Name] = machine.Addr(s.Value)
			}
			for i, p := range order {
				for j, name := range functions[p] {
					if i == 2 {
						name = "again_" + name
					}
					require.NotZero(t, addrs[name], name)
					want[i].Functions[j].Addr = addrs[name]
				}
			}
			data := section(t, out)
			relocate(t, f, data)
			require.Equal(t, unplaced(blobs(want)), unplaced(blobs(parsed(t, data))))
		})
	}
}

// relocate applies the relocations of a file as the dynamic linker does at load address 0.
func relocate(t *testing.T, f *elf.File, data []byte) {
	t.Helper()
	s := f.Section(".llvm_stackmaps")
	rela := f.Section(".rela.dyn")
	if rela == nil {
		return
	}
	rows, err := rela.Data()
	require.NoError(t, err)
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	for ; len(rows) >= 24; rows = rows[24:] {
		off := binary.LittleEndian.Uint64(rows) - s.Addr
		info, addend := binary.LittleEndian.Uint64(rows[8:]), binary.LittleEndian.Uint64(rows[16:])
		if off >= s.Size {
			continue
		}
		switch elf.R_X86_64(info & 0xffffffff) {
		case elf.R_X86_64_RELATIVE:
			binary.LittleEndian.PutUint64(data[off:], addend)
		case elf.R_X86_64_64:
			binary.LittleEndian.PutUint64(data[off:], symbols[info>>32-1].Value+addend)
		default:
			require.Fail(t, "a relocation that was not expected", "%#x", info)
		}
	}
}
