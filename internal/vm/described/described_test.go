package described

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// TestAdd requires that descriptions of images are added one by one: a layout of several images is added once, and a note says that there are more
// modules than the bound.
func TestAdd(t *testing.T) {
	module := livetest.Module(t, `@l = constant [7 x i8] c"simple\00", section ".reframe.layout"
@m = constant [16 x i8] c"@x = global i8 0", section ".reframe.ir"
`)
	file, err := os.ReadFile(livetest.Made(t, livetest.LLVM(t, 19, "llc"), "described.o", "-filetype=obj", module))
	require.NoError(t, err)
	img, err := object.New("described.o", bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	d := &Description{}
	d.Add("nothing", nil, true, true)
	d.Add("one", img, true, true)
	d.Add("two", img, true, true)
	d.Add("three", img, true, false)
	require.Equal(t, []Layout{{"one", []byte("simple")}}, d.Layouts)
	require.Len(t, d.Modules, 2)
	require.Equal(t, 32, d.taken)
	require.Empty(t, d.Notes)
	d.Modules = make([]*ir.Module, maxModules)
	for range 100 {
		d.Add("more", img, false, true)
	}
	require.Len(t, d.Notes, 8)
	require.Equal(t, "more, .reframe.ir: over 4096 modules", d.Notes[0])
	d.Modules, d.Notes, d.taken = nil, nil, maxIR-15
	d.Add("large", img, false, true)
	require.Empty(t, d.Modules)
	require.Equal(t, []string{"large, .reframe.ir: 16 bytes; the limit is 15"}, d.Notes)
}
