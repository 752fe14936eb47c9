package fidelity_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// TestProvenanceOfRealCode requires that reframe accepts the module of each function of programs by other authors, and never reports that the code
// was compiled from another module.
func TestProvenanceOfRealCode(t *testing.T) {
	livetest.Slow(t)
	for name, s := range sources {
		for _, v := range livetest.ShareOf(sourceVariants(), "provenance", name) {
			module := s.module(t, v)
			m, err := ir.ParseFile(module)
			require.NoError(t, err)
			for _, level := range livetest.ShareOf([]string{"-O0", "-O2", "-O3"}, "provenance", name, v) {
				for _, model := range livetest.ShareOf([]string{"static", "pic"}, "provenance", name, v, level) {
					release := v.release
					if model == "pic" { // each module is compiled with its own release and with the newest
						release = 22
					}
					count := map[sites.Sureness]int{}
					img := placed(t, livetest.Object(t, release, module, level, "-relocation-model="+model))
					ms := sites.NewModules([]*ir.Module{m})
					for sym := range img.Functions() {
						if f := sites.Emitted(m, sym.Name); f != nil {
							p := ms.ProvenanceOf(img, sym.Addr, f)
							require.NotEqual(t, sites.Contradicted, p.Sure, "%s, %v, LLVM %d %s %s: @%s: %s", name, v, release, level, model, sym.Name, p.Why)
							count[p.Sure]++
						}
					}
					t.Logf("%s, %v, LLVM %d %s %s: %v", name, v, release, level, model, count)
				}
			}
		}
	}
}

// placed reads an unlinked object after it has stored addresses in its section headers, as a JIT does.
func placed(t *testing.T, path string) *object.Image {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	const header, headers, address = 64, 0x28, 0x10 // of ELF-64: size of Elf64_Shdr, offsets of e_shoff and sh_addr
	from := binary.LittleEndian.Uint64(data[headers:])
	for n := range (uint64(len(data)) - from) / header {
		binary.LittleEndian.PutUint64(data[from+n*header+address:], n<<28)
	}
	img, err := object.New(path, bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return img
}
