package ir

import (
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const attributesModule = `%pair = type { i32, i64 }

declare token @llvm.call.preallocated.setup(i32)
declare ptr @llvm.call.preallocated.arg(token, i32)
declare noundef nonnull align 8 ptr @result(i8 noundef signext, i16 zeroext)
declare noundef range(i8 -2, 3) i8 @small(i32 range(i32 -1, 0))
declare void @in_memory(ptr byval(%pair) align 16, ptr sret([3 x i8]), ptr byref(i64))
declare void @promises(ptr dereferenceable(24) captures(none), ptr dereferenceable_or_null(7), ptr noalias)
declare void @windows(ptr inalloca(%pair))
declare void @allocated(ptr preallocated(%pair))

define void @f(ptr %p) {
  %r = call noundef align 4 ptr @result(i8 signext 1, i16 zeroext 2)
  %s = call range(i8 0, 2) i8 @small(i32 1)
  call void @in_memory(ptr byval(%pair) align 8 %p, ptr sret([3 x i8]) %p, ptr byref(i64) %p)
  %t = call token @llvm.call.preallocated.setup(i32 1)
  %m = call ptr @llvm.call.preallocated.arg(token %t, i32 0) preallocated(%pair)
  call void @allocated(ptr preallocated(%pair) %m) [ "preallocated"(token %t) ]
  ret void
}
`

func TestAttributesOfParametersAndResults(t *testing.T) {
	src := attributesModule
	_, errs, ok := llvm(t, 22, "llvm-as", "-o", os.DevNull, write(t, "attributes.ll", src))
	require.True(t, ok, errs)
	m := parse(t, src)
	pair := m.TypeNames["pair"]
	bytes3 := m.Func("in_memory").Params[1].Attrs.SRet
	require.Equal(t, "[3 x i8]", bytes3.String())

	require.Equal(t, ParamAttrs{NoUndef: true, NonNull: true, Align: 8}, *m.Func("result").Ret)
	require.Equal(t, ParamAttrs{NoUndef: true, Range: &Range{big.NewInt(254), big.NewInt(3)}}, *m.Func("small").Ret)
	for name, want := range map[string][]ParamAttrs{
		"result":    {{NoUndef: true, SignExt: true}, {ZeroExt: true}},
		"small":     {{Range: &Range{big.NewInt(1<<32 - 1), new(big.Int)}}},
		"in_memory": {{ByVal: pair, Align: 16}, {SRet: bytes3}, {ByRef: I64}},
		"promises":  {{Dereferenceable: 24}, {OrNull: 7}, {}},
		"windows":   {{InAlloca: pair}},
		"allocated": {{Preallocated: pair}},
	} {
		var got []ParamAttrs
		for _, p := range m.Func(name).Params {
			got = append(got, *p.Attrs)
		}
		require.Equal(t, want, got, name)
	}

	body, err := m.Func("f").Body()
	require.NoError(t, err)
	calls := body[0].Instrs
	require.Equal(t, ParamAttrs{NoUndef: true, Align: 4}, calls[0].Call.Ret)
	require.Equal(t, ParamAttrs{Range: &Range{new(big.Int), big.NewInt(2)}}, calls[1].Call.Ret)
	require.Equal(t, []ParamAttrs{{ByVal: pair, Align: 8}, {SRet: bytes3}, {ByRef: I64}}, calls[2].Call.ArgAttrs)
	require.Equal(t, pair, calls[4].Call.Preallocated)
	require.Nil(t, calls[3].Call.Preallocated)
	require.Equal(t, []ParamAttrs{{Preallocated: pair}}, calls[5].Call.ArgAttrs)

	// LLVM prints the attribute of that call in a group.
	printed := filepath.Join(t.TempDir(), "printed.ll")
	_, errs, ok = llvm(t, 22, "opt", "-S", "-o", printed, write(t, "attributes.ll", src))
	require.True(t, ok, errs)
	again, err := ParseFile(printed)
	require.NoError(t, err)
	body, err = again.Func("f").Body()
	require.NoError(t, err)
	require.Equal(t, again.TypeNames["pair"], body[0].Instrs[4].Call.Preallocated)
}
