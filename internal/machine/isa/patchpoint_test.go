package isa_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/test/livetest"
)

// compiled lists architectures and flags of llc. LLVM 14 and 16 cannot compile patchpoints for riscv64.
var compiled = []struct {
	arch    *machine.Arch
	flags   []string
	call    *regexp.Regexp // matches the only call through a register
	longest int            // length of the longest call
	llvm    []int
}{
	{machine.PPC64, []string{"-mtriple=powerpc64-linux-gnu"}, regexp.MustCompile(`^bctrl`), 36, []int{14, 16, 19, 22}},
	{machine.PPC64LE, []string{"-mtriple=powerpc64le-linux-gnu"}, regexp.MustCompile(`^bctrl`), 28, []int{14, 16, 19, 22}},
	{machine.RISCV64, []string{"-mtriple=riscv64-linux-gnu", "-mattr=+m,+d", "-target-abi=lp64d"}, regexp.MustCompile(`^jalr`), 24, []int{19, 22}},
	{machine.RISCV64, []string{"-mtriple=riscv64-linux-gnu", "-mattr=+m,+d,+c", "-target-abi=lp64d"}, regexp.MustCompile(`^jalr`), 18, []int{19, 22}},
	{machine.S390X, []string{"-mtriple=s390x-linux-gnu"}, regexp.MustCompile(`^basr`), 14, []int{14, 16, 19, 22}},
}

// TestPatchpointCallOfLLVM requires that the call of a patchpoint ends at llc's only call through a register, for any target. An ordinary call of the
// same target after a stackmap must not be recognized. On s390x both calls have the same code for some targets; then neither may be recognized.
func TestPatchpointCallOfLLVM(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(16, 8))
	targets := []uint64{1, 0x7ff, 0x800, 0x10000, 0x7fffffff, 0x80000000, 0xdeadbeef, 0xffffffff, 0x100000000, 0x7fff00000000, 0xfffffffffffe, 0xffffffffffff}
	for range 40 {
		targets = append(targets, random.Uint64()>>16>>random.IntN(40)|1)
	}
	for _, c := range compiled {
		for _, version := range c.llvm {
			t.Run(fmt.Sprint(c.arch.Name, version, c.flags[len(c.flags)/2]), func(t *testing.T) {
				t.Parallel()
				set, longest, same := isa.Of(c.arch), 0, 0
				patchpoints := functions(t, version, c.flags, c.call, targets, "call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 64, ptr inttoptr (i64 %d to ptr), i32 0, i64 %%a)")
				ordinary := functions(t, version, c.flags, c.call, targets, "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 0, i64 %%a)\n call void inttoptr (i64 %d to ptr)()")
				for n, target := range targets {
					want := patchpoints[n].called
					longest = max(longest, want)
					if bytes.Equal(patchpoints[n].code[:want], ordinary[n].code[:ordinary[n].called]) {
						want = 0
						same++
					}
					require.Equal(t, want, set.PatchpointCall(patchpoints[n].code), "%#x: % x", target, patchpoints[n].code[:40])
					require.Zero(t, set.PatchpointCall(ordinary[n].code), "%#x: % x", target, ordinary[n].code)
					for cut := range want {
						require.Zero(t, set.PatchpointCall(patchpoints[n].code[:cut]))
					}
					require.Equal(t, patchpoints[n].called != 0, set.CallFrom(codeAt(patchpoints[n].code), 0, machine.Addr(patchpoints[n].called)))
				}
				require.Equal(t, c.longest, longest)
				require.Equal(t, c.arch == machine.S390X, same > 0)
				require.Less(t, same, len(targets)/4)
				require.LessOrEqual(t, longest, isa.LongestPatchpointCall)
			})
		}
	}
}

// function is the code that llc generated for a function with one site.
type function struct {
	code   []byte // the code from the address of the record on
	called int    // offset in code of the end of the site's call
}

// functions compiles a function for each target. site is a format for an id and the target.
func functions(t *testing.T, version int, flags []string, call *regexp.Regexp, targets []uint64, site string) (list []function) {
	t.Helper()
	var module strings.Builder
	module.WriteString("declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n")
	for n, target := range targets {
		fmt.Fprintf(&module, "define i64 @f%d(i64 %%a) {\n "+site+"\n ret i64 %%a\n}\n", n, n, target)
	}
	path := filepath.Join(t.TempDir(), "module.ll")
	require.NoError(t, os.WriteFile(path, []byte(module.String()), 0o644))
	object := livetest.Object(t, version, path, append([]string{"-O2", "-enable-patchpoint-liveness=false"}, flags...)...)

	// Functions have the same order in objects and in their stack maps.
	readobj, err := exec.Command(livetest.LLVM(t, 19, "llvm-readobj"), "--stackmap", object).Output()
	require.NoError(t, err)
	offsets := regexp.MustCompile(`instruction offset: (\d+)`).FindAllStringSubmatch(string(readobj), -1)
	require.Len(t, offsets, len(targets), "%s", readobj)
	objdump, err := exec.Command(livetest.LLVM(t, 19, "llvm-objdump"), "-d", "--no-show-raw-insn", object).Output()
	require.NoError(t, err)
	file, err := elf.Open(object)
	require.NoError(t, err)
	defer file.Close()
	text, err := file.Section(".text").Data()
	require.NoError(t, err)
	symbols, err := file.Symbols()
	require.NoError(t, err)
	var starts []uint64
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			starts = append(starts, s.Value)
		}
	}
	if file.Section(".opd") != nil { // symbols are those of descriptors, and each function begins with saving lr
		starts = nil
		for n := 0; n < len(text); n += 4 {
			if string(text[n:n+4]) == "\x7c\x08\x02\xa6" {
				starts = append(starts, uint64(n))
			}
		}
	}
	require.Len(t, starts, len(targets))
	ends := []uint64{}
	lines := regexp.MustCompile(`(?m)^ *([0-9a-f]+):\s*(.*)$`).FindAllStringSubmatch(string(objdump), -1)
	for n, line := range lines[:len(lines)-1] {
		if call.MatchString(line[2]) {
			end, err := strconv.ParseUint(lines[n+1][1], 16, 64)
			require.NoError(t, err)
			ends = append(ends, end)
		}
	}
	require.Len(t, ends, len(targets), "%s", objdump)
	for n := range targets {
		offset, err := strconv.ParseUint(offsets[n][1], 10, 64)
		require.NoError(t, err)
		at := starts[n] + offset
		require.Greater(t, ends[n], at)
		list = append(list, function{text[at:], int(ends[n] - at)})
	}
	return list
}

// codeAt is code at address 0.
type codeAt []byte

func (c codeAt) ReadMemory(p []byte, addr machine.Addr) error {
	if uint64(addr) > uint64(len(c)) || uint64(len(p)) > uint64(len(c))-uint64(addr) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "past the end"}
	}
	copy(p, c[addr:])
	return nil
}

// FuzzCode requires that no byte past the code is read, and that the results are consistent.
func FuzzCode(f *testing.F) {
	f.Add([]byte{0x0d, 0xe1, 0xc0, 0xe5, 0, 0, 0, 0})
	f.Add([]byte{0x82, 0x90, 0xef, 0, 0, 0})
	f.Add([]byte{0x4e, 0x80, 0x04, 0x21, 0x04, 0, 0, 0})
	f.Fuzz(func(t *testing.T, code []byte) {
		for _, arch := range machine.Archs() {
			set := isa.Of(arch)
			if set == nil {
				continue
			}
			n := set.Length(code)
			require.LessOrEqual(t, n, min(len(code), set.Longest))
			require.Zero(t, n%arch.Align)
			_, jumps := set.Jump(code, 0)
			require.False(t, jumps && set.IsCall(code))
			call := set.PatchpointCall(code)
			require.LessOrEqual(t, call, min(len(code), isa.LongestPatchpointCall))
			require.True(t, call == 0 || set.CallFrom(codeAt(code), 0, machine.Addr(call)))
			set.CallFrom(codeAt(code), 0, machine.Addr(len(code)))
		}
	})
}
