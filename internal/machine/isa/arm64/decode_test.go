package arm64_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
	"example.com/reframe/test/livetest"
)

// TestText uses words as llvm-mc 19 encodes the instructions.
func TestText(t *testing.T) {
	const at = 0x1000
	for word, want := range map[uint32]string{
		0x17fffc00: "b 0x0 <start>", 0x54000360: "b.eq 0x106c", 0xb4ffffc3: "cbz x3, 0xff8", 0x371802e5: "tbnz w5, #3, 0x105c",
		0x97fffc00: "bl 0x0 <start>", 0xd63f0200: "blr x16", 0xd65f03c0: "ret", 0x100001a3: "adr x3, 0x1034", 0x90000003: "adrp x3, 0x1000",
		0x58000163: "ldr x3, 0x102c", 0xd503201f: "nop", 0x8b020020: "add x0, x1, x2", 0xa9bf7bfd: "stp x29, x30, [sp,#-16]!",
		0x1e622820: "fadd d0, d1, d2", 0x00000000: arm64.Bad, 0xd63f087f: arm64.Bad,
	} {
		text, length := arm64.Text(binary.LittleEndian.AppendUint32(nil, word), at, func(a machine.Addr) string {
			if a == 0 {
				return "start"
			}
			return ""
		})
		require.Equal(t, want, text, "%#x", word)
		require.Equal(t, 4, length)
	}
	text, length := arm64.Text([]byte{1, 2}, at, nil)
	require.Equal(t, arm64.Bad, text)
	require.Equal(t, 1, length)
}

// TestSetsWord uses the call of a patchpoint as llc 19 writes it.
func TestSetsWord(t *testing.T) {
	code := func(s string) []byte {
		b, err := hex.DecodeString(s)
		require.NoError(t, err)
		return b
	}
	require.True(t, arm64.SetsWord(code("f0ffdfd2"), 16, 32, false))
	require.True(t, arm64.SetsWord(code("f0ffbff2"), 16, 16, true))
	require.True(t, arm64.SetsWord(code("509e9ff2"), 16, 0, true))
	require.True(t, arm64.CallThrough(code("00023fd6"), 16))
	require.False(t, arm64.SetsWord(code("509e9ff2"), 16, 0, false))
	require.False(t, arm64.SetsWord(code("509e9ff2"), 17, 0, true))
	require.False(t, arm64.SetsWord(code("509e9ff2"), 16, 16, true))
	require.False(t, arm64.CallThrough(code("00021fd6"), 16), "br")
	require.False(t, arm64.CallThrough(code("00023f"), 16))
}

// TestBranchesAgainstObjdump requires llvm-objdump's calls and jump targets for random words, most of them branches.
func TestBranchesAgainstObjdump(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 19))
	tops := []byte{0x14, 0x17, 0x94, 0x97, 0x34, 0x35, 0xb4, 0xb5, 0x36, 0x37, 0xb6, 0xb7, 0x54, 0xd6, 0xd7}
	var code []byte
	var source strings.Builder
	const n = 20_000
	for range n {
		w := random.Uint32()
		switch random.IntN(8) {
		case 0:
		case 1: // indirect branches are rare among random words
			w = 0xd61f0000 | w&0x00600c00 | w&0x3ff | uint32(random.IntN(2))<<24
		default:
			w = w&0xffffff | uint32(tops[random.IntN(len(tops))])<<24
		}
		code = binary.LittleEndian.AppendUint32(code, w)
		fmt.Fprintf(&source, ".inst %#x\n", w)
	}
	dir := t.TempDir()
	asm, object := filepath.Join(dir, "words.s"), filepath.Join(dir, "words.o")
	require.NoError(t, os.WriteFile(asm, []byte(source.String()), 0o644))
	text, err := exec.Command(livetest.Tool(t, "clang-19"), "--target=aarch64-linux-gnu", "-c", asm, "-o", object).CombinedOutput()
	require.NoError(t, err, "%s", text)
	text, err = exec.Command(livetest.LLVM(t, 19, "llvm-objdump"), "-d", "--mattr=+v8.7a,+hbc", object).Output()
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^ *([0-9a-f]+): [0-9a-f]{8} +\t?(\S+)(.*)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, lines, n)
	jump, target := regexp.MustCompile(`^(b|bc?\.\w+|t?cbn?z|tbn?z)$`), regexp.MustCompile(`0x([0-9a-f]+)( <.*)?$`)
	calls, jumps := 0, 0
	for i, line := range lines {
		at, b := machine.Addr(4*i), code[4*i:]
		require.Equal(t, strings.HasPrefix(line[2], "bl"), arm64.IsCall(b), line[0])
		to, ok := arm64.Jump(b, at)
		require.Equal(t, jump.MatchString(line[2]), ok, line[0])
		if ok {
			m := target.FindStringSubmatch(strings.TrimSpace(line[3]))
			require.NotNil(t, m, line[0])
			require.Equal(t, m[1], fmt.Sprintf("%x", uint64(to)), line[0])
			jumps++
		}
		if arm64.IsCall(b) {
			calls++
		}
	}
	require.Greater(t, calls, n/10)
	require.Greater(t, jumps, n/3)
}
