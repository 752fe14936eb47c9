package verify

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// codeMutant is an unlinked object with one changed byte of machine code.
type codeMutant struct {
	object   []byte
	function string
	offset   uint64
	old, new byte
}

func (m codeMutant) String() string {
	return fmt.Sprintf("%s+%#x: %#02x instead of %#02x", m.function, m.offset, m.new, m.old)
}

// codeMutants returns mutants of an object. It does not change bytes that relocations cover, or nops, which belong to the sites of stackmaps.
func codeMutants(t *testing.T, path string, seed uint64, count int) (list []codeMutant) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	text := f.Section(".text")
	require.NotNil(t, text)
	relocated := map[uint64]bool{}
	if s := f.Section(".rela.text"); s != nil {
		rows, err := s.Data()
		require.NoError(t, err)
		for ; len(rows) >= 24; rows = rows[24:] { // Elf64_Rela: offset, info, addend
			for n := range uint64(4) {
				relocated[binary.LittleEndian.Uint64(rows)+n] = true
			}
		}
	}
	symbols, err := f.Symbols()
	require.NoError(t, err)
	var functions []elf.Symbol
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 && f.Sections[s.Section] == text {
			functions = append(functions, s)
		}
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(data))))
	for tries := 0; len(list) < count && tries < 100*count; tries++ {
		s := functions[random.IntN(len(functions))]
		offset := random.Uint64N(s.Size)
		at, value := text.Offset+s.Value+offset, byte(random.IntN(256))
		if relocated[s.Value+offset] || data[at] == value || data[at] == 0x90 || offset == 0 && value == 0xcc { // a breakpoint cannot be at a trap

			continue
		}
		m := codeMutant{object: slices.Clone(data), function: s.Name, offset: offset, old: data[at], new: value}
		m.object[at] = value
		list = append(list, m)
	}
	return list
}

// behaves returns the output and the exit status of a program; "" if the program does not end soon.
func behaves(t *testing.T, command []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if ctx.Err() != nil {
		return ""
	}
	return fmt.Sprintf("%s%v", out, err)
}

// TestVerifyFindsCodeMutants requires that each mutant of the machine code is found, or behaves as before. Many of the mutants crash.
func TestVerifyFindsCodeMutants(t *testing.T) {
	livetest.Slow(t)
	programs := []string{"guards.ll", "state.ll", "memory.ll", "floats.ll", "recursion.ll"}
	each := livetest.Times(2, 100)
	var found, crashed, none, loops, handled, callee int
	for n, program := range programs {
		version := []int{14, 19, 22}[n%3]
		path := livetest.PICObject(t, version, program, "-O2")
		host := livetest.ObjectHostOptions{Threads: 1, Rounds: 3}
		does := behaves(t, livetest.ObjectHostCommand(t, path, host))
		for _, m := range codeMutants(t, path, uint64(35+n), each) {
			object := filepath.Join(t.TempDir(), "mutant.o")
			require.NoError(t, os.WriteFile(object, m.object, 0o644))
			command := livetest.ObjectHostCommand(t, object, host)
			now := behaves(t, command)
			if now == does {
				none++
				continue
			}
			if now == "" {
				loops++
				continue
			}
			o := Options{Options: frametest.ModuleOptions(t, version, program), EntriesOf: []*names.Pattern{frametest.Pattern(names.Exact, m.function)}, Baseline: m.function, Steps: 50_000, Limit: 40}
			summary, all := verified(t, command, o)
			switch {
			case summary.Different > 0:
			case len(summary.Reasons) > 0 && strings.HasPrefix(summary.Why()[0], "native code raised SIG"):
				handled++ // a signal handler of the host handled the crash, with unknown effects
				continue
			case len(summary.Reasons) > 0 && strings.HasPrefix(summary.Why()[0], "native code did not return from the call of "):
				callee++ // both sides call the callee with the same arguments, and it crashes
				continue
			default:
				t.Errorf("%s, LLVM %d, %v: not found in %d exits, %v, and the program does something else: %s instead of %s", program, version, m, summary.Exits, summary.Reasons, now, does)
				continue
			}
			found++
			if slices.ContainsFunc(all, func(v *Verified) bool { return strings.Contains(v.Native.Failed, "raised") }) {
				crashed++
			}
		}
	}
	t.Logf("%d found, %d of them by a crash; %d without an effect, %d whose signal the host handles, %d that crash in a callee, %d that do not end", found, crashed, none, handled, callee, loops)
	require.Positive(t, found)
}
