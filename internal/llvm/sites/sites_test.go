package sites_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/test/frametest"
)

const sitesModule = `
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare i64 @cb(i64)
define void @f(i64 %a, i32 %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a, i32 7)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a, i32 7)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a, i32 8)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i32 %b)
  ret void
}
define void @inlined(i64 %x) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %x)
  ret void
}
define void @inlined2(i64 %x) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0, i64 %x)
  ret void
}
define void @inlined3(i64 %x) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0, i64 %x)
  ret void
}
define i64 @any(i64 %a, i64 %b) {
  %r = call anyregcc i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 5, i32 16, ptr @cb, i32 2, i64 %a, i64 %b, i64 9)
  ret i64 %r
}
`

// entry returns a record with these locations, the only record of its function.
func entry(t *testing.T, id stackmap.RecordID, locations ...stackmap.Location) sites.RecordEntry {
	t.Helper()
	return entryOf(t, stackmap.Record{ID: id, Locations: locations})
}

func entryOf(t *testing.T, records ...stackmap.Record) sites.RecordEntry {
	t.Helper()
	m := frametest.MapOf(t, nil, stackmap.BlobFunction{Records: records})
	return sites.RecordEntry{Entry: stackmap.Entry{Map: m, Function: &m.Functions[0]}, Record: &records[0]}
}

func TestSitesOfARecord(t *testing.T) {
	m, err := ir.Parse("m.ll", []byte(sitesModule))
	require.NoError(t, err)
	ms := sites.NewModules([]*ir.Module{m})
	reg := stackmap.Location{Kind: stackmap.Register, Size: 8}
	constant := func(v int32) stackmap.Location {
		return stackmap.Location{Kind: stackmap.Constant, Size: 8, Offset: v}
	}
	for _, c := range []struct {
		name, function string
		e              sites.RecordEntry
		lines          []int
		mismatch       string
	}{
		{"one", "f", entry(t, 1, reg, constant(7)), []int{6}, ""},
		{"told apart by a constant", "f", entry(t, 2, reg, constant(8)), []int{8}, ""},
		{"a constant that is kept in a register fits either", "f", entry(t, 2, reg, reg), []int{7, 8}, ""},
		{"nothing tells them apart", "f", entry(t, 3, reg), []int{9, 10}, ""},
		{"inlined from elsewhere", "f", entry(t, 4, reg), []int{14}, ""},
		{"no symbol: its records lead to the function", "", entry(t, 1, reg, constant(7)), []int{6}, ""},
		{"no symbol, and the id of every statepoint", "", entry(t, 2882400000, reg), nil, ""},
		{"inlined, and the id of every statepoint", "f", entry(t, 2882400000, reg), nil, ""},
		{"another function has the id too", "f", entry(t, 6, reg), nil, ""},
		{"no such id", "f", entry(t, 99, reg), nil, ""},
		{"anyregcc records result and arguments first", "any", entry(t, 5, reg, reg, reg, constant(9)), []int{26}, ""},
		{"operand count", "f", entry(t, 1, reg), nil, "m.ll is not what was compiled: record 1 of @f has 1 live values, but line 6 of the module has 2"},
		{"constant", "f", entry(t, 1, reg, constant(6)), nil, "m.ll is not what was compiled: record 1 of @f has the constant 6 as its live value 1, but line 6 of the module has 7"},
		{"too few for anyregcc", "any", entry(t, 5, reg), nil, "m.ll is not what was compiled: record 5 of @any has 1 values, but the module's patchpoint records 3 before the live ones"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			if c.function != "" {
				names = []string{c.function}
			}
			found, err := ms.Sites(c.e, names...)
			if c.mismatch != "" {
				require.EqualError(t, err, c.mismatch)
				require.ErrorAs(t, err, new(*sites.MismatchError))
				return
			}
			require.NoError(t, err)
			var lines []int
			for _, s := range found.Sites {
				lines = append(lines, s.Instr.Line)
			}
			require.Equal(t, c.lines, lines)
		})
	}
}

// TestSitesOfAllRecords requires that a module that fits one record by chance is rejected if another record of the function has no fitting site.
func TestSitesOfAllRecords(t *testing.T) {
	m, err := ir.Parse("m.ll", []byte(sitesModule))
	require.NoError(t, err)
	reg := stackmap.Location{Kind: stackmap.Register, Size: 8}
	e := entryOf(t, stackmap.Record{ID: 1, Locations: []stackmap.Location{reg, reg}}, stackmap.Record{ID: 3})
	_, err = sites.NewModules([]*ir.Module{m}).Sites(e, "f")
	require.EqualError(t, err, "m.ll is not what was compiled: record 3 of @f has 0 live values, but line 9 of the module has 1")
}

// TestUndefMark requires that the mark of undef, as an entry of the constant table or sign-extended, is not taken for a value.
func TestUndefMark(t *testing.T) {
	m := frametest.MapOf(t, []uint64{0xFEFEFEFE, 0xFEFEFEFF})
	const mark = -0x1010102 // 0xFEFEFEFE in 32 bits
	for l, want := range map[stackmap.Location]bool{
		{Kind: stackmap.ConstantIndex, Offset: 0}: true,
		{Kind: stackmap.ConstantIndex, Offset: 1}: false,
		{Kind: stackmap.ConstantIndex, Offset: 2}: false,
		{Kind: stackmap.Constant, Offset: mark}:   true,
		{Kind: stackmap.Constant, Offset: 0}:      false,
		{Kind: stackmap.Register, Offset: mark}:   false,
	} {
		require.Equal(t, want, sites.MarksUndef(m, l), "%+v", l)
	}
}
