package object

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// relaxed is code that linkers relax: loads from the GOT, calls through it and accesses to thread-local variables.
const relaxed = `
extern int far, near(int);
extern __thread int mine;
static long table[4] = {1, 2, 3, 4};
int work(int a) { return far + near(a) + mine + (int)table[a & 3]; }
int more(int a) { int *p = &far; int *q = &mine; return *p * *q + near(*p) * near(*q + a); }
int (*pointer(void))(int) { return near; }
`

const definitions = `
int far = 7;
__thread int mine = 5;
int near(int a) { return a * 3; }
int main(void) { return 0; }
`

// TestFixed requires that every byte reported as fixed is the same after linking, and that some other bytes differ.
func TestFixed(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	code, rest := put("code.c", relaxed), put("rest.c", definitions)
	for _, c := range []struct{ gcc, flags string }{
		{"gcc", "-fPIC"}, {"gcc", "-fno-pic"}, {"gcc", "-fno-plt"}, {"gcc", "-mcmodel=large"}, {"aarch64-linux-gnu-gcc", "-fPIC"}, {"aarch64-linux-gnu-gcc", "-fno-pic"},
	} {
		t.Run(c.gcc+" "+c.flags, func(t *testing.T) {
			gcc := livetest.Tool(t, c.gcc)
			object, program := filepath.Join(dir, "code.o"), filepath.Join(dir, "program")
			for _, args := range [][]string{
				{"-O1", "-fPIC", c.flags, "-c", "-o", object, code},
				{"-O1", "-static", "-o", program, object, rest},
			} {
				out, err := exec.Command(gcc, args...).CombinedOutput()
				require.NoError(t, err, string(out))
			}
			img := openImage(t, object)
			text := img.Section(".text")
			data, fixed, err := text.Fixed()
			require.NoError(t, err)

			linked, err := elf.Open(program)
			require.NoError(t, err)
			defer linked.Close()
			symbols, err := linked.Symbols()
			require.NoError(t, err)
			var there []byte
			for _, s := range symbols {
				if s.Name == "work" {
					_, in, ok := img.InSection("work")
					require.True(t, ok)
					section := linked.Sections[s.Section]
					there = make([]byte, len(data))
					_, err := section.ReadAt(there, int64(s.Value-in-section.Addr))
					require.NoError(t, err)
				}
			}
			require.NotNil(t, there)
			same, changed := 0, 0
			for n := range data {
				if fixed[n] {
					same++
					require.Equal(t, data[n], there[n], "offset %#x", n)
				} else if data[n] != there[n] {
					changed++
				}
			}
			require.Greater(t, same, 30)
			require.Greater(t, changed, 8)
		})
	}
}

// TestLoadAt requires that symbols in sections without a known address have none, and that distances in unwind information fit 32 bits.
func TestLoadAt(t *testing.T) {
	img := openImage(t, livetest.Object(t, 19, "dup.ll"))
	text := img.Section(".text")
	const at = machine.Addr(0x7f1234567040)
	require.NoError(t, img.LoadAt(map[*Section]machine.Addr{text: at}))
	require.Equal(t, []*Section{text}, img.Code())
	for _, s := range img.all {
		if s.Alloc && s != text {
			require.Greater(t, s.Addr, at)
			require.Less(t, s.Addr, at+1<<20)
			require.Nil(t, img.CodeAt(s.Addr))
		}
	}
	require.Error(t, img.LoadAt(map[*Section]machine.Addr{text: 1<<64 - 8}))
	eh := img.Section(".eh_frame")
	require.ErrorContains(t, img.LoadAt(map[*Section]machine.Addr{text: at, eh: at + 1}), "overlaps another section")
}
