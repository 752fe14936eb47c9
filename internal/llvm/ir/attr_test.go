package ir

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

const attributesModule = `%pair = type { i32, i64 }

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

	require.Equal(t, ParamAttrs{Align: 8}, *m.Func("result").Ret)
	require.Zero(t, *m.Func("small").Ret)
	for name, want := range map[string][]ParamAttrs{
		"result":    {{SignExt: true}, {}},
		"small":     {{}},
		"in_memory": {{ByVal: pair, Align: 16}, {SRet: bytes3}, {}},
		"promises":  {{Dereferenceable: 24}, {}, {}},
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
	require.Equal(t, ParamAttrs{Align: 4}, calls[0].Call.Ret)
	require.Zero(t, calls[1].Call.Ret)
	require.Equal(t, []ParamAttrs{{ByVal: pair, Align: 8}, {SRet: bytes3}, {}}, calls[2].Call.ArgAttrs)
}
