package described

import (
	"bytes"
	"fmt"
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
	require.Equal(t, []Layout{{"one", []byte("simple"), []*object.Image{img, img, img}}}, d.Layouts)
	require.Len(t, d.Modules, 2)
	require.Equal(t, 32, d.taken)
	require.Empty(t, d.Notes)
	d.Modules = make([]*ir.Module, maxModules)
	for range 100 {
		d.Add("more", img, false, true)
	}
	require.Len(t, d.Notes, 9)
	require.Equal(t, "further notes of this kind are omitted", d.Notes[8])
	require.Equal(t, "more, .reframe.ir: over 4096 modules", d.Notes[0])
	d.Modules, d.Notes, d.taken = nil, nil, maxIR-15
	d.Add("large", img, false, true)
	require.Empty(t, d.Modules)
	require.Equal(t, []string{"large, .reframe.ir: 16 bytes; the limit is 15"}, d.Notes)
}

// TestManyLayouts requires that a JIT may describe each method separately: no layout is dropped because of the others, and that a note names the
// first layout that exceeds the bound on all texts.
func TestManyLayouts(t *testing.T) {
	module := livetest.Module(t, "@l = constant [7 x i8] c\"number\\00\", section \".reframe.layout\"\n")
	file, err := os.ReadFile(livetest.Made(t, livetest.LLVM(t, 19, "llc"), "number.o", "-filetype=obj", module))
	require.NoError(t, err)
	d := &Description{}
	add := func(n int) *Layout {
		text := fmt.Sprintf("l%05d", n)
		content := bytes.Replace(file, []byte("number\x00"), []byte(text+"\x00"), 1)
		img, err := object.New(text, bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		return d.Add(text, img, true, false)
	}
	const methods = 200
	for n := range methods {
		require.NotNil(t, add(n), n)
	}
	require.Len(t, d.Layouts, methods)
	require.Equal(t, "l00199", string(d.Layouts[methods-1].Text))
	require.Empty(t, d.Notes)
	d.layouts = allLayouts - 5
	require.Nil(t, add(methods))
	require.Equal(t, []string{"l00200: its layout is left out: all layouts of the target would have over 16 MiB"}, d.Notes)
	require.NotNil(t, add(0), "it is known")
}
