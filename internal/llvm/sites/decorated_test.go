package sites_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestDecoratedSymbolsOfLLVM requires the symbols that LLVM writes for Microsoft's calling conventions, on each platform.
func TestDecoratedSymbolsOfLLVM(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	const text = `
define x86_vectorcallcc void @none() { ret void }
define x86_vectorcallcc i32 @three(i8 %a, i64 %b, <4 x float> %c) { ret i32 0 }
define x86_vectorcallcc void @_underscored(i16 %a) { ret void }
define x86_vectorcallcc void @returned(ptr sret({ i64, i64, i64 }) %r, i32 %a) { ret void }
define x86_vectorcallcc void @passed(ptr byval({ i64, i64, i8 }) %p) { ret void }
define x86_vectorcallcc void @"?cpp@@YQXXZ"(i32 %a) { ret void }
define x86_vectorcallcc void @"\01as it is"(i32 %a) { ret void }
define x86_fastcallcc void @fast(i32 %a, i64 %b) { ret void }
define x86_stdcallcc void @std(i32 %a, i8 %b) { ret void }
define x86_stdcallcc void @std_returned(ptr sret({ i64, i64, i64 }) %r, i32 %a) { ret void }
define fastcc void @other(i32 %a) { ret void }
define void @ordinary(i32 %a) { ret void }
`
	for _, triple := range []string{"x86_64-pc-linux-gnu", "x86_64-pc-windows-msvc", "x86_64-apple-macosx", "i686-pc-windows-msvc"} {
		layout := map[string]string{"x86_64-pc-linux-gnu": "e-m:e-i64:64", "x86_64-pc-windows-msvc": "e-m:w-i64:64", "x86_64-apple-macosx": "e-m:o-i64:64", "i686-pc-windows-msvc": "e-m:x-p:32:32-i64:64"}[triple]
		source := "target datalayout = \"" + layout + "\"\ntarget triple = \"" + triple + "\"\n" + text
		m := frametest.ReadModule(t, "m.ll", source)
		var want []string
		for _, f := range m.Funcs {
			symbol := abi.Decorated(f)
			if symbol == "" {
				continue
			}
			want = append(want, symbol)
			require.True(t, sites.Emitted(m, symbol) == f, symbol)
			require.True(t, sites.Emitted(m, symbol+"0") == nil, symbol)
		}
		for _, version := range []int{16, 19, 22} {
			object, ok := frametest.TryLLC(t, version, withoutLayout(source))
			require.True(t, ok, "%s, llc %d", triple, version)
			out, err := exec.Command(livetest.LLVM(t, version, "llvm-nm"), "--format=just-symbols", object).Output()
			require.NoError(t, err)
			var got []string
			for line := range strings.Lines(string(out)) {
				if name := strings.TrimSuffix(line, "\n"); strings.Contains(name, "@") && name != "?cpp@@YQXXZ" && name != "@feat.00" {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			require.Equal(t, want, got, "%s, llc %d", triple, version)
		}
	}
}

// withoutLayout removes the data layout, so that the code generator uses the default of each triple.
func withoutLayout(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}
